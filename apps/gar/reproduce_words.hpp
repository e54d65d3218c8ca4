// Costs in words, for the reproductions that have to say why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gar/model.hpp"

namespace gar::cli {

/// What `other` pays more and what it pays less than `base`, largest difference first: "8.26 ms more latency (alpha),
/// 3.1 ms less incast (epsilon)". Differences below 2% of the largest are left out.
std::string difference_words(const Terms& base, const Terms& other);

/// The terms that make up a cost, largest first, with their shares: "61% link time (beta), 39% latency (alpha)". Shares
/// below 1% are left out.
std::string share_words(const Terms& terms);

/// An item of a list: two blanks before its first line, four before the others, at most 120 columns, broken at blanks.
std::string list_item(std::string_view text);

/// "8x3".
std::string factors_text(const std::vector<std::int64_t>& factors);

}  // namespace gar::cli
