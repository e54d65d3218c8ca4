// gar/gar.h without communicators: prices, plans and proofs, as the documents that gar prints with --json.
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/documents.hpp"
#include "gar/plan_io.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/quantity.hpp"
#include "gar/topology_io.hpp"
#include "gar/verify.hpp"
#include "runtime/c_api.hpp"

namespace gar::c_api {
namespace {

Topology network_of(const char* topology, const char* function) {
  require(topology != nullptr, function,
          "`topology` is NULL; expected a topology file, a name, or a generator such as star:8");
  return load_topology(topology);
}

VectorSize size_of_vector(std::int64_t count, gar_type type, const char* function) {
  require(type >= 0 && type < kNumDataTypes, function,
          "`type` is " + std::to_string(type) + "; expected GAR_INT8 (0) to GAR_FLOAT64 (11)");
  require(count > 0, function, "`count` is " + std::to_string(count) + "; expected a number of elements from 1");
  return vector_size_of_count("count", std::to_string(count), static_cast<DataType>(type));
}

/// "ring,cps"; null: all.
std::vector<AlgorithmSpec> algorithms_of(const char* names) {
  std::vector<AlgorithmSpec> out;
  if (names == nullptr) {
    out = classic_algorithms();
    for (const AlgorithmInfo& info : algorithms()) {
      if (info.needs_network()) out.push_back({std::string(info.name), {}, false});
    }
    return out;
  }
  std::istringstream words(names);
  for (std::string word; std::getline(words, word, ',');) out.push_back(parse_algorithm(word));
  if (out.empty()) out.push_back(parse_algorithm(""));  // throws what is accepted
  return out;
}

/// A copy for a C program, which frees it.
char* copy_of(const std::string& text) {
  void* memory = std::malloc(text.size() + 1);
  if (memory == nullptr) throw std::bad_alloc();
  std::memcpy(memory, text.c_str(), text.size() + 1);
  return static_cast<char*>(memory);
}

void require_place(const void* place, const char* name, const char* function) {
  require(place != nullptr, function,
          "`" + std::string(name) + "` is NULL; expected where the answer shall be written");
}

}  // namespace
}  // namespace gar::c_api

using namespace gar::c_api;  // NOLINT(google-build-using-namespace): this file is that interface

extern "C" {

gar_status gar_predict(const char* topology, int64_t count, gar_type type, const char* algorithms, char** json) {
  return guarded("gar_predict", [&](const char* function) {
    require_place(json, "json", function);
    const gar::Topology network = network_of(topology, function);
    const gar::VectorSize size = size_of_vector(count, type, function);
    const gar::PredictAnswer answer = gar::predict({network, size.floats(), algorithms_of(algorithms)});
    *json = copy_of(gar::predict_document(network, size, {}, answer));
  });
}

gar_status gar_plan(const char* topology, int64_t count, gar_type type, const char* algorithm, char** json) {
  return guarded("gar_plan", [&](const char* function) {
    require_place(json, "json", function);
    const gar::VectorSize size = size_of_vector(count, type, function);
    gar::PlanRequest request{.topology = network_of(topology, function), .size_floats = size.floats()};
    if (algorithm != nullptr) request.algorithms = algorithms_of(algorithm);
    gar::PlanAnswer answer = gar::plan(request);
    answer.plan.count = size.count;
    std::ostringstream out;
    gar::write_plan_document(request, answer, answer.priced->critical_stages(size.floats()), gar::PlanDetail::kPlain,
                             out);
    *json = copy_of(out.str());
  });
}

gar_status gar_verify(const char* plan, int* is_proved, char** json) {
  return guarded("gar_verify", [&](const char* function) {
    require_place(is_proved, "is_proved", function);
    require(plan != nullptr, function, "`plan` is NULL; expected a plan file, or the text of one");
    const bool is_text = *plan == '{';
    const std::string source = is_text ? "plan" : plan;
    std::istringstream text(is_text ? plan : "");
    const gar::Plan read = is_text ? gar::read_plan(text, source) : gar::read_plan_file(source);
    const gar::VerifyReport report = gar::verify(read);
    char* document = json == nullptr ? nullptr : copy_of(gar::verify_document(read, report, source));
    *is_proved = report.ok ? 1 : 0;
    if (json != nullptr) *json = document;
  });
}

void gar_text_free(char* text) { std::free(text); }
}
