// The paper's Table `tab:gentreesimu` (Section 5.3), and the laws that its cells follow.
//
// The values are typed from the table in the paper's source. The laws are found from the values: the paper does not
// state them. In all of them alpha, beta, gamma, delta, epsilon and w_t = 9 are those of Table `tab:gtcoe`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace gar::cli {

/// Floats of the table's three columns.
inline constexpr std::array<std::int64_t, 3> kSimuSizes{10'000'000, 32'000'000, 100'000'000};

/// A row of the table: seconds for the three sizes.
struct SimuRow {
  std::string_view network;    ///< as the built-in topologies are called
  std::string_view algorithm;  ///< as on the command line; gentree-norearrange is the table's GenTree*
  std::array<double, kSimuSizes.size()> seconds;
};

/// All rows, as the table has them.
std::span<const SimuRow> simu_rows();
/// A cell of the table; nothing where the table has none.
std::optional<double> simu_seconds(std::string_view network, std::string_view algorithm, std::int64_t size);

/// The laws.
enum class SimuLaw { kRing, kSwitchCps, kSwitchHcps, kSwitchRhd, kRackCps };

/// Which law a cell follows: the table's cells, and hcps on one switch. Nothing where none is known.
std::optional<SimuLaw> simu_law(std::string_view network, std::string_view algorithm, std::int64_t size);
/// Seconds by that law.
std::optional<double> simu_law_seconds(std::string_view network, std::string_view algorithm, std::int64_t size);

/// Ring: `steps` steps in each half, one of them with `latency`; a float of the vector costs `beta` on the busiest
/// link.
struct RingLaw {
  std::int64_t steps = 0;
  double latency = 0;
  double beta = 0;
};
double ring_law_seconds(const RingLaw& law, double size_floats);
/// One switch with `servers` servers.
double switch_cps_seconds(std::int64_t servers, double size_floats);
double switch_hcps_seconds(std::int64_t servers, double size_floats);
double switch_rhd_seconds(std::int64_t servers, double size_floats);
/// Flat CPS on `racks` racks of `servers` servers.
double rack_cps_seconds(std::int64_t racks, std::int64_t servers, double size_floats);

}  // namespace gar::cli
