// JSON text to Plan.
//
// The JSON library's events drive a stack of scopes: the reader knows at every moment where it stands, stores what it
// reads at once, and can name the place of an error by its path. No document is ever built, nothing is reserved from a
// count in the file, and nesting is bounded, so memory follows what the file really holds. What only the whole plan can
// show (do the digits fit, does a placement cover the vector) is left to PlanIndex, what it computes to verify().
#include "io/plan/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/plan_io.hpp"
#include "gar/topology.hpp"
#include "io/guarded_stream.hpp"
#include "io/input_file.hpp"
#include "io/json_text.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 31;
constexpr std::size_t kMaxNesting = 64;

enum class Scope : std::uint8_t {
  kDocument,
  kTop,
  kSubPlans,
  kSubPlan,
  kChildren,
  kChild,
  kStages,
  kDigitStage,
  kPlaceStage,
  kTarget,
  kPiece,
  kPrograms,
  kProgram,
  kStep,
  kSends,
  kRecvs,
  kSkipped
};

/// An object or a list that is being read.
struct Frame {
  Scope scope = Scope::kDocument;
  bool is_object = false;
  std::int64_t index = 0;   // list: elements before the current one
  std::uint32_t seen = 0;   // object: fields so far, one bit each
  std::string_view key;     // object: current field
  std::string skipped_key;  // what `key` refers to inside kSkipped
};

constexpr std::string_view kTopFields[] = {"schema",     "algorithm", "collective", "num_ranks", "num_units",
                                           "num_chunks", "count",     "root",       "subplans",  "programs"};
constexpr std::string_view kSubPlanFields[] = {"label", "children", "stages"};
constexpr std::string_view kPlaceFields[] = {"place"};

class Reader : public JsonEvents {
 public:
  explicit Reader(std::string source) : source_(std::move(source)) { frames_.push_back({}); }

