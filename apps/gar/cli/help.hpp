// --help in lines that fit the terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gar::cli {

/// Flags on the left, what they do on the right, as wide as the terminal.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool is_positional, std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_footer(const CLI::App* app) const override;
};

/// What set_examples() has written, in lines of at most `columns`: comments go on behind another "#", commands behind a
/// backslash, so that they can still be copied.
std::string fitted_examples(std::string_view footer, std::size_t columns);

}  // namespace gar::cli
