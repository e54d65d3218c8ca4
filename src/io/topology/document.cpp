// JSON text to TopologyDocument.
//
// The reader is driven by the JSON library's events instead of its document tree: it knows at every moment which field
// it stands in, so that the first wrong byte of a huge file ends the reading, a field can be named by its path, and a
// flat list of a million nodes costs the size of its nodes.
#include "io/topology/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/network_words.hpp"
#include "gar/topology.hpp"
#include "io/json_text.hpp"
#include "io/text_file.hpp"
#include "io/topology/fields.hpp"
#include "topology/names.hpp"

namespace gar {
namespace {

// A level of the tree takes an object and a list.
constexpr std::size_t kMaxNesting = 2 * static_cast<std::size_t>(kMaxDepth) + 8;
// Bounds the memory that a file can ask for. Repeated nodes count once.
constexpr std::size_t kMaxNodes = 2'000'000;
constexpr std::int32_t kMaxClassesOfNode = 16;

// Where the reader stands: an object or a list.
enum class Scope : std::uint8_t {
  kTop,
  kClasses,
  kClass,
  kSubtrees,
  kTreeNode,
  kFlatNode,
  kChildren,
  kNodes,
  kClassList
};

struct Frame {
  Scope scope = Scope::kTop;
  std::int32_t id = -1;        // node or class
  std::int32_t num_items = 0;  // list: elements before the current one
  std::uint32_t seen = 0;      // object: fields so far, one bit each
  Field field = Field::kNone;  // object: current field
  std::string key;             // object: its name
};

class Reader : public JsonEvents {
 public:
  Reader(std::string_view text, const std::string& source) : text_(text) { document_.source = source; }