  // The events, with the signatures that the JSON library asks for.
  bool null() { return other("null"); }
  bool boolean(bool value) { return other(value ? "true" : "false"); }
  bool binary(binary_t&) { return other("binary data"); }
  bool number_float(number_float_t, const string_t& text) { return other(printable(text)); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
      return other(std::to_string(value));
    return number_integer(static_cast<std::int64_t>(value));
  }
  bool number_integer(number_integer_t value) {
    if (top().scope != Scope::kSkipped && !is_note()) store(value);
    return value_ends();
  }
  bool string(string_t& value) {
    if (top().scope != Scope::kSkipped && !is_note()) store(value);
    return value_ends();
  }
  bool key(string_t& name) {
    if (top().scope == Scope::kSkipped) {
      top().skipped_key = printable(name);
      return true;
    }
    if (top().scope == Scope::kTop) return select(name, kTopFields);
    return top().scope == Scope::kSubPlan ? select(name, kSubPlanFields) : select(name, kPlaceFields);
  }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    throw ParseError(fmt::format("{}: not valid JSON at byte {}: {}", source_, position, problem_of(error)));
  }

  Plan finish();

 private:
  Frame& top() { return frames_.back(); }
  [[nodiscard]] const Frame& top() const { return frames_.back(); }
  /// Is the current field a note, which is skipped?
  [[nodiscard]] bool is_note() const { return top().scope == Scope::kTop && !find_plan_note(top().key).empty(); }

  [[nodiscard]] std::string path() const {
    std::string out;
    for (const Frame& f : frames_) {
      if (f.scope == Scope::kDocument) continue;
      if (!f.is_object) {
        out += fmt::format("[{}]", f.index);
      } else if (!f.key.empty() || !f.skipped_key.empty()) {
        out += fmt::format("{}{}", out.empty() ? "" : ".", f.key.empty() ? f.skipped_key : f.key);
      }
    }
    return out.empty() ? "document" : out;
  }
  [[noreturn]] void fail(const std::string& what) const { fail_at(path(), what); }
  [[noreturn]] void fail_at(const std::string& where, const std::string& what) const {
    throw ParseError(fmt::format("{}: {}: {}", source_, where, what));
  }
  [[noreturn]] void refuse(std::string_view what) const { fail(fmt::format("is {}; expected {}", what, accepted())); }
  [[nodiscard]] std::string accepted() const;

  bool other(std::string_view what) {
    if (top().scope != Scope::kSkipped && !is_note()) refuse(what);
    return value_ends();
  }
  bool value_ends() {
    ++top().index;
    return true;
  }

  template <std::size_t n>
  bool select(const std::string& name, const std::string_view (&fields)[n]) {
    for (std::size_t i = 0; i < n; ++i) {
      if (name != fields[i]) continue;
      top().key = fields[i];
      if ((top().seen >> i & 1U) != 0) fail("appears twice; expected once");
      top().seen |= 1U << i;
      return true;
    }
    if (top().scope == Scope::kTop) {
      top().key = find_plan_note(name);
      if (!top().key.empty()) return true;
    }
    top().key = {};
    fail(fmt::format("unknown field \"{}\"; expected {}", printable(name), fmt::join(fields, ", ")));
  }

  bool open(bool is_object) {
    if (frames_.size() > kMaxNesting) fail(fmt::format("nested deeper than {} levels", kMaxNesting));
    const Scope scope = scope_inside(is_object);
    if (scope == Scope::kDocument) refuse(is_object ? "an object" : "a list");
    if (scope == Scope::kSubPlan) plan_.subplans.emplace_back();
    if (scope == Scope::kChild) plan_.subplans.back().children.push_back({kLeaf, 0});
    if (scope == Scope::kDigitStage) plan_.subplans.back().stages.emplace_back();
    if (scope == Scope::kPlaceStage) plan_.subplans.back().stages.emplace_back().kind = StageKind::kPlace;
    if (scope == Scope::kPiece) plan_.subplans.back().stages.back().target.emplace_back();
    if (scope == Scope::kProgram) plan_.programs.emplace_back();
    if (scope == Scope::kStep) plan_.programs.back().steps.emplace_back();
    frames_.push_back({scope, is_object, 0, 0, {}, {}});
    return true;
  }
  [[nodiscard]] Scope scope_inside(bool is_object) const;
  bool close();

  std::int64_t in_range(std::int64_t value, std::int64_t least, std::int64_t most) const {
    if (value < least || value > most) fail(fmt::format("is {}; expected {} to {}", value, least, most));
    return value;
  }
  void store(std::int64_t value);
  void store(const std::string& value);
  void store_header(std::int64_t value);
  void store_message(std::vector<Message>& messages, std::int64_t width, std::int64_t value);

  std::string source_;
  std::vector<Frame> frames_;
  Plan plan_;
  std::uint32_t seen_ = 0;
};

Scope Reader::scope_inside(bool is_object) const {
  const Frame& f = top();
  if (f.scope == Scope::kSkipped || is_note()) return Scope::kSkipped;
  if (is_object) {
    if (f.scope == Scope::kDocument) return Scope::kTop;
    if (f.scope == Scope::kSubPlans) return Scope::kSubPlan;
    if (f.scope == Scope::kStages) return Scope::kPlaceStage;
    return Scope::kDocument;
  }
  switch (f.scope) {
    case Scope::kTop:
      return f.key == "subplans" ? Scope::kSubPlans : f.key == "programs" ? Scope::kPrograms : Scope::kDocument;
    case Scope::kSubPlan:
      return f.key == "children" ? Scope::kChildren : f.key == "stages" ? Scope::kStages : Scope::kDocument;
    case Scope::kChildren:
      return Scope::kChild;
    case Scope::kStages:
      return Scope::kDigitStage;
    case Scope::kPlaceStage:
      return Scope::kTarget;
    case Scope::kTarget:
      return Scope::kPiece;
    case Scope::kPrograms:
      return Scope::kProgram;
    case Scope::kProgram:
      return Scope::kStep;
    case Scope::kStep:
      return f.index == 1 ? Scope::kSends : f.index == 2 ? Scope::kRecvs : Scope::kDocument;
    default:
      return Scope::kDocument;
  }
}

