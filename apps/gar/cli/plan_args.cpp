// --collective and plan files.
#include "apps/gar/cli/plan_args.hpp"

#include <iostream>

#include "gar/io.hpp"

namespace gar::cli {

CLI::Option* add_collective_option(CLI::App& verb, std::string& collective, const std::string& what) {
  return verb.add_option("--collective", collective, what)
      ->type_name("C")
      ->check(CLI::IsMember({"allreduce", "reduce-scatter", "all-gather"}))
      ->capture_default_str();
}

Collective collective_of(const std::string& word) {
  return word == "reduce-scatter" ? Collective::kReduceScatter
         : word == "all-gather"   ? Collective::kAllGather
                                  : Collective::kAllReduce;
}

std::string collective_word(Collective collective) {
  return collective == Collective::kReduceScatter ? "reduce-scatter"
         : collective == Collective::kAllGather   ? "all-gather"
                                                  : "allreduce";
}

Plan load_plan(const std::string& path) {
  return path == "-" ? read_plan(std::cin, "standard input") : read_plan_file(path);
}

}  // namespace gar::cli
