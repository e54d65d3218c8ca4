// gar manual: the manual page gar(1), generated from the same verbs and flags as --help.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/gar/verbs/verbs.hpp"
#include "gar/environment.hpp"

namespace gar::cli {
namespace {

/// Text for troff: no line starts a request, dashes stay dashes.
std::string roff(std::string_view text) {
  std::string out;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    at_line_start = c == '\n';
  }
  return out;
}

/// Without the marks for code that documents have.
std::string plain(std::string_view text) {
  std::string out(text);
  std::erase(out, '`');
  return out;
}

void write_options(const CLI::App& app, std::string& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const bool is_argument = option->nonpositional() ? false : option->get_positional();
    out += fmt::format(".TP\n\\fB{}\\fR", roff(option->get_name(is_argument, true)));
    if (option->get_items_expected_max() > 0) out += fmt::format(" \\fI{}\\fR", roff(option->get_type_name()));
    out += fmt::format("\n{}\n", roff(option->get_description()));
  }
}

void write_footer(const CLI::App& app, std::string& out) {
  const std::string footer = app.get_footer();
  if (!footer.empty()) out += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(footer));
}

void write_verb(const CLI::App& verb, const std::string& path, std::string& out) {
  out += fmt::format(".SS {}\n{}.\n", roff(path), roff(verb.get_description()));
  write_options(verb, out);
  write_footer(verb, out);
  for (const CLI::App* child : verb.get_subcommands({})) {
    if (!child->get_group().empty()) write_verb(*child, path + " " + child->get_name(), out);
  }
}

std::string manual_page(const CLI::App& program) {
  std::string out = fmt::format(
      ".TH GAR 1 \"\" \"gar {}\" \"User Commands\"\n"
      ".SH NAME\ngar \\- {}\n"
      ".SH SYNOPSIS\n.B gar\n[\\fIoptions\\fR] \\fIverb\\fR [\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\n"
      "A network is a tree of switches with servers as leaves: a file, one of the built\\-in networks\n{},\n"
      "or a generator such as star:24, tree:16x24 (16 racks of 24 servers), leafspine:4x16x24\n"
      "(spines, leaves, servers per leaf) or fattree:8. A profile, as gar fit writes it, is a network with measured\n"
      "parameters.\n"
      ".PP\nSizes take B, kB, KB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024). Results go to\n"
      "standard output, everything else to standard error. With \\fB\\-\\-json\\fR the result is one JSON document.\n"
      ".SH OPTIONS\n",
      version(), roff("predicts, plans, proves, simulates and runs the fastest AllReduce for a network"),
      fmt::join(builtin_topology_names(), ", "));
  write_options(program, out);
  out += ".SH VERBS\n";
  for (const CLI::App* verb : program.get_subcommands({})) {
    if (!verb->get_group().empty()) write_verb(*verb, "gar " + verb->get_name(), out);
  }
  out +=
      ".SH EXIT STATUS\n"
      ".TP\n.B 0\nDone.\n"
      ".TP\n.B 1\nA check failed: a plan is wrong, a reproduction is out of tolerance, data differ.\n"
      ".TP\n.B 2\nThe command line is wrong.\n"
      ".TP\n.B 3\nBad input: a file, a topology, a plan, a profile.\n"
      ".TP\n.B 4\nA failure at run time.\n"
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nWhen set, output is not coloured unless \\fB\\-\\-color always\\fR says "
      "so.\n";
  for (const EnvironmentVariable& variable : environment::kAll) {
    if (variable.reader == EnvironmentReader::kInternal) continue;
    out += fmt::format(".TP\n.B {}\n{} Accepted: {}; otherwise: {}.\n", variable.name, roff(plain(variable.sentence)),
                       roff(plain(variable.accepted)), roff(plain(variable.otherwise)));
  }
  out += ".SH EXAMPLES\n.nf\n";
  out += roff(program.get_footer().substr(program.get_footer().find('\n') + 1));
  return out + "\n.fi\n";
}

struct ReaderTitle {
  EnvironmentReader reader;
  const char* title;
};
constexpr ReaderTitle kReaders[] = {
    {EnvironmentReader::kAll, "The library and all verbs"},
    {EnvironmentReader::kRuntime, "Communicators (docs/runtime.md), the preload library and gar fit"},
    {EnvironmentReader::kPreload, "The preload library (docs/preload.md)"},
    {EnvironmentReader::kTests, "Aids for tests"},
    {EnvironmentReader::kInternal, "Set by gar itself, not for users"},
};

/// docs/environment.md.
std::string environment_page() {
  std::string out =
      "# Environment variables\n\n"
      "Every variable that the libraries and programs of gar read. `gar manual --environment` writes this\n"
      "page from the table in `include/gar/environment.hpp`, and a test compares the two. A value that is\n"
      "not accepted is an error that names the variable; an empty value is the same as none. All ranks of\n"
      "a job need the same values. A program that has more rights than who has called it (set-user-id,\n"
      "set-group-id, file capabilities) reads none of them.\n";
  for (const ReaderTitle& part : kReaders) {
    out +=
        fmt::format("\n## {}\n\n| variable | accepted | otherwise | what it does |\n|---|---|---|---|\n", part.title);
    for (const EnvironmentVariable& variable : environment::kAll) {
      if (variable.reader != part.reader) continue;
      out += fmt::format("| `{}` | {} | {} | {} |\n", variable.name, variable.accepted, variable.otherwise,
                         variable.sentence);
    }
  }
  out +=
      "\n## Others\n\n"
      "`NO_COLOR` keeps the output without colour unless `--color always` says otherwise. `gar bench` and\n"
      "`gar fit` know by the launcher's variables (`OMPI_COMM_WORLD_RANK`, `PMIX_RANK` with\n"
      "`SLURM_NTASKS`, `PMI_RANK`) that they are ranks of an MPI job.\n";
  return out;
}

}  // namespace

void add_manual(CLI::App& program, Context& context) {
  CLI::App* verb = program.add_subcommand("manual", "Print the manual page gar(1)");
  verb->group("");  // for the installation, not for the help
  auto is_environment = std::make_shared<bool>(false);
  verb->add_flag("--environment", *is_environment, "Print docs/environment.md, the page of environment variables");
  on_run(*verb, context, [&program, is_environment] {
    print(*is_environment ? environment_page() : manual_page(program));
    return kExitOk;
  });
}

}  // namespace gar::cli
