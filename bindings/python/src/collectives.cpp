#include "collectives.hpp"

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "gar/errors.hpp"

namespace gar::python {
namespace {

/// Every rank contributes to the one element, so no rank has the sum before all have called.
CollectiveCall barrier_call(std::int8_t& token) {
  return {.in = &token, .out = &token, .count = 1, .type = DataType::kInt8};
}

CollectiveCall collective_call(const NumberedCall& call) {
  return {static_cast<Collective>(call.what),
          memory_at(call.in),
          memory_at(call.out),
          call.count,
          static_cast<DataType>(call.type),
          static_cast<ReduceOp>(call.op)};
}

MovementCall movement_call(const NumberedCall& call) {
  return {static_cast<Movement>(call.what - kFirstMovement),
          memory_at(call.in),
          memory_at(call.out),
          call.count,
          static_cast<DataType>(call.type),
          static_cast<ReduceOp>(call.op),
          call.root,
          call.in_counts,
          call.out_counts};
}

/// A process group of PyTorch has a timeout, and its programs look for this word.
std::string with_timeout(std::string text) {
  constexpr std::string_view kLimit = "a longer timeout_s (GAR_TIMEOUT)";
  if (const std::size_t place = text.find(kLimit); place != std::string::npos) {
    text.replace(place, kLimit.size(), "a longer timeout of the process group");
  }
  return text;
}

std::exception_ptr in_words_of_torch(const std::exception_ptr& failure) {
  if (!failure) return nullptr;
  try {
    std::rethrow_exception(failure);
  } catch (const TransportError& error) {
    return std::make_exception_ptr(TransportError(with_timeout(error.what())));
  } catch (...) {
    return failure;
  }
}

}  // namespace

// Tensors say where they lie by a number.
void* memory_at(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): Python has no pointers
}

Collectives::Collectives(Communicator made) : rank_(made.rank()), size_(made.size()) {
  state_->communicator = std::make_unique<Communicator>(std::move(made));
}

Collectives::~Collectives() {  // NOLINT(bugprone-exception-escape): only where Python itself is broken
  if (is_ending()) {
    abandon();
  } else if (PyGILState_Check() != 0) {
    const py::gil_scoped_release no_gil;
    close();
  } else {
    close();
  }
}

void Collectives::run(const NumberedCall& call) {
  if (is_called_back()) {
    throw InvalidArgument(
        "a call that waits, inside of what runs when another one is complete; expected one with async_op=True");
  }
  std::unique_lock lock(state_->mutex);
  while (const int pending = num_pending()) {
    // What is called back may start more.
    lock.unlock();
    num_pending_->wait(pending);
    lock.lock();
  }
  Communicator& communicator = checked();
  try {
    if (call.what == kBarrier) {
      // As it is started: the others may have something under way.
      std::int8_t token = 0;
      communicator.run(barrier_call(token));
    } else if (call.what >= kFirstMovement) {
      communicator.move(movement_call(call));
    } else {
      communicator.run(collective_call(call));
    }
  } catch (const TransportError& error) {
    throw TransportError(with_timeout(error.what()));
  }
}

void Collectives::start(const NumberedCall& call, std::shared_ptr<Callback> callback) {
  const std::lock_guard lock(state_->mutex);
  Communicator& communicator = checked();
  ++*num_pending_;
  auto token = std::make_shared<std::int8_t>(std::int8_t{0});
  const auto complete = [callback = std::move(callback), pending = num_pending_,
                         token](const std::exception_ptr& failure) {
    (*callback)(in_words_of_torch(failure));
    --*pending;
    pending->notify_all();  // until now, what is called may have started more, which must not run in another thread
                            // meanwhile
  };
  try {
    if (call.what == kBarrier) {
      communicator.start(barrier_call(*token), complete).detach();
    } else if (call.what >= kFirstMovement) {
      communicator.start_move(movement_call(call), complete).detach();
    } else {
      communicator.start(collective_call(call), complete).detach();
    }
  } catch (...) {
    --*num_pending_;
    num_pending_->notify_all();
    throw;
  }
}

void Collectives::close() {
  if (is_ending()) return;
  std::unique_ptr<Communicator> last;
  {
    const std::lock_guard lock(state_->mutex);
    last = std::move(state_->communicator);
  }
  last.reset();
}

void Collectives::abandon() {
  const auto* kept = new std::shared_ptr<State>(state_);
  const std::unique_lock lock((*kept)->mutex, std::try_to_lock);
  if (lock && num_pending() == 0) state_->communicator.reset();
}

Communicator& Collectives::checked() {
  if (is_closed()) throw InvalidArgument("this communicator is closed");
  return *state_->communicator;
}

}  // namespace gar::python
