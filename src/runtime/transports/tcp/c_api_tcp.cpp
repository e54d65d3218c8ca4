// gar/gar_tcp.h on top of gar/tcp.hpp.
#include <fmt/format.h>

#include <memory>

#include "gar/errors.hpp"
#include "gar/gar_tcp.h"
#include "gar/tcp.hpp"
#include "runtime/c_api.hpp"

namespace {

class CStore final : public gar::Store {
 public:
  explicit CStore(const gar_store& store) : store_(store) {}
  void set(const std::string& key, const std::string& value) override {
    if (store_.set(key.c_str(), value.data(), value.size(), store_.user) != 0) {
      throw gar::TransportError(fmt::format("the caller's store cannot set '{}'", key));
    }
  }
  std::string get(const std::string& key, double timeout_s) override {
    std::string out(4096, '\0');
    while (true) {
      std::size_t bytes = 0;
      if (store_.get(key.c_str(), timeout_s, out.data(), out.size(), &bytes, store_.user) != 0) {
        throw gar::TransportError(fmt::format("the caller's store has no '{}' after {} s", key, timeout_s));
      }
      const bool is_whole = bytes <= out.size();
      out.resize(bytes);
      if (is_whole) return out;
    }
  }

 private:
  gar_store store_;
};

std::shared_ptr<CStore> checked_store(const gar_store* store, const char* function) {
  gar::c_api::require(store != nullptr && store->set != nullptr && store->get != nullptr, function,
                      "`store` lacks a function; expected both `set` and `get`");
  return std::make_shared<CStore>(*store);
}

gar::TcpOptions on(const char* interface) {
  gar::TcpOptions out;
  if (interface != nullptr) out.interface = interface;
  return out;
}

}  // namespace

gar_status gar_comm_create_tcp(const gar_store* store, const char* name, int rank, int size, const char* interface,
                               const gar_options* options, gar_comm** comm) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    gar::c_api::require_name(name, comm, function);
    const std::shared_ptr<CStore> own = checked_store(store, function);
    *comm = new gar_comm{gar::tcp_communicator(*own, name, rank, size,
                                               gar::c_api::communicator_options(options, function), on(interface)),
                         own};
  });
}

gar_status gar_comm_join_tcp(const gar_store* store, const char* name, double limit_s, const char* interface,
                             const gar_options* options, gar_comm** comm) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    gar::c_api::require_name(name, comm, function);
    const std::shared_ptr<CStore> own = checked_store(store, function);
    *comm = new gar_comm{
        gar::join_tcp(*own, name, limit_s, gar::c_api::communicator_options(options, function), on(interface)), own};
  });
}

gar_status gar_comm_join_from_environment(double limit_s, const gar_options* options, gar_comm** comm) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    gar::c_api::require(comm != nullptr, function, "`comm` is NULL; expected where the communicator shall be written");
    *comm = new gar_comm{gar::join_from_environment(limit_s, gar::c_api::communicator_options(options, function))};
  });
}

gar_status gar_comm_create_from_environment(const gar_options* options, gar_comm** comm) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    gar::c_api::require(comm != nullptr, function, "`comm` is NULL; expected where the communicator shall be written");
    *comm = new gar_comm{gar::communicator_from_environment(gar::c_api::communicator_options(options, function))};
  });
}
