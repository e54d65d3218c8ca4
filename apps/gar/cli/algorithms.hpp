// --algo, --model and --incast-degree, which several verbs have.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "gar/algorithms.hpp"
#include "gar/model.hpp"

namespace gar::cli {

struct ModelArgs {
  std::string model = "genmodel";
  std::string degree = "senders";
};
/// Adds `--model` and `--incast-degree`.
void add_model_options(CLI::App& verb, ModelArgs& args);
ModelOptions model_options(const ModelArgs& args);
/// "GenModel", "GenModel without mu" or "(alpha,beta,gamma)".
std::string model_name(const ModelOptions& options);

/// Adds `--algo`; the text goes to parse_algorithms.
CLI::Option* add_algo_option(CLI::App& verb, std::string& text, const std::string& what);
/// A comma-separated list; `all` stands for the classic algorithms and the tree planners. Throws UsageError.
std::vector<AlgorithmSpec> parse_algorithms(const std::string& text);

}  // namespace gar::cli
