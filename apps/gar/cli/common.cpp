#include "apps/gar/cli/common.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>

#include "apps/gar/cli/environment.hpp"
#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/measure/launch.hpp"
#include "gar/topology.hpp"
#include "gar/topology_io.hpp"

namespace gar::cli {
namespace {

// Below "gar: ", in lines that fit the terminal.
void print_message(std::string first, std::string_view message) {
  const std::string text = wrapped(std::move(first), 5, escaped(message), terminal_columns(stderr));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void print_error(const Context& context, std::string_view message) {
  print_message(paint("gar:", Paint::kRed, use_color(context.color, stderr)) + " ", message);
}

/// "gar topo show"
std::string full_name(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return full_name(*app.get_parent()) + " " + app.get_name();
}

void print_hint(const CLI::App& app) {
  const std::string text = fmt::format("try: {} --help\n", full_name(app));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// The innermost verb that the command line named.
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> called = app.get_subcommands();
  return called.empty() ? app : innermost(*called.back());
}

std::vector<std::string> visible_verbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  return names;
}

/// The first word after `app`'s own name that is no flag, when it is no verb of `app` either.
std::string unknown_verb(const CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> verbs = visible_verbs(app);
  if (verbs.empty()) return "";
  // A name below the program starts after that name; the words before it are its parents and their flags.
  int first = 1;
  if (app.get_parent() != nullptr) {
    while (first < argc && argv[first] != app.get_name()) ++first;
    ++first;
  }
  for (int i = first; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--color") ++i;
    if (!word.starts_with("-")) return std::string(word);
  }
  return "";
}

/// What is before and behind `middle`; nothing where it is not there.
std::optional<std::pair<std::string, std::string>> split_at(const std::string& text, std::string_view middle) {
  const std::size_t at = text.find(middle);
  if (at == std::string::npos) return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + middle.size()));
}

/// The sentences of CLI11 in the words of this program: what is wrong, and what is expected.
std::string in_own_words(const std::string& text) {
  if (const auto flags = split_at(text, " excludes ")) {
    return fmt::format("{} and {} cannot be used together", flags->first, flags->second);
  }
  if (const auto times = split_at(text, ": At Most 1 required but received ")) {
    return fmt::format("{} is given {} times; expected it once", times->first, times->second);
  }
  if (const auto missing = split_at(text, ": 1 required "); missing && missing->second.ends_with(" missing")) {
    return fmt::format("{} needs a value; expected {} {}", missing->first, missing->first,
                       missing->second.substr(0, missing->second.size() - std::string_view(" missing").size()));
  }
  if (const auto values = split_at(text, " not in {"); values && values->second.ends_with("}")) {
    if (const auto given = split_at(values->first, ": ")) {
      std::string expected = values->second.substr(0, values->second.size() - 1);
      std::replace(expected.begin(), expected.end(), ',', ' ');
      return fmt::format("{} '{}': expected one of {}", given->first, given->second, expected);
    }
  }
  if (const auto name = split_at(text, " is required"); name && name->second.empty()) {
    return fmt::format("{} is missing", name->first);
  }
  return text;
}

/// "; did you mean -t ss24?" behind words that nothing takes, where the first of them is a network.
std::string network_hint(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::Option* option = app.get_option_no_throw("--topology");
  if (option == nullptr || option->count() > 0 || words.empty() || words.front().starts_with("-")) return "";
  try {
    (void)load_topology(words.front());
    return fmt::format("; did you mean -t {}?", shell_word(words.front()));
  } catch (const Error&) {
    return "";
  }
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
  if (app.get_require_subcommand_min() > 0) {
    const std::vector<std::string> verbs = visible_verbs(app);
    const std::string word = unknown_verb(app, argc, argv);
    if (word.empty()) return fmt::format("a verb is needed: {}", fmt::join(verbs, " "));
    if (std::find(verbs.begin(), verbs.end(), word) == verbs.end()) {
      const std::vector<std::string> close = closest_words(word, verbs);
      if (close.empty()) return fmt::format("unknown verb '{}'; expected {}", word, fmt::join(verbs, " "));
      return fmt::format("unknown verb '{}'; did you mean {}?", word, fmt::join(close, " or "));
    }
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    std::vector<std::string> flags;
    for (const CLI::Option* option : app.get_options()) {
      if (!option->get_lnames().empty()) flags.push_back("--" + option->get_lnames().front());
    }
    const std::string hint = network_hint(app, app.remaining());
    return fmt::format("unknown option or argument: {}{}", fmt::join(app.remaining(), " "),
                       hint.empty() ? fmt::format("; expected {}", fmt::join(flags, " ")) : hint);
  }
  return in_own_words(error.what());
}

