// The flags of the command line program, in lines NAME=VALUE: nothing but UsageError may come out of their readers, and
// what is accepted is within its limits. Names of files are left out.
#include <cstddef>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/device.hpp"
#include "apps/gar/reproduce/reproduce.hpp"
#include "apps/gar/verbs/bench_options.hpp"
#include "apps/gar/verbs/fit_options.hpp"
#include "apps/gar/verbs/simulate_options.hpp"
#include "fuzz/harness.hpp"
#include "gar/errors.hpp"

namespace {

using gar::fuzz::attempt;
using gar::fuzz::require;

using namespace gar;
using namespace gar::cli;

void read_one(const std::string& value) {
  attempt([&] { require(!parse_algorithms(value).empty()); });
  attempt([&] { (void)parse_device(value); });
  attempt([&] { (void)parse_engine(value); });
  attempt([&] { require(parse_ranks(value) >= 1); });
  attempt([&] {
    const double seconds = parse_duration("--budget", value);
    require(seconds > 0 && seconds <= 86400);
  });
}

/// Sets the field that a line names.
void set(const std::map<std::string, std::string*>& fields, const std::string& name, const std::string& value) {
  const auto found = fields.find(name);
  if (found != fields.end()) *found->second = value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  BenchArgs bench;
  FitArgs fit;
  SimulationArgs simulation;
  const std::map<std::string, std::string*> bench_fields{{"begin", &bench.begin},   {"end", &bench.end},
                                                         {"factor", &bench.factor}, {"increment", &bench.increment},
                                                         {"sizes", &bench.sizes},   {"counts", &bench.counts},
                                                         {"gpus", &bench.gpus},     {"iterations", &bench.iterations},
                                                         {"warmup", &bench.warmup}, {"check", &bench.check},
                                                         {"batch", &bench.batch},   {"dtype", &bench.dtype},
                                                         {"op", &bench.op},         {"collective", &bench.collective},
                                                         {"device", &bench.device}, {"transport", &bench.transport},
                                                         {"algo", &bench.algo},     {"timeout", &bench.timeout},
                                                         {"local", &bench.local}};
  const std::map<std::string, std::string*> fit_fields{
      {"local", &fit.local},     {"budget", &fit.budget}, {"sizes", &fit.sizes},        {"seed", &fit.seed},
      {"timeout", &fit.timeout}, {"device", &fit.device}, {"transport", &fit.transport}};
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t sign = line.find('=');
    if (sign == std::string::npos) continue;
    const std::string name = line.substr(0, sign);
    const std::string value = line.substr(sign + 1);
    read_one(value);
    set(bench_fields, name, value);
    set(fit_fields, name, value);
    if (name == "slow") simulation.slow.push_back(value);
    if (name == "degrade") simulation.degrade.push_back(value);
    if (name == "jitter") simulation.jitter = value;
  }
  attempt([&] { require(!parse_bench(bench).sizes.empty()); });
  attempt([&] { (void)parse_fit(fit); });
  attempt([&] { (void)parse_what_if(simulation); });
  return 0;
}