  // The events, with the signatures that the JSON library asks for.
  bool null() { return wrong_type("null"); }
  bool boolean(bool value) { return wrong_type(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) { return number(static_cast<double>(value), fmt::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) { return number(static_cast<double>(value), fmt::to_string(value)); }
  bool number_float(number_float_t value, const string_t& shown) { return number(value, shown); }
  bool binary(binary_t&) { return wrong_type("binary data"); }
  bool string(string_t& value);
  bool start_object(std::size_t);
  bool key(string_t& key);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::json::exception& error);

  TopologyDocument finish();

 private:
  [[nodiscard]] std::string path() const;
  [[noreturn]] void fail(const std::string& problem) const { document_.fail(path(), problem); }
  bool wrong_type(const std::string& what) const;
  bool number(double value, const std::string& shown);
  void set_param(double value);
  void push(Scope scope, std::int32_t id);
  std::int32_t add_node(std::int32_t owner, std::int32_t position);
  std::int32_t class_id(const std::string& name);
  void use_class(const std::string& name);
  void check_node();
  Field current() const { return frames_.empty() ? Field::kNone : frames_.back().field; }
  NodeSpec& node() { return document_.nodes[static_cast<std::size_t>(frames_.back().id)]; }

  std::string_view text_;
  TopologyDocument document_;
  std::vector<Frame> frames_;
  bool has_schema_ = false;
};

std::string Reader::path() const {
  std::string path;
  for (const Frame& frame : frames_) {
    if (frame.scope == Scope::kChildren || frame.scope == Scope::kNodes || frame.scope == Scope::kClassList) {
      path += fmt::format("[{}]", frame.num_items);
    } else if (!frame.key.empty()) {
      path += (path.empty() ? "" : ".") + printable(frame.key);
    }
  }
  return path;
}

bool Reader::wrong_type(const std::string& what) const {
  if (frames_.empty()) {
    fail(fmt::format("the file holds {}; expected an object {{\"schema\": \"{}\", ...}}", what, kTopologySchema));
  }
  switch (frames_.back().scope) {
    case Scope::kClasses:
      fail(fmt::format("is {}; expected an object of parameters, for example {{\"beta\": 6.4e-10}}", what));
    case Scope::kSubtrees:
    case Scope::kChildren:
    case Scope::kNodes:
      fail(fmt::format("is {}; expected a node (an object)", what));
    case Scope::kClassList:
      fail(fmt::format("is {}; {}", what, accepted(Field::kClass)));
    default:
      fail(fmt::format("is {}; {}", what, accepted(current())));
  }
}

bool Reader::number(double value, const std::string& shown) {
  const Field field = current();
  if (field <= Field::kLastParam) {
    if (!(value >= 0 && value <= kParamMost[static_cast<std::size_t>(field)])) return wrong_type(printable(shown));
    set_param(value);
    return true;
  }
  if (field != Field::kRepeat) return wrong_type("the number " + printable(shown));
  if (!(value >= 1) || value > static_cast<double>(kMaxServers) || value != std::floor(value)) {
    return wrong_type(printable(shown));
  }
  node().repeat = static_cast<std::int64_t>(value);
  return true;
}

// Stores the value of the field that is being read. A link has one speed and a node one latency.
void Reader::set_param(double value) {
  const Frame& frame = frames_.back();
  ParamSet& params =
      frame.scope == Scope::kClass ? document_.classes[static_cast<std::size_t>(frame.id)].params : node().params;
  const auto param = static_cast<std::size_t>(current());
  params.set(param, value);
  if (const std::string problem = said_twice(params, param); !problem.empty()) fail(problem);
}

// The id of a class, defined already or not.
std::int32_t Reader::class_id(const std::string& name) {
  const auto [found, is_new] =
      document_.class_ids.try_emplace(name, static_cast<std::int32_t>(document_.classes.size()));
  if (is_new) document_.classes.push_back({name, {}, false, path()});
  return found->second;
}

void Reader::use_class(const std::string& name) {
  const std::int32_t id = class_id(name);
  const bool in_list = frames_.back().scope == Scope::kClassList;
  const Frame& frame = in_list ? frames_[frames_.size() - 2] : frames_.back();
  document_.nodes[static_cast<std::size_t>(frame.id)].classes.push_back(id);
}

bool Reader::string(string_t& value) {
  const std::string shown = "\"" + printable(value) + "\"";
  if (!frames_.empty() && frames_.back().scope == Scope::kClassList) {
    if (frames_.back().num_items >= kMaxClassesOfNode) {
      fail(fmt::format("a node has at most {} classes", kMaxClassesOfNode));
    }
    use_class(value);
    ++frames_.back().num_items;
    return true;
  }
  switch (current()) {
    case Field::kBandwidthText:
    case Field::kLatencyText: {
      const std::optional<double> said = current() == Field::kBandwidthText ? bandwidth_of(value) : latency_of(value);
      if (!said) return wrong_type(shown);
      set_param(*said);
      return true;
    }
    case Field::kSchema:
      if (value != kTopologySchema) return wrong_type(shown);
      has_schema_ = true;
      return true;
    case Field::kTopName:
      document_.name = escaped(value);
      return true;
    case Field::kDescription:
      return true;
    case Field::kName: {
      const std::string problem = value.empty() ? "the name is empty" : name_problem(value);
      if (!problem.empty()) fail(printable(problem, 400) + "; " + accepted(Field::kName));
      node().name = std::move(value);
      node().has_name = true;
      return true;
    }
    case Field::kClass:
      use_class(value);
      return true;
    case Field::kKind:
      if (value != "server" && value != "switch") return wrong_type(shown);
      node().kind = value == "server" ? NodeKind::kServer : NodeKind::kSwitch;
      return true;
    case Field::kRef:
    case Field::kParent:
      node().target = std::move(value);
      return true;
    default:
      return wrong_type("the text " + shown);
  }
}

void Reader::push(Scope scope, std::int32_t id) {
  if (frames_.size() >= kMaxNesting) {
    fail(fmt::format("is nested too deeply; expected at most {} levels of servers and switches", kMaxDepth));
  }
  Frame frame;
  frame.scope = scope;
  frame.id = id;
  frames_.push_back(std::move(frame));
}

std::int32_t Reader::add_node(std::int32_t owner, std::int32_t position) {
  if (document_.nodes.size() >= kMaxNodes) {
    fail(fmt::format("the file has more than {} nodes; use \"repeat\" for equal ones", kMaxNodes));
  }
  const auto id = static_cast<std::int32_t>(document_.nodes.size());
  NodeSpec spec;
  spec.owner = owner;
  spec.position = position;
  document_.nodes.push_back(std::move(spec));
  if (owner >= 0) document_.nodes[static_cast<std::size_t>(owner)].children.push_back(id);
  return id;
}

bool Reader::start_object(std::size_t) {
  if (frames_.empty()) {
    push(Scope::kTop, -1);
    return true;
  }
  Frame& frame = frames_.back();
  const auto num_nodes = static_cast<std::int32_t>(document_.nodes.size());
  switch (frame.scope) {
    case Scope::kTop:
      if (frame.field == Field::kClasses) {
        push(Scope::kClasses, -1);
      } else if (frame.field == Field::kSubtrees) {
        push(Scope::kSubtrees, -1);
      } else if (frame.field == Field::kTree) {
        document_.has_tree = true;
        document_.tree.begin = num_nodes;
        push(Scope::kTreeNode, add_node(-1, -1));
      } else {
        return wrong_type("an object");
      }
      return true;
    case Scope::kClasses:
      push(Scope::kClass, frame.id);
      return true;
    case Scope::kSubtrees: {
      const std::int32_t position = frame.id;
      document_.subtrees[static_cast<std::size_t>(position)].begin = num_nodes;
      push(Scope::kTreeNode, add_node(-1, position));
      return true;
    }
    case Scope::kChildren: {
      const std::int32_t owner = frame.id;
      push(Scope::kTreeNode, add_node(owner, frame.num_items));
      return true;
    }
    case Scope::kNodes:
      push(Scope::kFlatNode, add_node(-1, frame.num_items));
      return true;
    default:
      return wrong_type("an object");
  }
}

bool Reader::key(string_t& key) {
  Frame& frame = frames_.back();
  frame.key = key;
  if (frame.scope == Scope::kClasses) {
    frame.id = class_id(key);
    ClassSpec& entry = document_.classes[static_cast<std::size_t>(frame.id)];
    if (std::exchange(entry.is_defined, true)) fail("is there twice; expected each class once");
    return true;
  }
  if (frame.scope == Scope::kSubtrees) {
    frame.id = static_cast<std::int32_t>(document_.subtrees.size());
    if (!document_.subtree_ids.try_emplace(key, frame.id).second) fail("is there twice; expected each subtree once");
    document_.subtrees.push_back({key, 0, 0});
    return true;
  }
  const std::span<const FieldName> fields = frame.scope == Scope::kTop        ? top_fields()
                                            : frame.scope == Scope::kClass    ? class_fields()
                                            : frame.scope == Scope::kTreeNode ? tree_fields()
                                                                              : flat_fields();
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const FieldName& f) { return key == f.name; });
  if (found == fields.end()) {
    std::string names;
    for (const FieldName& f : fields) names += fmt::format("{}{}", names.empty() ? "" : ", ", f.name);
    const bool no_schema = frame.scope == Scope::kTop && !has_schema_;
    fail(fmt::format("unknown field; expected {}{}", names,
                     no_schema
                         ? fmt::format(" (is this a topology file? It starts with \"schema\": \"{}\")", kTopologySchema)
                         : ""));
  }
  const std::uint32_t bit = 1U << static_cast<unsigned>(found->field);
  if ((frame.seen & bit) != 0) fail("is there twice in one object; expected once");
  frame.seen |= bit;
  frame.field = found->field;
  if (frame.field == Field::kRepeat) node().has_repeat = true;
  if (frame.field == Field::kRef || frame.field == Field::kParent) node().has_target = true;
  return true;
}

bool Reader::start_array(std::size_t) {
  switch (current()) {
    case Field::kNodes:
      document_.has_flat = true;
      document_.flat_begin = static_cast<std::int32_t>(document_.nodes.size());
      push(Scope::kNodes, -1);
      return true;
    case Field::kChildren:
      node().has_children = true;
      push(Scope::kChildren, frames_.back().id);
      return true;
    case Field::kClass:
      push(Scope::kClassList, -1);
      return true;
    default:
      return wrong_type("a list");
  }
}

bool Reader::end_array() {
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (frame.scope == Scope::kNodes) {
    document_.flat_end = static_cast<std::int32_t>(document_.nodes.size());
    if (frame.num_items == 0) fail("is empty, there are no servers; expected a list of at least one node");
  }
  if (frame.scope == Scope::kChildren && frame.num_items == 0) fail("is empty; " + accepted(Field::kChildren));
  return true;
}

// What must be in the node itself, so that a long list of empty nodes ends with the first.
void Reader::check_node() {
  Frame& frame = frames_.back();
  const NodeSpec& spec = node();
  const bool is_flat = frame.scope == Scope::kFlatNode;
  const bool is_subtree = !is_flat && spec.owner < 0 && spec.position >= 0;
  const bool may_inherit = is_subtree || !spec.classes.empty() || (!is_flat && spec.has_target);
  if (is_flat && !spec.has_name) {
    frame.key = "name";
    fail("missing; in a flat list every node needs its own name");
  }
  // What has children may leave it to its servers to say how long messages take.
  const bool says_time = spec.params.has[kAlpha] || spec.params.has[kLatency] || spec.params.has[kBandwidth];
  if (!may_inherit && !is_flat && !spec.has_children && !says_time) {
    frame.key = "alpha";
    fail(missing_param("every node needs its latency in seconds"));
  }
}

bool Reader::end_object() {
  if (frames_.back().scope == Scope::kTreeNode || frames_.back().scope == Scope::kFlatNode) check_node();
  frames_.pop_back();
  if (frames_.empty()) return true;
  Frame& frame = frames_.back();
  const auto num_nodes = static_cast<std::int32_t>(document_.nodes.size());
  if (frame.scope == Scope::kChildren || frame.scope == Scope::kNodes) ++frame.num_items;
  if (frame.scope == Scope::kSubtrees) document_.subtrees.back().end = num_nodes;
  if (frame.scope == Scope::kTop && frame.field == Field::kTree) document_.tree.end = num_nodes;
  return true;
}

bool Reader::parse_error(std::size_t position, const std::string& token, const nlohmann::json::exception& error) {
  const std::string_view before = text_.substr(0, std::min(position, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::size_t column = std::max<std::size_t>(before.size() - line_begin, 1);
  constexpr int kNumberOverflow = 406;  // the library's code
  if (error.id == kNumberOverflow) {
    throw ParseError(fmt::format("{}: line {}, column {}: the number {} is too large; expected finite numbers",
                                 document_.source, line, column, printable(token)));
  }
  // The library's text starts with its own code and, for syntax errors, with its own position.
  std::string_view what = error.what();
  for (const std::string_view prefix : {"] ", ": "}) {
    const std::size_t end = what.substr(0, 100).find(prefix);
    const bool is_position = prefix == ": " && what.substr(0, end).find("column") == std::string_view::npos;
    if (end != std::string_view::npos && !is_position) what.remove_prefix(end + prefix.size());
  }
  throw ParseError(
      fmt::format("{}: line {}, column {}: not valid JSON: {}", document_.source, line, column, printable(what, 240)));
}

// What a named class says.
ParamSet params_of(const NetworkClass& known) {
  ParamSet out;
  if (known.is_link) {
    out.set(kBandwidth, known.beta());
    out.set(kLatency, known.latency);
    out.is_usual_latency = true;
    return out;
  }
  const ServerParams server = known.server();
  for (std::size_t i = 0; i < kServerParams.size(); ++i) {
    if (!kServerParams[i].is_optional) out.set(kFirstServerParam + i, server.*kServerParams[i].value);
  }
  return out;
}

std::string known_classes() {
  std::string names;
  for (const NetworkClass& known : network_classes()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", known.name);
  }
  return names;
}

TopologyDocument Reader::finish() {
  if (!has_schema_) {
    document_.fail("schema", fmt::format("missing; expected \"schema\": \"{}\"", kTopologySchema));
  }
  if (document_.has_tree == document_.has_flat) {
    document_.fail(document_.has_tree ? "nodes" : "tree",
                   document_.has_tree ? "the file has both \"tree\" and \"nodes\"; expected one of them"
                                      : "missing; expected the network as \"tree\" (nested) or \"nodes\" (a list)");
  }
  if (document_.has_flat && !document_.subtrees.empty()) {
    document_.fail("subtrees", "a flat list of \"nodes\" cannot refer to subtrees; use \"tree\" or leave them out");
  }
  for (ClassSpec& entry : document_.classes) {
    if (entry.is_defined) continue;
    if (const NetworkClass* known = find_network_class(entry.name)) {
      entry.params = params_of(*known);
      continue;
    }
    std::string names;
    for (const ClassSpec& other : document_.classes) {
      if (other.is_defined && names.size() < 200) names += (names.empty() ? "" : ", ") + printable(other.name);
    }
    document_.fail(entry.first_use,
                   fmt::format("there is no class \"{}\"; \"classes\" has {}, and these are known without it: {}",
                               printable(entry.name), names.empty() ? "no entries" : names, known_classes()));
  }
  return std::move(document_);
}

}  // namespace

std::string said_twice(const ParamSet& params, std::size_t param) {
  const bool is_link = param == kBandwidth || param == kFirstLinkParam;
  if (!is_link && param != kLatency && param != kAlpha) return "";
  const std::size_t word = is_link ? kBandwidth : kLatency;
  const std::size_t letter = is_link ? kFirstLinkParam : kAlpha;
  if (!params.has[word] || !params.has[letter]) return "";
  return fmt::format("\"{}\" is there as well, which says the same of one {}; expected one of the two",
                     kParamNames[param == word ? letter : word], is_link ? "link" : "node");
}

std::string missing_param(const char* why) {
  return fmt::format("missing; {} (a finite number of at least 0, here or in a class)", why);
}

std::string TopologyDocument::path_of(std::int32_t node) const {
  std::string path;
  while (true) {
    const NodeSpec& spec = nodes[static_cast<std::size_t>(node)];
    if (spec.owner < 0) {
      if (has_flat) return fmt::format("nodes[{}]", spec.position) + path;
      if (spec.position < 0) return "tree" + path;
      return "subtrees." + printable(subtrees[static_cast<std::size_t>(spec.position)].name) + path;
    }
    path = fmt::format(".children[{}]", spec.position) + path;
    node = spec.owner;
  }
}

void TopologyDocument::fail(const std::string& path, const std::string& problem) const {
  throw ParseError(fmt::format("{}: {}{}{}", source, path, path.empty() ? "" : ": ", problem));
}

TopologyDocument parse_topology_document(std::string_view text, const std::string& source) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw ParseError(
        fmt::format("{}: the file is empty; expected a topology with \"schema\": \"{}\"", source, kTopologySchema));
  }
  Reader reader(text, source);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.finish();
}

}  // namespace gar
