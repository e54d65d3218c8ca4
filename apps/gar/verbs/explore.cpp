// gar explore: the explorer page with a network inside. The page itself is built in web/ (make web).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <thread>

#include "apps/gar/cli/installed.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/files.hpp"
#include "gar/measure/launch.hpp"
#include "gar/report.hpp"

namespace gar::cli {
namespace {

namespace fs = std::filesystem;

struct ExploreArgs {
  NetworkArgs network;
  SizeArgs size;
  std::string output = "gar.html";
  std::string page;
  bool open = false;
};

/// The page of an installation, and that of a build tree.
std::vector<fs::path> page_places() {
  const fs::path bin = own_path().parent_path();
  return {(bin / datadir_from_bindir() / "gar/gar.html").lexically_normal(),
          (bin / "../../web/gar.html").lexically_normal()};
}

std::string read_page(const ExploreArgs& args) {
  std::vector<fs::path> places = page_places();
  if (!args.page.empty()) places = {args.page};
  for (const fs::path& place : places) {
    std::ifstream file(place, std::ios::binary);
    if (!file || fs::is_directory(place)) continue;
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string looked;
  for (const fs::path& place : places) looked += (looked.empty() ? "" : " and ") + escaped(place.string());
  throw std::runtime_error(
      fmt::format("the empty explorer page is missing (looked for {}). It is built by `make web` in the sources, which "
                  "needs npm and emscripten (Debian: apt-get install npm emscripten), and installed by `make install`; "
                  "--page FILE names another one",
                  looked));
}

/// Opens a file in the browser of the user. Nobody waits for it.
void open_in_browser(const std::string& path) {
  const std::string url = fs::absolute(path).string();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("--open: no process can be started");
  if (pid == 0) {
    // The browser may outlive this program, and says nothing on its terminal.
    setsid();
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, stream);
    for (const char* opener : {"xdg-open", "open", "sensible-browser"}) {
      execlp(opener, opener, url.c_str(), static_cast<char*>(nullptr));
    }
    _exit(127);
  }
  // Some openers stay as long as the browser does: what has not failed by then has opened it.
  constexpr auto kPatience = std::chrono::seconds(2);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  pid_t ended = 0;
  while (ended == 0 && std::chrono::steady_clock::now() < end) {
    ended = waitpid(pid, &status, WNOHANG);
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (ended == pid && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
    throw std::runtime_error(
        fmt::format("--open: no browser could be started (xdg-open); open {} by hand", escaped(path)));
  }
}

/// Is it a file, or a name that the page knows, too?
bool is_file(const std::string& topology) {
  std::error_code ignored;
  const auto status = fs::status(topology, ignored);
  return topology.ends_with(".json") || (fs::exists(status) && !fs::is_directory(status));
}

ExplorerStart start_of(const ExploreArgs& args) {
  ExplorerStart out;
  if (!args.size.empty()) {
    const std::vector<VectorSize> sizes = vector_sizes(args.size);
    if (sizes.size() > 1) throw UsageError("gar explore takes a single size; the page shows all of them");
    out.bytes = static_cast<double>(sizes.front().bytes);
  }
  if (args.network.empty()) return out;
  Network network = load_network(args.network);
  const bool has_profile = network.profile.has_value();
  out.profile = std::move(network.profile);
  if (!has_profile && !is_file(args.network.topology)) {
    out.spec = args.network.topology;
  } else {
    out.topology = std::move(network.topology);
    const std::string& given = args.network.topology.empty() ? args.network.profile : args.network.topology;
    out.name = has_profile ? "network.json" : fs::path(given).filename().string();
  }
  return out;
}

int run(const ExploreArgs& args, const Context& context) {
  const bool is_stdout = args.output == "-";
  if (is_stdout && (args.open || context.json))
    throw UsageError("-o - writes the page to standard output; it cannot be combined with --open and --json");
  const ExplorerStart start = start_of(args);
  if (!is_stdout) check_writable("-o", args.output);
  const std::string page = explorer_page(read_page(args), start);
  if (is_stdout) {
    if (std::fwrite(page.data(), 1, page.size(), stdout) != page.size() || std::fflush(stdout) != 0) {
      throw std::runtime_error("standard output: the page could not be written");
    }
    return kExitOk;
  }
  save_file(args.output, [&](std::ostream& file) { file << page; });
  if (args.open) open_in_browser(args.output);
  if (context.json) {
    print(page_document(args.output, static_cast<std::int64_t>(page.size())));
  } else {
    print(fmt::format("written to {} ({}); open it in a browser: it needs no server and no network\n",
                      escaped(args.output), format_bytes(static_cast<double>(page.size()))));
  }
  return kExitOk;
}

}  // namespace

void add_explore(CLI::App& program, Context& context) {
  CLI::App& verb =
      *program.add_subcommand("explore", "Write an interactive page that shows what AllReduce costs on a network");
  auto args = std::make_shared<ExploreArgs>();
  add_network_options(verb, args->network);
  add_size_options(verb, args->size);
  verb.add_option("-o,--output", args->output, "Where to write the page; - for standard output")
      ->type_name("FILE")
      ->capture_default_str();
  verb.add_flag("--open", args->open, "Open it in the browser");
  verb.add_option("--page", args->page, "The empty page (default: the one that was built or installed)")
      ->type_name("FILE");
  add_output_options(verb, context);
  set_examples(verb, {{"16 racks of 24 servers, in the browser", "gar explore -t tree:16x24 --open"},
                      {"a network that gar fit has measured", "gar explore -p profile.json -o network.html"},
                      {"for a vector of 64 MiB", "gar explore -t star:12@100Gbit/s,2us --size 64MiB"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
