// Plan to JSON text, as a stream: nothing but a small buffer is kept. The format is described in docs/formats-plan.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <ostream>

#include "gar/errors.hpp"
#include "gar/plan_io.hpp"
#include "gar/version.hpp"
#include "io/json_text.hpp"
#include "io/plan/json.hpp"

namespace gar {
namespace {

std::string_view name_of(StageKind kind) {
  const auto* found = std::find_if(std::begin(kDigitStages), std::end(kDigitStages),
                                   [&](const auto& row) { return row.second == kind; });
  return found->first;
}

std::string_view schema_of(const Plan& plan) {
  return plan.is_explicit() || has_halves(plan) ? kPlanSchema : kExchangePlanSchema;
}

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) {}

  template <class... Args>
  void write(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() > kFlushBytes) flush();
  }
  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  void write_fields(const Plan& plan) {
    write("\"schema\":\"{}\",\n\"algorithm\":{},\n\"collective\":\"{}\",\n", schema_of(plan), quoted(plan.algorithm),
          to_string(plan.collective));
    write("\"num_ranks\":{},\n\"num_units\":{},\n", plan.num_ranks, plan.num_units);
    if (plan.num_chunks != 1) write("\"num_chunks\":{},\n", plan.num_chunks);
    write("\"count\":{}", plan.count);
    const char* line = "\n";
    if (plan.is_explicit()) {
      write(",\n\"programs\":[");
      for (const RankProgram& program : plan.programs) {
        write("{}", line);
        write_program(program);
        line = ",\n";
      }
      write("]");
    } else if (!plan.subplans.empty()) {
      write(",\n\"root\":{},\n\"subplans\":[", plan.root);
      for (const SubPlan& subplan : plan.subplans) {
        write("{}", line);
        write_subplan(subplan);
        line = ",\n";
      }
      write("]");
    }
  }

 private:
  void write_subplan(const SubPlan& subplan) {
    write("{{\"label\":{},\"children\":[", quoted(subplan.label));
    const char* comma = "";
    for (const SubPlanRun& run : subplan.children) {
      write("{}[{},{}]", comma, run.subplan, run.count);
      comma = ",";
    }
    write("],\"stages\":[");
    comma = "";
    for (const Stage& stage : subplan.stages) {
      write("{}", comma);
      comma = ",";
      if (stage.kind != StageKind::kPlace) {
        write("[\"{}\",{},{}]", name_of(stage.kind), stage.stride, stage.radix);
        continue;
      }
      write("{{\"place\":[");
      const char* between = "";
      for (const Piece& piece : stage.target) {
        write("{}[{},{},{}]", between, piece.begin, piece.end, piece.owner);
        between = ",";
      }
      write("]}}");
    }
    write("]}}");
  }

  void write_program(const RankProgram& program) {
    write("[");
    const char* comma = "";
    for (const Step& step : program.steps) {
      write("{}[{},[", comma, step.number);
      const char* between = "";
      for (const Message& m : step.sends) {
        write("{}{},{},{}", between, m.peer, m.begin, m.end);
        between = ",";
      }
      write("],[");
      between = "";
      for (const Message& m : step.recvs) {
        write("{}{},{},{},{}", between, m.peer, m.begin, m.end, m.accumulate ? 1 : 0);
        between = ",";
      }
      write("]]");
      comma = ",";
    }
    write("]");
  }

  static constexpr std::size_t kFlushBytes = std::size_t{1} << 16;
  std::ostream& out_;
  fmt::memory_buffer buffer_;
};

}  // namespace

std::string_view find_plan_note(std::string_view name) {
  const auto* found = std::find(std::begin(kPlanNotes), std::end(kPlanNotes), name);
  return found == std::end(kPlanNotes) ? std::string_view() : *found;
}

void write_plan(const Plan& plan, std::ostream& out, std::span<const PlanNote> notes) {
  Writer writer(out);
  writer.write("{{\n\"gar_version\":{},\n", quoted(std::string(version())));
  writer.write_fields(plan);
  for (const PlanNote& note : notes) {
    if (find_plan_note(note.field).empty()) {
      throw InvalidArgument(
          fmt::format("\"{}\" is no note of a plan; expected {}", note.field, fmt::join(kPlanNotes, ", ")));
    }
    writer.write(",\n\"{}\":{}", note.field, note.json);
  }
  writer.write("\n}}\n");
  writer.flush();
}

}  // namespace gar