/// How many words of the command line are the program's own (Context::runs_command).
int num_own_words(const Context& context, int argc, const char* const* argv) {
  if (context.runs_command == nullptr) return argc;
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    if (std::string_view(argv[i]) == "--color") ++i;
  }
  if (i >= argc || argv[i] != context.runs_command->get_name()) return argc;
  for (++i; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("-") || word == "-" || word == "--") return i;
    if (word.find('=') != std::string_view::npos) continue;
    const CLI::Option* option = context.runs_command->get_option_no_throw(std::string(word));
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;
  }
  return argc;
}

/// Edit distance: letters inserted, dropped or replaced.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

void on_run(CLI::App& verb, Context& context, std::function<int()> action) {
  verb.callback([&verb, &context, action = std::move(action)] {
    context.called = &verb;
    context.run = action;
  });
}

void take_command(CLI::App& verb, Context& context) { context.runs_command = &verb; }

namespace {

/// The variables that all verbs read. All ranks of a job see the same error; one of them says it.
int check_common_environment(const Context& context) {
  try {
    check_environment([](const EnvironmentVariable& variable) { return variable.reader == EnvironmentReader::kAll; });
    return kExitOk;
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    const std::optional<MpiJob> job = current_mpi_job();
    if (!job || job->rank == 0) print_error(context, failure.message);
    return failure.code;
  }
}

}  // namespace

int run_verb(const Context& context) {
  if (const int code = check_common_environment(context); code != kExitOk) return code;
  try {
    const int code = context.run();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      print_error(context, "cannot write to standard output");
      return kExitRunTime;
    }
    return code;
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    print_error(context, failure.message);
    if (failure.code == kExitUsage) print_hint(*context.called);
    return failure.code;
  }
}

void print_failure(std::string_view message) {
  const std::string text = fmt::format("gar: {}\n", escaped(message));
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void print_note(std::string_view text) { print_message("gar: note: ", text); }

namespace {

// gar help plan: what gar plan --help prints; gar version: what gar --version does.
std::vector<const char*> without_help_verb(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (argc == 2 && std::string_view(argv[1]) == "version") words[1] = "--version";
  if (argc < 2 || std::string_view(argv[1]) != "help") return words;
  words.erase(words.begin() + 1);
  words.push_back("--help");
  return words;
}

}  // namespace

int run_program(CLI::App& program, Context& context, int given_argc, const char* const* given_argv) {
  const std::vector<const char*> all_words = without_help_verb(given_argc, given_argv);
  const int num_own = num_own_words(context, static_cast<int>(all_words.size()), all_words.data());
  context.command.assign(all_words.begin() + num_own, all_words.end());
  if (!context.command.empty() && context.command.front() == "--") context.command.erase(context.command.begin());
  const std::vector<const char*> words(all_words.begin(), all_words.begin() + num_own);
  const int argc = num_own;
  const char* const* argv = words.data();
  if (argc < 2) {
    print(program.help());
    return kExitUsage;
  }
  const std::vector<std::string> verbs = visible_verbs(program);
  const bool asks_for_help = std::string_view(given_argv[1]) == "help" && argc > 2;
  if (asks_for_help && std::find(verbs.begin(), verbs.end(), words[1]) == verbs.end()) {
    print_error(context, fmt::format("unknown verb '{}'; expected {}", words[1], fmt::join(verbs, " ")));
    print_hint(program);
    return kExitUsage;
  }
  for (const CLI::App* verb : program.get_subcommands({})) {  // gar topo: what gar topo --help prints
    if (argc != 2 || verb->get_name() != argv[1] || verb->get_require_subcommand_min() == 0) continue;
    print(verb->help(program.get_name()));
    return kExitUsage;
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    program.exit(request);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    const CLI::App& app = innermost(program);
    print_error(context, usage_message(app, error, argc, argv));
    print_hint(app);
    return kExitUsage;
  }
  return run_verb(context);
}

void add_color_option(CLI::App& app, Context& context) {
  app.add_option_function<std::string>(
         "--color",
         [&context](const std::string& when) {
           context.color = when == "always"  ? ColorMode::kAlways
                           : when == "never" ? ColorMode::kNever
                                             : ColorMode::kAuto;
         },
         "Colour the output; auto: on a terminal, unless NO_COLOR is set")
      ->check(CLI::IsMember(std::vector<std::string>{"auto", "always", "never"}))
      ->type_name("WHEN");
}

void add_output_options(CLI::App& verb, Context& context) {
  verb.add_flag("--json", context.json, "Print one JSON document");
  add_color_option(verb, context);
}

void add_greek_option(CLI::App& verb, Context& context) {
  verb.add_flag("--greek", context.greek, "Call costs by their letters: alpha beta gamma delta epsilon mu");
}

void add_csv_option(CLI::App& verb, Context& context) {
  verb.add_flag("--csv", context.csv, "Print comma-separated values with all digits")
      ->excludes(verb.get_option("--json"));
}

void add_plot_option(CLI::App& verb, Context& context) {
  CLI::Option* option =
      verb.add_flag("--plot", context.plot, "Also draw a picture, on a terminal; --plot=always elsewhere, too");
  option->check([](const std::string& when) -> std::string {
    const bool is_known = when == "true" || when == "auto" || when == "always";
    return is_known ? "" : fmt::format("'{}': expected --plot, --plot=auto or --plot=always", when);
  });
  for (const char* other : {"--json", "--csv"}) {
    if (CLI::Option* data = verb.get_option_no_throw(other)) option->excludes(data);
  }
}

bool draws(const Context& context) {
  if (context.plot.empty()) return false;
  return context.plot == "always" || isatty(STDOUT_FILENO) == 1;
}

void add_size_options(CLI::App& verb, SizeArgs& args) {
  verb.add_option("--size", args.size, "Bytes of the vector: 400MB, 1.5GiB; several: 1kB,1MB or 1kB..1GB")
      ->type_name("SIZE");
  verb.add_option("--count", args.count, "Elements of the vector: 1e8; several: 1e3,1e6 or 1e3..1e9")->type_name("N");
  verb.add_option("-d,--dtype", args.dtype, "Type of the elements (default float32)")->type_name("TYPE");
  verb.add_option("-f,--factor", args.factor,
                  fmt::format("Factor between the sizes of a range (default {})", kSizeFactor))
      ->type_name("F");
}

std::int64_t size_factor(const std::string& text) { return text.empty() ? kSizeFactor : parse_size_factor("-f", text); }

std::vector<VectorSize> vector_sizes(const SizeArgs& args) {
  const DataType dtype = parse_dtype("--dtype", args.dtype);
  if (args.size.empty() == args.count.empty()) {
    throw UsageError(fmt::format("{} --size and --count is needed, for example --count 1e8 or --size 400MB",
                                 args.size.empty() ? "one of" : "only one of"));
  }
  const std::int64_t factor = size_factor(args.factor);
  std::vector<VectorSize> out;
  if (args.count.empty()) {
    for (const std::int64_t bytes : parse_bytes_list("--size", args.size, factor)) {
      out.push_back(vector_size_of_bytes("--size", fmt::to_string(bytes), dtype));
    }
  } else {
    for (const std::int64_t count : parse_count_list("--count", args.count, factor)) {
      out.push_back(vector_size_of_count("--count", fmt::to_string(count), dtype));
    }
  }
  return out;
}

std::vector<std::int64_t> float_vector_bytes(const std::string& sizes, const std::string& counts) {
  if (!sizes.empty() && !counts.empty()) throw UsageError("only one of --size and --count is needed");
  if (counts.empty()) return parse_bytes_list("--sizes", sizes);
  std::vector<std::int64_t> out;
  for (const std::int64_t count : parse_count_list("--count", counts)) {
    out.push_back(vector_size_of_count("--count", fmt::to_string(count), DataType::kFloat32).bytes);
  }
  return out;
}

double parse_timeout(const std::string& text) {
  constexpr double kLeast = 1e-3;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= kLeast && value <= kMaxSeconds)) {
    throw UsageError(fmt::format("--timeout '{}': expected a number of seconds from {:g} to {:g}, such as 30 or 0.5",
                                 text, kLeast, kMaxSeconds));
  }
  return value;
}

