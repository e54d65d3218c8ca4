// The file formats of topologies, plans and results: a new importer or exporter is one file and one line here.
#include "io/results/formats.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "gar/plan_io.hpp"
#include "gar/topology_io.hpp"

namespace gar {
namespace {

bool is_json_object(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{';
}

void write_plan_only(const Plan& plan, std::ostream& out) { write_plan(plan, out); }

constexpr std::string_view kJsonFiles[] = {".json"};
constexpr std::string_view kDotFiles[] = {".dot", ".gv"};

constexpr TopologyReader kTopologyReaders[] = {
    {"gar-json", "our own files, nested or flat", is_json_object, parse_topology},
};
constexpr TopologyWriter kTopologyWriters[] = {
    {"json", kJsonFiles, write_topology},
    {"dot", kDotFiles, write_topology_dot},
};
constexpr PlanReader kPlanReaders[] = {
    {"gar-json", "our own files, sub-plans or explicit programs", read_plan},
};
constexpr PlanWriter kPlanWriters[] = {
    {"gar-json", "our own files, as gar plan -o writes them", write_plan_only},
};
constexpr ResultsDocument kResultsDocuments[] = {
    {"gar bench", "gar.bench/", read_bench_document},
};
constexpr ResultsTable kResultsTables[] = {
    {"gar bench", is_bench_opening, is_bench_head, bench_reader},
    {"nccl-tests", is_nccl_opening, is_nccl_head, nccl_reader},
    {"OSU", is_osu_opening, is_osu_head, osu_reader},
    {"IMB-MPI1", is_imb_opening, is_imb_head, imb_reader},
};

template <class Format>
const Format* find_by_name(std::span<const Format> formats, std::string_view name) {
  const auto found = std::find_if(formats.begin(), formats.end(), [&](const Format& f) { return f.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace

std::span<const TopologyReader> topology_readers() { return kTopologyReaders; }
std::span<const TopologyWriter> topology_writers() { return kTopologyWriters; }
std::span<const PlanReader> plan_readers() { return kPlanReaders; }
std::span<const PlanWriter> plan_writers() { return kPlanWriters; }
std::span<const ResultsDocument> results_documents() { return kResultsDocuments; }
std::span<const ResultsTable> results_tables() { return kResultsTables; }

const TopologyReader* find_topology_reader(std::string_view name) { return find_by_name(topology_readers(), name); }
const TopologyWriter* find_topology_writer(std::string_view name) { return find_by_name(topology_writers(), name); }

const TopologyWriter* topology_writer_of(std::string_view path) {
  for (const TopologyWriter& writer : kTopologyWriters) {
    const bool is_its_file = std::any_of(writer.extensions.begin(), writer.extensions.end(),
                                         [&](std::string_view extension) { return path.ends_with(extension); });
    if (is_its_file) return &writer;
  }
  const std::string_view file = path.substr(path.find_last_of('/') + 1);
  const bool has_ending = file.find('.', 1) != std::string_view::npos;
  return has_ending ? nullptr : kTopologyWriters;
}

}  // namespace gar
