// gar topo show|check|import|convert: draws, validates, reads and writes networks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <sstream>

#include "apps/gar/cli/network.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/machine_show.hpp"
#include "apps/gar/views/topo_show.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/explain_topology.hpp"
#include "gar/files.hpp"
#include "gar/measure/launch.hpp"
#include "gar/network_words.hpp"
#include "gar/topology_io.hpp"

namespace gar::cli {
namespace {

struct TopoArgs {
  std::string topology;
  std::string flagged_topology;
  std::string profile;
  std::string format;
  std::string output;
  bool full = false;
};

constexpr const char* kTopologyHelp =
    "The network: a file, a name of gar topo list, or a generator such as tree:16x24 or star:12@100Gbit/s,2us";

// The network stands alone, or behind -t as with the other verbs.
void add_network(CLI::App& verb, TopoArgs& args) {
  verb.add_option("T", args.topology, kTopologyHelp)->type_name("");
  verb.add_option("-t,--topology", args.flagged_topology, "The same as T")->type_name("T");
  add_profile_option(verb, args.profile);
}

const std::string& network(const TopoArgs& args) {
  const bool is_one = args.topology.empty() != args.flagged_topology.empty();
  if (!is_one && (args.profile.empty() || !args.topology.empty())) {
    std::vector<std::string_view> examples;
    for (const TopologyGenerator& generator : topology_generators()) examples.push_back(generator.example);
    throw UsageError(
        fmt::format("one network is needed: a file, a known name ({}) or a generator ({}), or a profile behind -p",
                    fmt::join(topology_names(), " "), fmt::join(examples, " ")));
  }
  return args.topology.empty() ? args.flagged_topology : args.topology;
}

Topology load(const TopoArgs& args) { return load_network({network(args), args.profile}).topology; }

// Without a network: this machine. In an MPI job one rank speaks.
int show_machine(const Context& context) {
  const std::optional<MpiJob> job = current_mpi_job();
  if (job && job->rank != 0) return kExitOk;
  const Machine machine = read_machine();
  if (context.json) {
    print(machine_document(machine));
    return kExitOk;
  }
  say(lines_for_locale(draw_machine(machine, use_color(context.color, stdout))));
  if (job) say("This is the machine of rank 0 of an MPI job; gar fit in its place measures the whole job.\n");
  return kExitOk;
}

/// "17 switches, 2 levels of links".
std::string list_words(const Topology& topology) {
  const std::int64_t switches = topology.num_switches();
  const int levels = static_cast<int>(topology.height(topology.root()));
  return fmt::format("{} switch{}, {} level{} of links", format_grouped(switches), switches == 1 ? "" : "es", levels,
                     levels == 1 ? "" : "s");
}

// Every network that has a name, and the generators.
int show_list(const Context& context) {
  if (context.json) {
    print(topology_list_document());
    return kExitOk;
  }
  if (context.csv) print(csv_line({"name", "servers", "switches"}));
  Table table({{"name"}, {"servers", true}, {"what"}});
  for (const std::string& name : topology_names()) {
    const Topology topology = load_topology(name);
    if (context.csv) {
      print(csv_line({name, fmt::to_string(topology.num_servers()), fmt::to_string(topology.num_switches())}));
    } else {
      const std::string whose = is_builtin_topology(name) ? "the paper's: " : "";
      table.add_row({name, format_grouped(topology.num_servers()), whose + list_words(topology)});
    }
  }
  if (context.csv) return kExitOk;
  print(table.folded(use_color(context.color, stdout)));
  print("\n");
  std::vector<std::string_view> forms;
  for (const TopologyGenerator& generator : topology_generators()) forms.push_back(generator.form);
  print(labelled("generators", fmt::format("{}; with speeds: star:12@100Gbit/s,2us, tree:4x12@100GbE (gar topo "
                                           "classes)",
                                           fmt::join(forms, ", "))));
  print(labelled("files",
                 "data/topologies has those that are not the paper's; gar topo convert NAME writes any of them"));
  return kExitOk;
}

// The names that files and generators know, and where their figures are from.
int show_classes(const Context& context) {
  if (context.json) {
    print(network_classes_document());
    return kExitOk;
  }
  if (context.csv) {
    print(csv_line({"name", "kind", "bytes_per_s", "latency_s", "adds_per_s", "source"}));
    for (const NetworkClass& c : network_classes()) {
      print(csv_line({std::string(c.name), c.is_link ? "link" : "memory",
                      fmt::to_string(c.is_link ? c.bandwidth / 8 : c.bandwidth),
                      c.is_link ? fmt::to_string(c.latency) : "", c.is_link ? "" : fmt::to_string(c.adds_per_s),
                      std::string(c.source)}));
    }
    return kExitOk;
  }
  Table table({{"name"}, {"bandwidth", true}, {"latency", true}, {"adding", true}, {"source"}});
  for (const NetworkClass& c : network_classes()) {
    table.add_row({std::string(c.name), c.is_link ? format_link_speed(c.beta()) : format_memory_bandwidth(c.bandwidth),
                   c.is_link ? format_seconds(c.latency, 2) : "",
                   c.is_link ? "" : fmt::format("{:.3g} T/s", c.adds_per_s / 1e12), std::string(c.source)});
  }
  print(table.folded(use_color(context.color, stdout)));
  print(
      "\nbandwidth  of one direction, by the standard or the data sheet\n"
      "latency    typical, from program to program: TCP on Ethernet; adapters, a\n"
      "           switch and the MPI library on InfiniBand; between GPUs of a host\n"
      "adding     floats of 4 bytes\n"
      "A profile by gar fit has your own.\n");
  return kExitOk;
}

// One line for every distinct node.
void print_nodes(const Topology& topology) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(topology.num_nodes()), 0);
  counts[static_cast<std::size_t>(topology.root())] = 1;
  print(csv_line(
      {"name", "kind", "count", "servers", "alpha", "beta", "epsilon", "incast_threshold", "gamma", "delta", "mu"}));
  for (NodeId id = topology.num_nodes(); id-- > 0;) {  // parents have larger ids
    const Node& node = topology.node(id);
    const std::int64_t count = counts[static_cast<std::size_t>(id)];
    for (const ChildRun& run : node.children) counts[static_cast<std::size_t>(run.node)] += count * run.count;
    const bool has_link = id != topology.root();
    const auto number = [](bool is_there, double value) { return is_there ? fmt::to_string(value) : std::string(); };
    print(csv_line({node.name, node.is_server() ? "server" : "switch", fmt::to_string(count),
                    fmt::to_string(topology.num_servers(id)), fmt::to_string(node.alpha),
                    number(has_link, node.uplink.beta), number(has_link, node.uplink.epsilon),
                    number(has_link, node.uplink.incast_threshold), number(node.is_server(), node.server.gamma),
                    number(node.is_server(), node.server.delta), number(node.is_server(), node.server.mu)}));
  }
}