void set_examples(CLI::App& app, const std::vector<Example>& examples) {
  std::string footer = "Examples:";
  for (const Example& example : examples) footer += fmt::format("\n  # {}\n  {}", example.what, example.command);
  app.footer(footer);
}

const std::vector<std::string>& topology_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> out(builtin_topologies().begin(), builtin_topologies().end());
    out.insert(out.end(), shipped_topologies().begin(), shipped_topologies().end());
    return out;
  }();
  return kNames;
}

const std::vector<std::string>& generator_prefixes() {
  static const std::vector<std::string> kPrefixes = [] {
    std::vector<std::string> out;
    for (const TopologyGenerator& generator : topology_generators()) out.push_back(std::string(generator.name) + ":");
    return out;
  }();
  return kPrefixes;
}

const std::vector<std::string>& algorithm_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> out;
    for (const AlgorithmInfo& info : algorithms()) out.emplace_back(info.name);
    out.emplace_back("all");
    return out;
  }();
  return kNames;
}

std::vector<std::string> closest_words(std::string_view text, const std::vector<std::string>& words) {
  std::vector<std::string> result;
  std::copy_if(words.begin(), words.end(), std::back_inserter(result),
               [&](const std::string& word) { return !text.empty() && word.starts_with(text); });
  if (!result.empty()) return result;
  std::copy_if(words.begin(), words.end(), std::back_inserter(result),
               [&](const std::string& word) { return edit_distance(text, word) <= 2; });
  return result;
}

std::int64_t parse_ranks(const std::string& text) {
  constexpr std::size_t kMaxDigits = 9;
  const bool is_number = text.size() <= kMaxDigits && text.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || text.find_first_not_of('0') == std::string::npos) {
    throw UsageError(fmt::format("--ranks '{}': expected a whole number of ranks, such as 12", text));
  }
  return std::stoll(text);
}

}  // namespace gar::cli
