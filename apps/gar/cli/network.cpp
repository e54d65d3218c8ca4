#include "apps/gar/cli/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "apps/gar/cli/common.hpp"
#include "gar/io.hpp"

namespace gar::cli {
namespace {

void print_unknown_levels(const NetworkArgs& args, const Network& network, const std::vector<int>& levels) {
  const std::string text =
      fmt::format("gar: note: {} knows {} level{} of links, {} has {}; level{} {} keep{} the parameters of {}\n",
                  args.profile, network.profile->levels.size(), network.profile->levels.size() == 1 ? "" : "s",
                  network.topology.name(), network.topology.height(network.topology.root()),
                  levels.size() == 1 ? "" : "s", fmt::join(levels, ", "), levels.size() == 1 ? "s" : "", args.topology);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

void add_profile_option(CLI::App& verb, std::string& path) {
  verb.add_option("-p,--profile", path,
                  "Measured parameters, as gar fit writes them: of their own network, or laid over T")
      ->type_name("FILE");
}

void add_network_options(CLI::App& verb, NetworkArgs& args) {
  verb.add_option("-t,--topology", args.topology,
                  "The network: a file, a built-in name or a generator such as tree:16x24")
      ->type_name("T");
  add_profile_option(verb, args.profile);
}

Network load_network(const NetworkArgs& args, Notes notes) {
  if (args.empty())
    throw UsageError(
        "a network is needed: -t with a file, a built-in name or a generator such as tree:16x24, or -p with a profile "
        "as gar fit writes it");
  if (args.profile.empty()) return {load_topology(args.topology), std::nullopt};
  Profile profile = read_profile_file(args.profile);
  if (args.topology.empty()) {
    Topology topology = profile.topology;
    return {std::move(topology), std::move(profile)};
  }
  std::vector<int> unknown;
  Topology topology = lay_over(profile, load_topology(args.topology), &unknown);
  Network network{std::move(topology), std::move(profile)};
  if (!unknown.empty() && notes == Notes::kPrint) print_unknown_levels(args, network, unknown);
  return network;
}

}  // namespace gar::cli
