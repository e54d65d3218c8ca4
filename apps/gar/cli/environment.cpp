#include "apps/gar/cli/environment.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/topology_io.hpp"

namespace gar::cli {
namespace {

/// What environment::check() leaves to those who read the variable.
void check_text(const EnvironmentVariable& variable, const std::string& value) {
  const std::string_view name = variable.name;
  if (value.empty()) return;
  if (name == environment::kDebug.name && value != "INFO" && value != "WARN" && value != "0") {
    environment::refuse(variable, value);
  }
  try {
    if (name == environment::kAlgo.name && value != "auto" && value != "latency") (void)parse_algorithm(value);
    if (name == environment::kTopology.name) (void)load_topology(value);
  } catch (const Error& e) {
    throw InvalidArgument(fmt::format("{}={} in the environment: {}", name, value, e.what()));
  }
}

}  // namespace

void check_environment(const std::function<bool(const EnvironmentVariable&)>& is_read) {
  for (const EnvironmentVariable& variable : environment::kAll) {
    if (!is_read(variable)) continue;
    environment::check(variable);
    if (variable.value == EnvironmentValue::kText) check_text(variable, environment::text(variable));
  }
}

bool is_read_by_ranks(const EnvironmentVariable& variable) {
  return variable.reader == EnvironmentReader::kRuntime || variable.reader == EnvironmentReader::kTests;
}

}  // namespace gar::cli
