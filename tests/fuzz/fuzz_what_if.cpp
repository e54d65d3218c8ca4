// What is wrong with a network ("rack1.uplink=0.5"), one condition in a line: the reader either throws UsageError or
// returns conditions that can be laid over a network, or are refused with InvalidArgument.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "fuzz/harness.hpp"
#include "gar/errors.hpp"
#include "gar/topology.hpp"
#include "gar/what_if.hpp"

namespace {

using gar::fuzz::require;

constexpr std::size_t kMostLines = 20;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Kind = gar::Condition::Kind;
  static const gar::Topology kNetwork = gar::topology_from_spec("tree:2x3");
  gar::WhatIf what_if;
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  std::string line;
  for (std::size_t i = 0; i < kMostLines && std::getline(lines, line); ++i) {
    for (const Kind kind : {Kind::kSlow, Kind::kDegrade, Kind::kFail, Kind::kBackground}) {
      try {
        what_if.conditions.push_back(gar::parse_condition(kind, "--flag", line));
        require(std::isfinite(what_if.conditions.back().value));
      } catch (const gar::UsageError&) {
      }
    }
  }
  try {
    gar::SimulationOptions options;
    gar::apply(what_if, kNetwork, options);
  } catch (const gar::InvalidArgument&) {
  }
  return 0;
}
