// -t and -p.
#include "apps/gar/cli/network.hpp"

#include <fmt/format.h>

#include "apps/gar/cli/common.hpp"
#include "gar/explain_topology.hpp"
#include "gar/fit_report.hpp"

namespace gar::cli {
void add_profile_option(CLI::App& verb, std::string& path) {
  verb.add_option("-p,--profile", path, "A profile written by gar fit; with -t its parameters replace those of T")
      ->type_name("FILE");
}

void add_network_options(CLI::App& verb, NetworkArgs& args) {
  verb.add_option(
          "-t,--topology", args.topology,
          "The network: a file, a name of gar topo list, or a generator such as tree:16x24 or star:12@100Gbit/s,2us")
      ->type_name("T");
  add_profile_option(verb, args.profile);
}

Network load_network(const NetworkArgs& args, Notes notes) {
  if (args.empty())
    throw UsageError(
        "a network is needed: -t with a file, a name (gar topo list) or a generator such as tree:16x24 or "
        "star:12@100Gbit/s,2us, or -p with a profile as gar fit writes it");
  Network network = gar::load_network(args.topology, args.profile);
  if (notes == Notes::kOmit) return network;
  for (const std::string& note : network.notes) print_note(note);
  if (const std::string rough = network.profile ? rough_words(*network.profile) : ""; !rough.empty()) {
    print_note(fmt::format("{} {} (gar profile show)", args.profile, rough));
  }
  return network;
}

std::string parameter_line(const Topology& topology) {
  const std::string words = parameter_words(topology);
  return words.empty() ? "" : words + "\n";
}

}  // namespace gar::cli