std::string Reader::accepted() const {
  const Frame& f = top();
  switch (f.scope) {
    case Scope::kDocument:
      return fmt::format("an object with \"schema\": \"{}\"", kPlanSchema);
    case Scope::kTop:
      if (f.key == "schema")
        return fmt::format("\"{}\", \"{}\" or \"{}\"", kExchangePlanSchema, kPlanSchema, kOldPlanSchema);
      if (f.key == "algorithm") return "a string";
      if (f.key == "collective") return "\"allreduce\", \"reduce-scatter\" or \"allgather\"";
      if (f.key == "subplans") return "a list of sub-plans";
      return f.key == "programs" ? "a list of programs, one per rank" : "an integer";
    case Scope::kSubPlans:
      return "a sub-plan, an object with \"children\" and \"stages\"";
    case Scope::kSubPlan:
      return f.key == "label" ? "a string" : "a list with at least one child, and a list of stages";
    case Scope::kChildren:
    case Scope::kChild:
      return "[sub-plan, count] with the number of an earlier sub-plan, or -1 for a rank";
    case Scope::kStages:
    case Scope::kDigitStage:
      return R"(["direct", stride, radix], ["ring", ...], ["exchange", ...] or {"place": [[begin, end, owner], ...]})";
    case Scope::kPlaceStage:
    case Scope::kTarget:
    case Scope::kPiece:
      return "a list of [begin, end, owner], three integers each";
    case Scope::kPrograms:
      return "a list of steps";
    case Scope::kProgram:
    case Scope::kStep:
      return "[step number, list of sends, list of receives]";
    case Scope::kSends:
      return "integers: peer, begin, end of each message, one after the other";
    case Scope::kRecvs:
      return "integers: peer, begin, end, accumulate (0 or 1) of each message, one after the other";
    case Scope::kSkipped:
      break;
  }
  return "anything";
}

void Reader::store_header(std::int64_t value) {
  const std::string_view key = top().key;
  if (key == "num_ranks") {
    plan_.num_ranks = in_range(value, 1, kMaxServers);
  } else if (key == "num_units") {
    plan_.num_units = in_range(value, 1, kMaxUnits);
  } else if (key == "num_chunks") {
    plan_.num_chunks = in_range(value, 1, kMaxUnits);
  } else if (key == "count") {
    plan_.count = in_range(value, 0, kMaxUnits);
  } else if (key == "root") {
    plan_.root = static_cast<SubPlanId>(in_range(value, kLeaf, std::numeric_limits<SubPlanId>::max()));
  } else {
    refuse("an integer");
  }
}

void Reader::store_message(std::vector<Message>& messages, std::int64_t width, std::int64_t value) {
  switch (top().index % width) {
    case 0:
      messages.push_back({static_cast<std::int32_t>(in_range(value, 0, kMaxServers - 1)), false, 0, 0});
      break;
    case 1:
      messages.back().begin = in_range(value, 0, kMaxUnits);
      break;
    case 2:
      messages.back().end = in_range(value, 0, kMaxUnits);
      break;
    default:
      messages.back().accumulate = in_range(value, 0, 1) == 1;
  }
}

void Reader::store(std::int64_t value) {
  const std::int64_t index = top().index;
  switch (top().scope) {
    case Scope::kTop:
      return store_header(value);
    case Scope::kChild: {
      SubPlanRun& run = plan_.subplans.back().children.back();
      const auto earlier = static_cast<std::int64_t>(plan_.subplans.size()) - 2;
      if (index > 1) refuse("a list of more than two integers");
      if (index == 0) run.subplan = static_cast<SubPlanId>(in_range(value, kLeaf, earlier));
      if (index == 1) run.count = in_range(value, 1, kMaxServers);
      return;
    }
    case Scope::kDigitStage: {
      Stage& stage = plan_.subplans.back().stages.back();
      if (index == 0 || index > 2) refuse(std::to_string(value));
      (index == 1 ? stage.stride : stage.radix) = in_range(value, 1, kMaxServers);
      return;
    }
    case Scope::kPiece: {
      Piece& piece = plan_.subplans.back().stages.back().target.back();
      if (index > 2) refuse(std::to_string(value));
      if (index == 0) piece.begin = in_range(value, 0, kMaxUnits);
      if (index == 1) piece.end = in_range(value, 0, kMaxUnits);
      if (index == 2) piece.owner = static_cast<std::int32_t>(in_range(value, 0, kMaxServers - 1));
      return;
    }
    case Scope::kStep:
      if (index != 0) refuse(std::to_string(value));
      plan_.programs.back().steps.back().number = in_range(value, 0, kMaxUnits);
      return;
    case Scope::kSends:
      return store_message(plan_.programs.back().steps.back().sends, 3, value);
    case Scope::kRecvs:
      return store_message(plan_.programs.back().steps.back().recvs, 4, value);
    default:
      refuse(std::to_string(value));
  }
}

