// A few bytes from every rank to every rank, on a transport that is being set up.
#pragma once

#include <cstring>
#include <type_traits>
#include <vector>

#include "runtime/transport.hpp"

namespace gar {

/// All ranks' values. `sequence` grows from 1 and stays below kFirstSequence (runtime/engine.hpp).
template <class T>
std::vector<T> exchange_once(Transport& transport, std::uint64_t sequence, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  Signature signature;
  signature.sequence = sequence;
  signature.collective = Collective::kAllGather;
  signature.count = sizeof(T);
  signature.type = DataType::kUint8;
  transport.begin(signature, {});
  std::vector<const std::byte*> operands(static_cast<std::size_t>(transport.size()));
  while (!transport.try_exchange(&value, sizeof(T), operands)) transport.wait();
  transport.progressed();
  std::vector<T> out(operands.size());
  for (std::size_t i = 0; i < out.size(); ++i) std::memcpy(&out[i], operands[i], sizeof(T));
  return out;
}

}  // namespace gar
