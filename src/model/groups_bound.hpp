// What groups as even as possible cost at least where it matters in which places of a tree they are.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "model/link_loads.hpp"

namespace gar {

/// Uneven HCPS: does every rank of a group of m hold one interval, all of them equally long, after these levels?
bool holds_intervals(const std::vector<std::int64_t>& factors, std::int64_t m, std::size_t num_levels);

/// A bound beside uneven_hcps_bound(), which knows no places: groups that are cut by the border of a switch meet across
/// it, and what many ranks below a link have for others leaves over it at once.
class GroupsBound {
 public:
  /// Counts as the options say, for an AllReduce or the half of it that they name.
  GroupsBound(const Topology& topology, const ModelOptions& options);
  /// The arguments are those of uneven_hcps_bound(). O(groups * links above a rank).
  [[nodiscard]] double seconds(const std::vector<std::int64_t>& factors, double size_floats,
                               const std::function<double(std::int64_t distance)>& path, bool has_equal_shares) const;

 private:
  struct Query;
  struct Group;
  struct Loads;
  [[nodiscard]] double of_group(const Query& query, std::size_t level, std::int64_t first, std::int64_t members) const;
  [[nodiscard]] double of_stage(const Query& query, const Group& group) const;
  [[nodiscard]] Loads loads_at(const Query& query, const Group& group, std::int64_t rank) const;
  void add_link(const Group& group, double piece, std::int32_t instance, Loads& loads) const;

  const Topology& topology_;
  ModelOptions options_;
  PricingTree tree_;
  ServerParams least_;  // of all servers
};

}  // namespace gar
