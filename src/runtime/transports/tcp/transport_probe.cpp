#include "runtime/transports/tcp/transport_probe.hpp"

#include <algorithm>
#include <cstring>

#include "gar/errors.hpp"
#include "runtime/engine.hpp"

namespace gar {

namespace {

template <class Try>
void wait_until(Transport& transport, const Try& is_done) {
  while (!is_done()) transport.wait();
  transport.progressed();
}

/// One step, in which a rank sends and receives these messages.
ChunkProgram shift_program(std::span<const NetworkProbe::Shift> messages, int bytes) {
  ChunkProgram program;
  program.block_count = std::int64_t{bytes} * static_cast<std::int64_t>(messages.size());
  ChunkStep& step = program.steps.emplace_back();
  std::int64_t begin = 0;
  for (const NetworkProbe::Shift& message : messages) {
    const std::int64_t end = begin + bytes;
    if (message.to >= 0) step.sends.push_back({message.to, begin, end, {{Space::kInput, 0, begin, bytes}}, begin});
    if (message.from >= 0) {
      ChunkRecv& recv = step.recvs.emplace_back();
      recv.peer = message.from;
      recv.begin = begin;
      recv.end = end;
    }
    begin = end;
  }
  return program;
}

}  // namespace

Signature TransportProbe::next_signature(std::int64_t bytes) {
  if (sequence_ + 1 >= kFirstSequence) throw TransportError("too much was measured while a communicator was made");
  Signature out;
  out.sequence = sequence_++;
  out.collective = Collective::kAllGather;
  out.count = bytes;
  out.type = DataType::kUint8;
  return out;
}

void TransportProbe::shift(std::span<const Shift> messages, int bytes) {
  const ChunkProgram program = shift_program(messages, bytes);
  const Signature signature = next_signature(program.block_count);
  transport_.begin(signature, {});
  Flight flight;
  flight.program = &program;
  flight.serial = static_cast<std::uint32_t>(signature.sequence);
  flight.input = {memory_.data(), 0};
  flight.work = {memory_.data(), 0};
  std::vector<const std::byte*> operands(program.steps.front().recvs.size());
  wait_until(transport_, [&] { return transport_.try_open(flight); });
  wait_until(transport_, [&] { return transport_.try_send(flight, 0); });
  wait_until(transport_, [&] { return transport_.try_receive(flight, 0, operands); });
  transport_.consumed(flight, 0);
  wait_until(transport_, [&] { return transport_.try_close(flight); });
}

void TransportProbe::gather_bytes(std::span<const std::byte> in, std::span<std::byte> out) {
  transport_.begin(next_signature(static_cast<std::int64_t>(in.size())), {});
  std::vector<const std::byte*> operands(static_cast<std::size_t>(size()));
  wait_until(transport_,
             [&] { return transport_.try_exchange(in.data(), static_cast<std::int64_t>(in.size()), operands); });
  for (std::size_t i = 0; i < operands.size(); ++i) std::memcpy(out.data() + i * in.size(), operands[i], in.size());
}

}  // namespace gar
