// Plan to JSON text, as a stream: nothing but a small buffer is kept. The format is described in docs/formats-plan.md.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "gar/io.hpp"
#include "io/plan/json.hpp"

namespace gar {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
        write("[\"{}\",{},{}]", stage.kind == StageKind::kRing ? "ring" : "direct", stage.stride, stage.radix);
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

 private:
  static constexpr std::size_t kFlushBytes = std::size_t{1} << 16;
  std::ostream& out_;
  fmt::memory_buffer buffer_;
};

}  // namespace

void write_plan_fields(const Plan& plan, std::ostream& out) {
  Writer writer(out);
  writer.write("\"schema\":\"{}\",\n\"algorithm\":{},\n\"collective\":\"{}\",\n", kPlanSchema, quoted(plan.algorithm),
               to_string(plan.collective));
  writer.write("\"num_ranks\":{},\n\"num_units\":{},\n", plan.num_ranks, plan.num_units);
  if (plan.num_chunks != 1) writer.write("\"num_chunks\":{},\n", plan.num_chunks);
  writer.write("\"count\":{}", plan.count);
  const char* line = "\n";
  if (plan.is_explicit()) {
    writer.write(",\n\"programs\":[");
    for (const RankProgram& program : plan.programs) {
      writer.write("{}", line);
      writer.write_program(program);
      line = ",\n";
    }
    writer.write("]");
  } else if (!plan.subplans.empty()) {
    writer.write(",\n\"root\":{},\n\"subplans\":[", plan.root);
    for (const SubPlan& subplan : plan.subplans) {
      writer.write("{}", line);
      writer.write_subplan(subplan);
      line = ",\n";
    }
    writer.write("]");
  }
  writer.flush();
}

void write_plan(const Plan& plan, std::ostream& out) {
  out << "{";
  write_plan_fields(plan, out);
  out << "}\n";
}

}  // namespace gar
