// gar manual: the manual pages gar(1), gar-plan(1), ..., generated from the same verbs and flags as --help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "apps/gar/cli/help.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "gar/environment.hpp"

namespace gar::cli {
namespace {

constexpr std::size_t kSourceColumns = 68;   // of running text in the source of a page, where dashes take two
constexpr std::size_t kExampleColumns = 72;  // pages are indented

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

/// Running text: troff fills lines, and so do we.
std::string filled(std::string_view text) { return roff(wrapped("", 0, text, kSourceColumns)); }

/// Without the marks for code that documents have.
std::string plain(std::string_view text) {
  std::string out(text);
  std::erase(out, '`');
  return out;
}

/// "ring, cps or all".
std::string one_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += &word == &words.back() ? " or " : ", ";
    out += word;
  }
  return out;
}

/// What an option does, which values it takes and what it is by default.
std::string option_text(const CLI::Option& option) {
  std::string out = option.get_description() + ".";
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  if (open != std::string::npos) {
    out += fmt::format(" {} is one of {}.", type.substr(0, type.find(':')),
                       one_of(CLI::detail::split(type.substr(open + 1, type.find('}') - open - 1), ',')));
  }
  if (option.get_items_expected_max() > 0 && !option.get_default_str().empty()) {
    out += fmt::format(" Default: {}.", option.get_default_str());
  }
  return out;
}

void write_options(const CLI::App& app, std::string& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const bool is_argument = option->nonpositional() ? false : option->get_positional();
    out += fmt::format(".TP\n\\fB{}\\fR", roff(option->get_name(is_argument, true)));
    const std::string type = option->get_type_name();
    if (option->get_items_expected_max() > 0 && !type.empty()) {
      out += fmt::format(" \\fI{}\\fR", roff(type.substr(0, type.find(':'))));
    }
    out += "\n" + filled(option_text(*option));
  }
}

void write_examples(const CLI::App& app, std::string& out) {
  const std::string footer = app.get_footer();
  if (footer.empty()) return;
  const std::string examples = footer.substr(footer.find('\n') + 1);  // without "Examples:"
  out += fmt::format(".nf\n{}.fi\n", roff(fitted_examples(examples, kExampleColumns)));
}

std::string title_line(const std::string& page) {
  std::string name = page;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" \"gar {}\" \"User Commands\"\n", name, version());
}

/// "Predict ..." in the middle of a line.
std::string lower_first(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

void write_exit_codes(std::string& out) {
  out +=
      ".SH EXIT STATUS\n"
      ".TP\n.B 0\nDone.\n"
      ".TP\n.B 1\nA check failed: a plan is wrong, a reproduction out of tolerance, data differ.\n"
      ".TP\n.B 2\nThe command line is wrong.\n"
      ".TP\n.B 3\nBad input: a file, a topology, a plan, a profile.\n"
      ".TP\n.B 4\nA failure at run time.\n";
}

void write_environment(std::initializer_list<EnvironmentReader> readers, std::string& out) {
  out +=
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\n" + filled("When set, output is not coloured unless --color always says so.");
  for (const EnvironmentVariable& variable : environment::kAll) {
    if (std::find(readers.begin(), readers.end(), variable.reader) == readers.end()) continue;
    out += fmt::format(".TP\n.B {}\n{}", variable.name,
                       filled(fmt::format("{} Accepted: {}; otherwise: {}.", plain(variable.sentence),
                                          plain(variable.accepted), plain(variable.otherwise))));
  }
}

std::vector<const CLI::App*> visible_verbs_of(const CLI::App& app) {
  std::vector<const CLI::App*> out;
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (!verb->get_group().empty()) out.push_back(verb);
  }
  return out;
}

