// --collective and plan files.
#include "apps/gar/cli/plan_args.hpp"

#include <iostream>
#include <vector>

#include "gar/plan_io.hpp"

namespace gar::cli {

CLI::Option* add_collective_option(CLI::App& verb, std::string& collective, const std::string& what) {
  std::vector<std::string> words;
  for (const Collective c : kCollectives) words.emplace_back(to_string(c));
  const auto to_our_spelling = [](std::string& text) {
    if (const auto known = parse_collective(text)) text = std::string(to_string(*known));
    return std::string();
  };
  return verb.add_option("--collective", collective, what)
      ->type_name("C")
      ->check(CLI::IsMember(words))
      ->transform(CLI::Validator(to_our_spelling, ""))
      ->capture_default_str();
}

Collective collective_of(const std::string& text) { return parse_collective(text).value(); }

Plan load_plan(const std::string& path) {
  return path == "-" ? read_plan(std::cin, "standard input") : read_plan_file(path);
}

}  // namespace gar::cli
