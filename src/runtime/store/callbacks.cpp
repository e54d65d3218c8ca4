#include <utility>

#include "gar/errors.hpp"
#include "gar/store.hpp"

namespace gar {

namespace {

class CallbackStore final : public Store {
 public:
  explicit CallbackStore(StoreCallbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void set(const std::string& key, const std::string& value) override { callbacks_.set(key, value); }
  std::string get(const std::string& key, double timeout_s) override { return callbacks_.get(key, timeout_s); }
  void remove(const std::string& key) override {
    if (callbacks_.remove) callbacks_.remove(key);
  }

 private:
  StoreCallbacks callbacks_;
};

}  // namespace

std::unique_ptr<Store> callback_store(StoreCallbacks callbacks) {
  if (!callbacks.set || !callbacks.get) {
    throw InvalidArgument("callback_store: expected functions to set and to get a value");
  }
  return std::make_unique<CallbackStore>(std::move(callbacks));
}

}  // namespace gar
