// Where a step function changes. What is best (a plan, an algorithm) stays the same over a range of sizes or of numbers
// of servers; this search finds the ends of such ranges by bisection.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace gar {

/// A place (a size, a number of servers) and what is best there.
template <class Place>
struct KnownBest {
  Place place{};
  std::string best;
};

/// How to look for changes.
template <class Place>
struct ChangeSearch {
  std::function<std::string(Place)> best;
  /// A place between two others; nothing when they are so close that it does not matter.
  std::function<std::optional<Place>(Place near, Place far)> middle;
  /// Whether two places with the same best are taken to have it everywhere between them; null: always.
  std::function<bool(Place near, Place far)> is_trusted{};
};

/// Calls `found` with the far side of every change, nearest first, until it returns false. Says whether it never did.
template <class Place, class Found>
bool find_changes(const ChangeSearch<Place>& search, const KnownBest<Place>& near, const KnownBest<Place>& far,
                  const Found& found) {
  const bool is_same = near.best == far.best;
  if (is_same && (!search.is_trusted || search.is_trusted(near.place, far.place))) return true;
  const std::optional<Place> middle = search.middle(near.place, far.place);
  if (!middle) return is_same || found(far);
  const KnownBest<Place> between{*middle, search.best(*middle)};
  return find_changes(search, near, between, found) && find_changes(search, between, far, found);
}

/// The far side of the change that is nearest to `near`; nothing when there is none.
template <class Place>
std::optional<KnownBest<Place>> first_change(const ChangeSearch<Place>& search, const KnownBest<Place>& near,
                                             const KnownBest<Place>& far) {
  std::optional<KnownBest<Place>> out;
  find_changes(search, near, far, [&](const KnownBest<Place>& change) {
    out = change;
    return false;
  });
  return out;
}

}  // namespace gar
