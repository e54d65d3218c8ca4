// What the verbs share: the options that several of them have, and how a verb is run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "apps/gar/cli/output.hpp"
#include "gar/errors.hpp"
#include "gar/measure/failure.hpp"
#include "gar/quantity.hpp"
#include "gar/topology.hpp"
#include "gar/version.hpp"

namespace gar::cli {

// The program speaks of ranks, worlds and failures in the words of the library.
using namespace measure;  // NOLINT(google-build-using-namespace)

/// What the command line said, and what to do about it.
struct Context {
  bool json = false;                   ///< --json
  bool csv = false;                    ///< --csv
  bool greek = false;                  ///< --greek
  std::string plot;                    ///< --plot: "true" without a value, "auto" or "always"
  ColorMode color = ColorMode::kAuto;  ///< --color
  std::function<int()> run;            ///< set by the verb that was called; returns the exit code
  CLI::App* called = nullptr;          ///< that verb
  CLI::App* runs_command = nullptr;    ///< the verb behind whose words a command follows, if one does
  std::vector<std::string> command;    ///< that command, untouched
};

/// Makes `action` what `verb` does. It returns an exit code, or throws (see run_verb).
void on_run(CLI::App& verb, Context& context, std::function<int()> action);

/// Everything behind the first word that is not one of `verb`'s own, or behind `--`, goes into Context::command, and
/// the parser does not see it.
void take_command(CLI::App& verb, Context& context);

/// Runs the called verb and turns what it throws into a message on standard error and an exit code (see
/// describe_failure).
int run_verb(const Context& context);

/// One line about a failure on standard error, without colour: from any rank.
void print_failure(std::string_view message);
/// "gar: note: TEXT" on standard error, in lines that fit the terminal.
void print_note(std::string_view text);

/// Parses the command line and runs the verb: the whole of main().
int run_program(CLI::App& program, Context& context, int argc, const char* const* argv);

/// Adds `--color`.
void add_color_option(CLI::App& app, Context& context);
/// Adds `--json` and `--color`.
void add_output_options(CLI::App& verb, Context& context);
/// Adds `--greek`.
void add_greek_option(CLI::App& verb, Context& context);
/// Adds `--csv`, which cannot be combined with `--json`.
void add_csv_option(CLI::App& verb, Context& context);

/// Adds `--plot`, which does not go with `--json` and `--csv`.
void add_plot_option(CLI::App& verb, Context& context);
/// Whether pictures are to be drawn: `--plot` does it on a terminal, `--plot=always` everywhere.
bool draws(const Context& context);

/// `--size`, `--count`, `--dtype` and `-f` as typed.
struct SizeArgs {
  std::string size;
  std::string count;
  std::string dtype = "float32";
  std::string factor;
  [[nodiscard]] bool empty() const { return size.empty() && count.empty(); }
};
/// Adds `--size`, `--count`, `--dtype` and `--factor`; exactly one of the first two must be given. The arguments must
/// outlive parsing.
void add_size_options(CLI::App& verb, SizeArgs& args);
/// One size or several: lists and ranges. Throws UsageError.
std::vector<VectorSize> vector_sizes(const SizeArgs& args);
/// Bytes of vectors of floats: `--size` or, in elements, `--count`, one of which is empty. Throws UsageError.
std::vector<std::int64_t> float_vector_bytes(const std::string& sizes, const std::string& counts);
/// `--factor`, or the usual one. Throws UsageError.
std::int64_t size_factor(const std::string& text);
/// `--ranks`. Throws UsageError.
std::int64_t parse_ranks(const std::string& text);

/// `--timeout` in seconds. Throws UsageError.
double parse_timeout(const std::string& text);

/// A line of the help's footer: what it does, and the command.
struct Example {
  std::string what;
  std::string command;
};
void set_examples(CLI::App& app, const std::vector<Example>& examples);

/// Names that `-t` knows without a file.
const std::vector<std::string>& topology_names();
/// Words that start a generator, with their colon.
const std::vector<std::string>& generator_prefixes();
/// Names that `--algo` knows.
const std::vector<std::string>& algorithm_names();

/// The words of `words` closest to `text`: those that it starts, otherwise those within two typing errors.
std::vector<std::string> closest_words(std::string_view text, const std::vector<std::string>& words);

}  // namespace gar::cli
