#include "runtime/engine_running.hpp"

namespace gar {

namespace {

Operands operands_of(const CollectiveCall& call, const Path& path, int size, std::optional<Stream> stream) {
  return {.in = call.in,
          .out = call.out,
          .in_bytes = in_bytes(call, size),
          .out_bytes = out_bytes(call, size),
          .stream = stream,
          .schedule = path.schedule.get()};
}

void reduce_exchanged(const CollectiveCall& call, int rank, std::span<const std::byte*> operands) {
  const std::int64_t bytes = call.count * size_of(call.type);
  if (bytes == 0) return;
  if (call.collective == Collective::kAllGather) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::byte* out = static_cast<std::byte*>(call.out) + static_cast<std::int64_t>(i) * bytes;
      if (static_cast<int>(i) != rank || out != call.in) copy(out, operands[i], bytes);
    }
    return;
  }
  std::vector<const void*> inputs(operands.begin(), operands.end());
  if (call.collective == Collective::kReduceScatter) {
    for (const void*& input : inputs) input = static_cast<const std::byte*>(input) + rank * bytes;
  }
  reduce(call.type, call.op, call.out, inputs, call.count);
}

}  // namespace

Engine::Running::Running(Engine& engine, const CollectiveCall& call, const Path& path, std::optional<Stream> stream)
    : engine_(engine), call_(call), schedule_(path.schedule) {
  if (path.is_native && engine.has_failed_) throw TransportError("this communicator has failed before");
  if (path.is_native) {  // the transport has no part in it, and the number of the operation stays for the next one
    native_ = engine.exploration_.native.get();
    native_->start(call);
    return;
  }
  signature_ = engine.next_signature(call, schedule_.get());
  operands_ = operands_of(call, path, engine.size(), stream);
  Transport& transport = *engine.transport_;
  transport.begin(signature_, operands_);
  if (schedule_ == nullptr) {
    exchanged_.resize(static_cast<std::size_t>(engine.size()));
    return;
  }
  execution_.emplace(transport, *schedule_, call, engine.serial_);
  engine.serial_ += static_cast<std::uint64_t>(schedule_->num_chunks);
}

bool Engine::Running::advance() {
  if (native_ != nullptr) return native_->test();
  DeviceSide* device = engine_.device_;
  if (execution_) return execution_->advance() && (device == nullptr || device->try_complete());
  return device == nullptr ? advance_exchange() : advance_without_plan(*device);
}

bool Engine::Running::advance_exchange() {
  Transport& transport = *engine_.transport_;
  if (!transport.try_exchange(call_.in, operands_.in_bytes, exchanged_)) return false;
  transport.progressed();
  reduce_exchanged(call_, engine_.rank(), exchanged_);
  return true;
}

bool Engine::Running::advance_without_plan(DeviceSide& device) {
  if (!has_met_) {
    if (!device.try_meet()) return false;
    has_met_ = true;
    Compute& compute = engine_.transport_->compute();
    if (call_.count > 0 && engine_.size() > 1) {
      engine_.own_->run(signature_, operands_);
    } else if (call_.count > 0 && call_.in != call_.out) {
      compute.copy(call_.out, call_.in, operands_.in_bytes, Stores::kCached);
      compute.end_step();
    }
  }
  return device.try_complete();
}

}  // namespace gar
