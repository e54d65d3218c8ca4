// Operations that are made of others. To the other ranks all of these carry the name of what the user called, so that
// ranks that call different things notice it.
#include "runtime/engine.hpp"
#include "runtime/reproducible.hpp"

namespace gar {

namespace {

/// Notes for as long as it lives which call the operations inside belong to.
class Outer {
 public:
  Outer(std::optional<CollectiveCall>& noted, const CollectiveCall& call) : noted_(noted) { noted_ = call; }
  ~Outer() { noted_.reset(); }
  Outer(const Outer&) = delete;
  Outer& operator=(const Outer&) = delete;

 private:
  std::optional<CollectiveCall>& noted_;
};

}  // namespace

void Engine::run_nothing(const CollectiveCall& call) {
  const Outer outer(outer_, call);
  std::int8_t token = 0;
  const CollectiveCall part{.in = &token, .out = &token, .count = 1, .type = DataType::kInt8};
  run_once(part, path_of(part, false));
}

void Engine::run_reproducibly(const CollectiveCall& call) {
  const Outer outer(outer_, call);
  PlainCollectives plain;
  plain.rank = rank();
  plain.size = size();
  plain.run = [this](const CollectiveCall& part) {
    Path path = path_of(part, false);
    path.is_reproducible = false;
    run_once(part, path);
  };
  run_reproducible(plain, call);
}

}  // namespace gar
