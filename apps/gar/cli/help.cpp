// Help texts: two columns, broken at blanks.
#include "apps/gar/cli/help.hpp"

#include <algorithm>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

std::size_t columns() { return terminal_columns(); }

/// "-t, --topology T" and what it does beside it, or below where there is no room.
std::string two_columns(const std::string& left, const std::string& right, std::size_t left_width) {
  std::string first = "  " + left;
  std::string above;
  if (display_width(first) + 2 > left_width) {
    above = wrapped("", 6, first, columns());
    first.clear();
  }
  if (right.empty()) return above.empty() ? first + "\n" : above;
  first.resize(first.size() + left_width - display_width(first), ' ');
  return above + wrapped(first, left_width, right, columns());
}

/// A command in lines that end in a backslash. It is not broken within quotes.
std::string fitted_command(std::string_view command, std::size_t most) {
  std::string out;
  std::string line = "  ";
  std::string word;
  bool is_empty = true;
  char quote = 0;
  const auto add_word = [&](bool is_last) {
    const std::size_t end = is_last ? 0 : 2;  // of the line: the backslash
    if (!is_empty && display_width(line) + 1 + display_width(word) + end > most) {
      // A flag stays with its value.
      const std::size_t last = line.rfind(' ');
      const bool has_flag = line[last + 1] == '-' && !word.starts_with('-') && last > 8;
      const std::string flag = has_flag ? line.substr(last + 1) + " " : "";
      if (has_flag) line.resize(last);
      out += line + " \\\n";
      line = "      " + flag;
      is_empty = true;
    }
    line += (is_empty ? "" : " ") + word;
    is_empty = false;
    word.clear();
  };
  for (const char c : command) {
    if (quote == 0 && c == ' ') {
      add_word(false);
      continue;
    }
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    }
    word += c;
  }
  add_word(true);
  return out + line + "\n";
}

/// A comment whose lines all begin with "# ".
std::string fitted_comment(std::string_view text, std::size_t most) {
  constexpr std::string_view kMark = "  # ";
  std::string out = wrapped(std::string(kMark), kMark.size(), text, most);
  const std::string blanks(kMark.size(), ' ');
  for (std::size_t at = out.find('\n' + blanks); at != std::string::npos; at = out.find('\n' + blanks, at + 1)) {
    out.replace(at + 1, kMark.size(), kMark);
  }
  return out;
}

}  // namespace

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  const std::string out = CLI::Formatter::make_group(group, is_positional, std::move(options));
  const bool is_first = group == "Options" || is_positional;  // below the others there is a line already
  return is_first ? out : out.substr(1);
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return two_columns(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option),
                     get_column_width());
}

// What excludes each other is said by an error, where it matters.
std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  std::string out;
  if (!option->get_type_name().empty()) out += " " + option->get_type_name();
  if (!option->get_default_str().empty()) out += "=" + option->get_default_str();
  if (option->get_required()) out += " (needed)";
  return out;
}

std::string HelpFormatter::make_subcommand(const CLI::App* verb) const {
  return two_columns(verb->get_display_name(true), verb->get_description(), get_column_width());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped("", 0, app->get_description(), columns());
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = CLI::Formatter::make_usage(app, std::move(name));
  usage.erase(usage.find_last_not_of('\n') + 1);
  return wrapped("", 7, usage, columns());
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return fitted_examples(app->get_footer(), columns());
}

std::string fitted_examples(std::string_view footer, std::size_t columns) {
  std::string out;
  while (!footer.empty()) {
    const std::size_t end = std::min(footer.find('\n'), footer.size());
    const std::string_view line = footer.substr(0, end);
    footer.remove_prefix(std::min(end + 1, footer.size()));
    if (line.starts_with("  # ")) {
      out += fitted_comment(line.substr(4), columns);
    } else if (line.starts_with("  ")) {
      out += fitted_command(line.substr(2), columns);
    } else {
      out += std::string(line) + "\n";
    }
  }
  return out;
}

}  // namespace gar::cli