/// gar(1).
std::string program_page(const CLI::App& program) {
  std::string out = title_line("gar");
  out +=
      ".SH NAME\ngar \\- predicts, plans, proves, simulates and runs AllReduce\n"
      ".SH SYNOPSIS\n.B gar\n[\\fIoptions\\fR] \\fIverb\\fR [\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\n";
  out += filled(fmt::format(
      "A network is a tree of switches with servers as leaves: a file, one of the networks that gar knows ({}), or a "
      "generator such as star:24, tree:16x24 (16 racks of 24 servers), leafspine:4x16x24 (spines, leaves, "
      "servers per leaf) or fattree:8; with speeds star:12@100Gbit/s,2us, tree:4x12@100GbE. A profile, as gar "
      "fit writes it, is a network with measured parameters.",
      fmt::join(topology_names(), ", ")));
  out +=
      ".PP\n" + filled(
                    "Sizes take B, kB, KB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB or K, M, G, T (powers of "
                    "1024). Several are a list, 1kB,1MB, or a range, 1kB..1GB. Results go to standard output, "
                    "everything else to standard error. With --json the result is one JSON document.");
  out += ".SH OPTIONS\n";
  write_options(program, out);
  out += ".SH VERBS\nEach has a page of its own.\n";
  std::vector<std::string> pages;
  for (const CLI::App* verb : visible_verbs_of(program)) {
    if (verb->get_name() == "help") continue;
    out += fmt::format(".TP\n.BR gar\\-{} (1)\n{}", verb->get_name(), filled(verb->get_description() + "."));
    pages.push_back(fmt::format(".BR gar\\-{} (1)", verb->get_name()));
  }
  write_exit_codes(out);
  write_environment(
      {EnvironmentReader::kAll, EnvironmentReader::kRuntime, EnvironmentReader::kPreload, EnvironmentReader::kTests},
      out);
  out += ".SH EXAMPLES\n";
  write_examples(program, out);
  return out + fmt::format(".SH SEE ALSO\n{}\n", fmt::join(pages, ",\n"));
}

void write_nested(const CLI::App& verb, const std::string& path, std::string& out) {
  out += fmt::format(".SS {}\n{}", roff(path), filled(verb.get_description() + "."));
  write_options(verb, out);
  write_examples(verb, out);
}

/// Verbs that run collectives read what communicators read; gar mpirun starts programs with the preload library.
void write_environment_of(const std::string& verb, std::string& out) {
  const bool runs = verb == "bench" || verb == "fit" || verb == "tune" || verb == "demo" || verb == "reproduce";
  if (verb == "mpirun") {
    write_environment(
        {EnvironmentReader::kAll, EnvironmentReader::kRuntime, EnvironmentReader::kPreload, EnvironmentReader::kTests},
        out);
  } else if (runs) {
    write_environment({EnvironmentReader::kAll, EnvironmentReader::kRuntime}, out);
  } else {
    write_environment({EnvironmentReader::kAll}, out);
  }
}

/// gar-plan(1).
std::string verb_page(const CLI::App& verb) {
  const std::string& name = verb.get_name();
  std::string out = title_line("gar-" + name);
  out += fmt::format(".SH NAME\n{}.SH SYNOPSIS\n.B gar {}\n[\\fIoptions\\fR]",
                     filled(fmt::format("gar-{} - {}", name, lower_first(verb.get_description()))), name);
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_positional()) out += fmt::format(" [\\fI{}\\fR]", roff(option->get_name(true)));
  }
  const std::vector<const CLI::App*> nested = visible_verbs_of(verb);
  if (!nested.empty()) out += " \\fIverb\\fR";
  out += "\n.SH DESCRIPTION\n" + filled(verb.get_description() + ".") + ".SH OPTIONS\n";
  write_options(verb, out);
  if (!nested.empty()) out += ".SH VERBS\n";
  for (const CLI::App* child : nested) write_nested(*child, "gar " + name + " " + child->get_name(), out);
  write_exit_codes(out);
  write_environment_of(name, out);
  if (!verb.get_footer().empty()) out += ".SH EXAMPLES\n";
  write_examples(verb, out);
  return out + ".SH SEE ALSO\n.BR gar (1)\n";
}

std::string manual_page(const CLI::App& program, const std::string& name) {
  if (name.empty()) return program_page(program);
  std::vector<std::string> names;
  for (const CLI::App* verb : visible_verbs_of(program)) {
    if (verb->get_name() == "help") continue;
    if (verb->get_name() == name) return verb_page(*verb);
    names.push_back(verb->get_name());
  }
  throw UsageError(fmt::format("there is no page '{}'; expected a verb: {}", name, fmt::join(names, " ")));
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
  CLI::App* verb = program.add_subcommand("manual", "Print the manual page gar(1), or that of a verb");
  verb->group("");  // for the installation, not for the help
  auto is_environment = std::make_shared<bool>(false);
  auto page = std::make_shared<std::string>();
  verb->add_option("verb", *page, "The verb whose page it is")->type_name("");
  verb->add_flag("--environment", *is_environment, "Print docs/environment.md, the page of environment variables");
  set_examples(*verb, {{"the page of a verb", "gar manual plan | man -l -"}});
  on_run(*verb, context, [&program, is_environment, page] {
    print(*is_environment ? environment_page() : manual_page(program, *page));
    return kExitOk;
  });
}

}  // namespace gar::cli