int show(const TopoArgs& args, const Context& context) {
  if ((args.topology + args.flagged_topology + args.profile).empty()) {
    if (context.csv) throw UsageError("--csv is for a network, such as star:12@100GbE");
    return show_machine(context);
  }
  const Topology topology = load(args);
  if (context.csv) {
    print_nodes(topology);
  } else if (context.json) {
    print(topology_document(topology));
  } else {
    say(lines_for_locale(draw_topology(
        topology, {.color = use_color(context.color, stdout), .full = args.full, .greek = context.greek})));
  }
  return kExitOk;
}

int check(const TopoArgs& args, const Context& context) {
  try {
    const Topology topology = load(args);
    if (context.json) {
      print(topology_check_document(topology));
      return kExitOk;
    }
    const bool color = use_color(context.color, stdout);
    const std::string& source = network(args).empty() ? args.profile : network(args);
    say(fmt::format("{}: {}: {}\n", escaped(source), paint("valid", Paint::kGreen, color), topology_totals(topology)));
    for (const std::string& remark : topology_remarks(topology))
      say(fmt::format("{} {}\n", paint("remark:", Paint::kYellow, color), escaped(remark)));
    return kExitOk;
  } catch (const Error& error) {
    if (!context.json) throw;
    print(topology_error_document(error.what()));
    return kExitBadInput;
  }
}

// Writes to -o, or to standard output. A --json document says what was written where.
int emit(const Topology& topology, const TopologyWriter& writer, const TopoArgs& args, const Context& context) {
  std::ostringstream out;
  writer.write(topology, out);
  const std::string text = out.str();
  const bool to_file = !args.output.empty() && args.output != "-";
  if (to_file) save_file(args.output, [&](std::ostream& file) { file << text; });
  if (context.json) {
    print(topology_written_document(
        {.topology = topology, .format = std::string(writer.name), .path = to_file ? args.output : "", .text = text}));
  } else if (!to_file) {
    print(text);
  }
  return kExitOk;
}

/// "json or dot".
std::string writer_names(std::string_view separator) {
  std::vector<std::string_view> names;
  for (const TopologyWriter& writer : topology_writers()) names.push_back(writer.name);
  return fmt::format("{}", fmt::join(names, separator));
}

/// ".json .dot .gv".
std::string file_endings() {
  std::vector<std::string_view> endings;
  for (const TopologyWriter& writer : topology_writers()) {
    endings.insert(endings.end(), writer.extensions.begin(), writer.extensions.end());
  }
  return fmt::format("{}", fmt::join(endings, " "));
}

/// "gar-json (our own files, nested or flat)".
std::string reader_words() {
  std::vector<std::string> words;
  for (const TopologyReader& reader : topology_readers())
    words.push_back(fmt::format("{} ({})", reader.name, reader.about));
  return fmt::format("{}", fmt::join(words, ", "));
}

