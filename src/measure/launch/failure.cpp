// Exceptions as messages and exit codes, for programs.
#include "gar/measure/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "gar/errors.hpp"
#include "measure/launch/failures.hpp"

namespace gar::measure {

Failure describe_failure(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const UsageError& e) {
    return {kExitUsage, e.what()};
  } catch (const TransportError& e) {
    return {kExitRunTime, e.what()};
  } catch (const DeviceError& e) {
    return {kExitRunTime, e.what()};
  } catch (const Error& e) {
    return {kExitBadInput, e.what()};
  } catch (const std::bad_alloc&) {
    return {kExitRunTime, "out of memory"};
  } catch (const std::exception& e) {
    return {kExitRunTime, e.what()};
  } catch (...) {
    return {kExitRunTime, "an unknown error"};
  }
}

void report_failures(const std::vector<RankFailure>& failures, int num_ranks, const Report& report) {
  std::map<std::string, std::vector<int>> ranks_with;
  for (const RankFailure& failure : failures) ranks_with[failure.message].push_back(failure.rank);
  for (const RankFailure& failure : failures) {
    const auto found = ranks_with.find(failure.message);
    if (found == ranks_with.end()) continue;  // reported with the first of these ranks
    std::vector<int> ranks = std::move(found->second);
    ranks_with.erase(found);
    std::sort(ranks.begin(), ranks.end());
    const bool is_of_all = static_cast<int>(ranks.size()) == num_ranks;
    report(is_of_all ? failure.message : fmt::format("{}: {}", rank_words(ranks), failure.message));
  }
}

}  // namespace gar::measure
