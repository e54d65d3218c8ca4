// Measures what is between ranks (runtime/network_costs.hpp) with the transport that will run their operations.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/network_costs.hpp"
#include "runtime/transport.hpp"

namespace gar {

class TransportProbe final : public NetworkProbe {
 public:
  /// Operations of the set-up take numbers from `sequence` on.
  TransportProbe(Transport& transport, std::uint64_t sequence) : transport_(transport), sequence_(sequence) {}
  [[nodiscard]] int rank() const override { return transport_.rank(); }
  [[nodiscard]] int size() const override { return transport_.size(); }
  void barrier() override { all_gather(0); }
  void shift(std::span<const Shift> messages, int bytes) override;

 protected:
  void gather_bytes(std::span<const std::byte> in, std::span<std::byte> out) override;

 private:
  Signature next_signature(std::int64_t bytes);

  Transport& transport_;
  std::uint64_t sequence_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(static_cast<std::size_t>(kMostBytes));
};

}  // namespace gar
