// gar profile show|diff: what was measured about a network, and what has changed since.
#include <fmt/format.h>

#include <memory>
#include <sstream>

#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/decisions_show.hpp"
#include "apps/gar/views/profile_show.hpp"
#include "gar/decisions.hpp"
#include "gar/documents.hpp"
#include "gar/profile_io.hpp"

namespace gar::cli {
namespace {

struct ProfileArgs {
  std::string file;
  std::string before;
  std::string after;
  bool all = false;
};

/// A file of decisions, which communicators and `gar tune` keep.
int show_decisions(const Decisions& decisions, const std::string& file, const Context& context) {
  if (context.json) {
    std::ostringstream document;
    write_decisions(decisions, document);
    print(document.str());
  } else if (context.csv) {
    print(decisions_csv_titles());
    for (const Decision& decision : decisions.decisions) print(decision_csv(decision));
  } else {
    print(decisions_report(decisions, file, use_color(context.color, stdout)));
  }
  return kExitOk;
}

int show(const ProfileArgs& args, const Context& context) {
  const std::variant<Profile, Decisions> found = read_profile_or_decisions(args.file);
  if (const auto* decisions = std::get_if<Decisions>(&found)) return show_decisions(*decisions, args.file, context);
  const auto& profile = std::get<Profile>(found);
  if (context.json) {
    print(profile_document(profile, args.file));
  } else if (context.csv) {
    print(profile_csv(profile));
  } else {
    print(profile_report(profile, args.file, use_color(context.color, stdout)));
  }
  return kExitOk;
}

/// "star15, 2026-11-15T17:00:00Z"
std::string headline(const Profile& profile) {
  const std::string& date = profile.provenance.date;
  return escaped(profile.topology.name() + (date.empty() ? "" : ", " + date));
}

void print_changes(const std::vector<ProfileChange>& changes, bool all, bool color) {
  std::size_t num_other = 0;
  bool has_any = false;
  for (const ProfileChange& change : changes) {
    if (!change.is_significant) {
      ++num_other;
      continue;
    }
    has_any = true;
    say(fmt::format("{}\n", paint(escaped(change.words), Paint::kBold, color)));
  }
  if (!has_any) say("no significant change\n");
  if (num_other > 0)
    say(fmt::format("{}{} parameters: their 95% intervals overlap, or one of the profiles does not know them{}\n",
                    num_other, has_any ? " other" : "", all ? "" : " (--all shows them)"));
  if (!all) return;
  for (const ProfileChange& change : changes) {
    if (!change.is_significant) say(fmt::format("  {}\n", escaped(change.words)));
  }
}

int diff(const ProfileArgs& args, const Context& context) {
  const Profile before = read_profile_file(args.before);
  const Profile after = read_profile_file(args.after);
  const std::vector<ProfileChange> changes = compare_profiles(before, after);
  if (!context.json) {
    say(fmt::format("before  {} ({})\nafter   {} ({})\n\n", escaped(args.before), headline(before), escaped(args.after),
                    headline(after)));
    print_changes(changes, args.all, use_color(context.color, stdout));
    return kExitOk;
  }
  print(profile_diff_document(changes, args.before, args.after));
  return kExitOk;
}

}  // namespace

void add_profile(CLI::App& program, Context& context) {
  const auto args = std::make_shared<ProfileArgs>();
  CLI::App& profile = *program.add_subcommand("profile", "Show and compare what gar fit has measured");
  profile.require_subcommand(1);
  set_examples(profile, {{"the parameters of a network, how sure they are, and where they come from",
                          "gar profile show profile.json"},
                         {"what has changed since June?", "gar profile diff june.json today.json"}});

  CLI::App& show_verb = *profile.add_subcommand(
      "show", "Print the parameters with their intervals, residuals, validation and origin, or decisions");
  show_verb.add_option("FILE", args->file, "A profile, as gar fit -o writes it, or a file of decisions")
      ->required()
      ->type_name("");
  add_output_options(show_verb, context);
  add_csv_option(show_verb, context);
  set_examples(show_verb, {{"a profile", "gar profile show profile.json"},
                           {"what earlier jobs found to be the fastest, as gar tune keeps it",
                            "gar profile show ~/.cache/gar/decisions-0123456789abcdef.json"}});
  on_run(show_verb, context, [args, &context] { return show(*args, context); });

  CLI::App& diff_verb =
      *profile.add_subcommand("diff", "Say what has changed between two profiles of one network, largest change first");
  diff_verb.add_option("A", args->before, "The profile from before")->required()->type_name("FILE");
  diff_verb.add_option("B", args->after, "The profile from after")->required()->type_name("FILE");
  diff_verb.add_flag("--all", args->all, "Also print what has not changed significantly");
  add_output_options(diff_verb, context);
  set_examples(diff_verb, {{"what has changed since June?", "gar profile diff june.json today.json"}});
  on_run(diff_verb, context, [args, &context] { return diff(*args, context); });
}

}  // namespace gar::cli