int convert(const TopoArgs& args, const Context& context) {
  const TopologyWriter* writer =
      args.format.empty() ? topology_writer_of(args.output) : find_topology_writer(args.format);
  if (writer == nullptr && args.format.empty()) {
    throw UsageError(
        fmt::format("-o '{}': no format has files with this ending; expected one that ends in {}, or "
                    "--format with {}",
                    args.output, file_endings(), writer_names(" or ")));
  }
  if (writer == nullptr) {
    throw UsageError(fmt::format("--format '{}' is unknown; expected {}", args.format, writer_names(" ")));
  }
  return emit(load(args), *writer, args, context);
}

int import(const TopoArgs& args, const Context& context) {
  if (args.topology.empty()) throw UsageError("a file to import is needed");
  const TopologyReader* reader = args.format.empty() ? nullptr : find_topology_reader(args.format);
  if (reader == nullptr && !args.format.empty()) {
    throw UsageError(fmt::format("--format '{}' cannot be read; expected {}", args.format, reader_words()));
  }
  return emit(import_topology(args.topology, reader), topology_writers().front(), args, context);
}

CLI::App& add_verb(CLI::App& topo, const char* name, const char* what, Context& context) {
  CLI::App& verb = *topo.add_subcommand(name, what);
  add_output_options(verb, context);
  return verb;
}

}  // namespace

void add_topo(CLI::App& program, Context& context) {
  const auto args = std::make_shared<TopoArgs>();
  CLI::App& topo = *program.add_subcommand("topo", "Draw, validate and convert a network");
  topo.require_subcommand(1);
  set_examples(topo, {{"which networks have names?", "gar topo list"},
                      {"draw the paper's asymmetric network", "gar topo show asy384"},
                      {"is this file a valid network?", "gar topo check network.json"},
                      {"a drawing for Graphviz", "gar topo convert tree:4x8x16 --format dot -o network.dot"}});

  CLI::App& show_verb =
      add_verb(topo, "show", "Draw the tree, identical siblings once; without T this machine", context);
  add_network(show_verb, *args);
  show_verb.add_flag("--full", args->full, "Draw every distinct subtree, however many there are");
  add_csv_option(show_verb, context);
  show_verb.add_flag("--greek", context.greek,
                     "Parameters as files have them: beta, epsilon, gamma, delta, mu in seconds");
  set_examples(show_verb,
               {{"16 racks of 24 servers", "gar topo show tree:16x24"},
                {"12 servers at 100 Gbit/s, 2 us from one to another", "gar topo show star:12@100Gbit/s,2us"},
                {"a file", "gar topo show network.json"},
                {"this machine", "gar topo show"}});
  on_run(show_verb, context, [args, &context] { return show(*args, context); });

  CLI::App& check_verb =
      add_verb(topo, "check", "Validate a network and say what it is; exit 3 when it is not valid", context);
  add_network(check_verb, *args);
  set_examples(check_verb, {{"a file", "gar topo check network.json"}});
  on_run(check_verb, context, [args, &context] { return check(*args, context); });

  CLI::App& list_verb =
      add_verb(topo, "list", "Print the names of networks that gar knows, and the generators", context);
  add_csv_option(list_verb, context);
  set_examples(list_verb, {{"what can stand behind -t", "gar topo list"}});
  on_run(list_verb, context, [&context] { return show_list(context); });

  CLI::App& classes_verb =
      add_verb(topo, "classes", "Print the links and memories that files and generators know", context);
  add_csv_option(classes_verb, context);
  set_examples(classes_verb, {{"the names for a network", "gar topo classes"}});
  on_run(classes_verb, context, [&context] { return show_classes(context); });

  CLI::App& import_verb = add_verb(topo, "import", "Read a file in another format and write ours", context);
  import_verb.add_option("FILE", args->topology, "The file to read")->type_name("");
  import_verb
      .add_option("--format", args->format,
                  fmt::format("Its format: {} (default), {}", topology_readers().front().name,
                              topology_readers().front().about))
      ->type_name("FORMAT");
  import_verb.add_option("-o,--output", args->output, "File to write (default: standard output)")->type_name("F");
  set_examples(import_verb,
               {{"a flat list becomes a tree with shared parts", "gar topo import flat.json -o tree.json"}});
  on_run(import_verb, context, [args, &context] { return import(*args, context); });

  CLI::App& convert_verb = add_verb(topo, "convert", "Write a network as JSON or for Graphviz", context);
  add_network(convert_verb, *args);
  convert_verb
      .add_option("--format", args->format,
                  fmt::format("{} (default: by the name of the output, else {})", writer_names(" or "),
                              topology_writers().front().name))
      ->type_name("FORMAT");
  convert_verb.add_option("-o,--output", args->output, "File to write (default: standard output)")->type_name("F");
  set_examples(convert_verb, {{"a built-in network as a file to edit", "gar topo convert sym384 -o network.json"},
                              {"a drawing", "gar topo convert cdc384 --format dot | dot -Tsvg > cdc384.svg"}});
  on_run(convert_verb, context, [args, &context] { return convert(*args, context); });
}

}  // namespace gar::cli