void Reader::store(const std::string& value) {
  const std::string_view key = top().key;
  const std::string shown = fmt::format("\"{}\"", printable(value));
  if (top().scope == Scope::kTop && key == "schema") {
    if (value != kPlanSchema && value != kOldPlanSchema && value != kExchangePlanSchema) refuse(shown);
  } else if (top().scope == Scope::kTop && key == "algorithm") {
    plan_.algorithm = escaped(value);
  } else if (top().scope == Scope::kTop && key == "collective") {
    const std::optional<Collective> collective = parse_collective(value);
    if (!collective) refuse(shown);
    plan_.collective = *collective;
  } else if (top().scope == Scope::kSubPlan && key == "label") {
    plan_.subplans.back().label = escaped(value);
  } else if (top().scope == Scope::kDigitStage && top().index == 0) {
    const auto* found = std::find_if(std::begin(kDigitStages), std::end(kDigitStages),
                                     [&](const auto& row) { return row.first == value; });
    if (found == std::end(kDigitStages)) refuse(shown);
    plan_.subplans.back().stages.back().kind = found->second;
  } else {
    refuse(shown);
  }
}

bool Reader::close() {
  const Frame closed = std::move(top());
  frames_.pop_back();
  const auto demand = [&](bool holds, const char* what) {
    if (holds) return;
    frames_.push_back({closed.scope, closed.is_object, closed.index, 0, {}, {}});
    const std::string text = accepted();
    frames_.pop_back();
    fail(fmt::format("{}; expected {}", what, text));
  };
  if (closed.scope == Scope::kTop) seen_ = closed.seen;
  if (closed.scope == Scope::kSubPlan) demand(!plan_.subplans.back().children.empty(), "has no children");
  if (closed.scope == Scope::kChild) demand(closed.index == 2, "is not a pair of integers");
  if (closed.scope == Scope::kDigitStage) demand(closed.index == 3, "does not have three elements");
  if (closed.scope == Scope::kPlaceStage) demand(closed.seen == 1, "has no \"place\"");
  if (closed.scope == Scope::kPiece) demand(closed.index == 3, "does not have three elements");
  if (closed.scope == Scope::kStep) demand(closed.index == 3, "does not have three elements");
  if (closed.scope == Scope::kSends) demand(closed.index % 3 == 0, "ends in the middle of a message");
  if (closed.scope == Scope::kRecvs) demand(closed.index % 4 == 0, "ends in the middle of a message");
  return value_ends();
}

Plan Reader::finish() {
  for (std::size_t i = 0; i < std::size(kTopFields); ++i) {
    const bool is_needed = kTopFields[i] == "schema" || kTopFields[i] == "num_ranks" || kTopFields[i] == "num_units" ||
                           (kTopFields[i] == "root" && !plan_.subplans.empty());
    if (is_needed && (seen_ >> i & 1U) == 0)
      fail_at(std::string(kTopFields[i]), "is missing; expected a plan file, as gar plan -o writes it");
  }
  check_plan_fields(plan_, source_);
  return std::move(plan_);
}

}  // namespace

Plan read_plan(std::istream& in, const std::string& source) {
  if (in.rdbuf() == nullptr || !in) throw ParseError(fmt::format("{}: cannot be read", source));
  GuardedBuffer guarded(*in.rdbuf(), source, kMaxFileBytes);
  std::istream stream(&guarded);
  Reader reader(source);
  nlohmann::json::sax_parse(stream, &reader);
  return reader.finish();
}

Plan read_plan_file(const std::string& path) {
  InputFile file(path, kMaxFileBytes, "a plan file");
  std::istream in(&file);
  return read_plan(in, path);
}

}  // namespace gar
