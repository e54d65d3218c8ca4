// gar completion: shell completions, generated from the verbs and flags that the program has.
//
// Every shell gets the same three questions answered: which verb are we in (the words so far, matched against the tree
// of verbs), is the word before the cursor a flag that takes a value (then offer its values or files), and what else
// can stand here (nested verbs, flags, values of the verb's own argument).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <vector>

#include "apps/gar/verbs/verbs.hpp"

namespace gar::cli {
namespace {

/// What can stand in the place of a value.
struct Values {
  std::vector<std::string> words;
  bool is_list = false;    ///< words joined by commas
  bool has_files = false;  ///< a file name, too
};

struct Flag {
  std::vector<std::string> names;  ///< with dashes
  std::string help;
  bool has_value = false;
  Values values;
};

struct Verb {
  std::string path;  ///< "topo show"; empty for the program itself
  std::string help;
  std::vector<std::string> verbs;  ///< nested
  std::vector<Flag> flags;
  Values argument;
};

/// The words of a "{a,b,c}" in a type name, which is how CLI11 writes the values that an option accepts.
std::vector<std::string> words_in_braces(const std::string& type_name) {
  const std::size_t open = type_name.find('{');
  const std::size_t close = type_name.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return {};
  std::vector<std::string> words = CLI::detail::split(type_name.substr(open + 1, close - open - 1), ',');
  for (std::string& word : words) word = CLI::detail::trim_copy(word);
  return words;
}

/// Whether a type or an argument of that name stands for a file: F, FILE, plan.json.
bool is_file_name(const std::string& name) { return name == "F" || name == "FILE" || name.ends_with(".json"); }

Values values_of(const CLI::Option& option) {
  Values values;
  if (option.check_lname("topology") || option.get_name(true) == "T") {
    values.words = topology_names();
    values.words.insert(values.words.end(), generator_prefixes().begin(), generator_prefixes().end());
    values.has_files = true;
  } else if (option.check_lname("algo")) {
    values.words = algorithm_names();
    values.is_list = true;
  } else if (option.get_positional() && option.get_name(true) == "target") {
    values.words = reproduction_names();
  } else if (option.check_lname("dtype")) {
    for (int t = 0; t < kNumDataTypes; ++t) values.words.emplace_back(to_string(static_cast<DataType>(t)));
  } else {
    const std::string type_name = option.get_type_name();
    values.words = words_in_braces(type_name);
    values.has_files = is_file_name(type_name) || is_file_name(option.get_name(true));
  }
  return values;
}

void collect(const CLI::App& app, const std::string& path, std::vector<Verb>& verbs) {
  Verb verb;
  verb.path = path;
  verb.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      const Values values = values_of(*option);
      verb.argument.words.insert(verb.argument.words.end(), values.words.begin(), values.words.end());
      verb.argument.has_files = verb.argument.has_files || values.has_files;
    }
    Flag flag;
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    if (flag.names.empty() || option->get_group().empty()) continue;
    flag.help = option->get_description();
    flag.has_value = option->get_items_expected_max() > 0;
    if (flag.has_value) flag.values = values_of(*option);
    verb.flags.push_back(std::move(flag));
  }
  std::vector<const CLI::App*> children;
  for (const CLI::App* child : app.get_subcommands({})) {
    if (child->get_group().empty()) continue;
    verb.verbs.push_back(child->get_name());
    children.push_back(child);
  }
  verbs.push_back(std::move(verb));
  for (const CLI::App* child : children) {
    collect(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), verbs);
  }
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// In single quotes for bash, zsh.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// In single quotes for fish, where a backslash escapes.
std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::vector<std::string> all_flag_names(const Verb& verb) {
  std::vector<std::string> names;
  for (const Flag& flag : verb.flags) names.insert(names.end(), flag.names.begin(), flag.names.end());
  return names;
}

/// The lines that bash and zsh share: `verb` follows the verbs in the array `words`, up to the word at the cursor.
std::string path_cases(const std::vector<Verb>& verbs, std::string_view indent) {
  std::string out;
  for (const Verb& verb : verbs) {
    for (const std::string& child : verb.verbs) {
      const std::string path = verb.path.empty() ? child : verb.path + " " + child;
      out += fmt::format("{}{}) verb={} ;;\n", indent, shell_quoted(verb.path + "|" + child), shell_quoted(path));
    }
  }
  return out;
}

/// Lines that set `values`, `list` and `files` for the flag before the cursor.
std::string value_cases(const std::vector<Verb>& verbs, std::string_view indent) {
  std::string out;
  for (const Verb& verb : verbs) {
    for (const Flag& flag : verb.flags) {
      if (!flag.has_value) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names) patterns.push_back(shell_quoted(verb.path + "|" + name));
      out += fmt::format("{}{}) values={} list={} files={} ;;\n", indent, fmt::join(patterns, "|"),
                         shell_quoted(joined(flag.values.words)), flag.values.is_list ? "1" : "''",
                         flag.values.has_files ? "1" : "''");
    }
  }
  return out;
}

/// Lines that set `values`, `flags` and `files` for what a verb takes.
std::string word_cases(const std::vector<Verb>& verbs, std::string_view indent) {
  std::string out;
  for (const Verb& verb : verbs) {
    std::vector<std::string> words = verb.verbs;
    words.insert(words.end(), verb.argument.words.begin(), verb.argument.words.end());
    out += fmt::format("{}{}) values={} flags={} files={} ;;\n", indent, shell_quoted(verb.path),
                       shell_quoted(joined(words)), shell_quoted(joined(all_flag_names(verb))),
                       verb.argument.has_files ? "1" : "''");
  }
  return out;
}

std::string bash_script(const std::vector<Verb>& verbs) {
  return fmt::format(R"sh(# bash completion for gar; load it with: source <(gar completion bash)
_gar() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} first=$COMP_CWORD i word
  local verb='' values='' flags='' list='' files='' prefix=''
  # For bash a word ends at a colon: put table:gtplan together again.
  while ((first > 1)) && [[ ${{COMP_WORDS[first]}} == ':' || ${{COMP_WORDS[first - 1]}} == ':' ]]; do
    ((first--)) || :
    cur=${{COMP_WORDS[first]}}$cur
  done
  local prev=${{COMP_WORDS[first - 1]}} before_colon=''
  ((first == COMP_CWORD)) || before_colon=${{cur%"${{cur##*:}}"}}
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]]; then
    prev=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$verb|${{COMP_WORDS[i]}}" in
{}    esac
  done
  case "$verb|$prev" in
{}    *)
      case "$verb" in
{}      esac
      [[ $cur == -* ]] && values=$flags files=''
      ;;
  esac
  if [[ -n $list && $cur == *,* ]]; then
    prefix=${{cur%,*}},
    cur=${{cur##*,}}
  fi
  COMPREPLY=()
  for word in $values; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$prefix${{word#"$before_colon"}}")
  done
  if [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *: ]]; then
    compopt -o nospace 2>/dev/null || :
  fi
  if [[ -n $files && -n $cur || -n $files && ${{#COMPREPLY[@]}} -eq 0 ]]; then
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null || :
  fi
  return 0
}}
complete -F _gar gar
)sh",
                     path_cases(verbs, "      "), value_cases(verbs, "    "), word_cases(verbs, "        "));
}

std::string zsh_script(const std::vector<Verb>& verbs) {
  return fmt::format(R"sh(#compdef gar
# zsh completion for gar; load it with: source <(gar completion zsh)
_gar() {{
  local cur=$words[CURRENT] prev=$words[CURRENT-1]
  local verb='' values='' flags='' list='' files='' i
  for ((i = 2; i < CURRENT; i++)); do
    case "$verb|$words[i]" in
{}    esac
  done
  if [[ $cur == --*=* ]]; then
    prev=${{cur%%=*}}
    compset -P '*='
  fi
  case "$verb|$prev" in
{}    *)
      case "$verb" in
{}      esac
      [[ $cur == -* ]] && values=$flags files=''
      ;;
  esac
  [[ -n $list ]] && compset -P '*,'
  local -a plain open
  plain=(${{(M)${{=values}}:#*[^:]}})
  open=(${{(M)${{=values}}:#*:}})
  (( $#plain )) && compadd -a plain
  (( $#open )) && compadd -S '' -a open
  [[ -n $files ]] && _files
  return 0
}}
if [[ $funcstack[1] == _gar ]]; then
  _gar "$@"
else
  compdef _gar gar
fi
)sh",
                     path_cases(verbs, "      "), value_cases(verbs, "    "), word_cases(verbs, "        "));
}

std::string fish_flag(const Verb& verb, const Flag& flag) {
  std::string line = fmt::format("complete -c gar -n {}", fish_quoted("__gar_in " + fish_quoted(verb.path)));
  for (const std::string& name : flag.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (flag.has_value) {
    line += flag.values.has_files ? " -r -F" : " -x";
    if (flag.values.is_list) {
      line += fmt::format(
          " -a {}", fish_quoted("(__fish_complete_list , 'string split \" \" \"" + joined(flag.values.words) + "\"')"));
    } else if (!flag.values.words.empty()) {
      line += fmt::format(" -a {}", fish_quoted(joined(flag.values.words)));
    }
  }
  return line + fmt::format(" -d {}\n", fish_quoted(flag.help));
}

std::string fish_script(const std::vector<Verb>& verbs) {
  std::string out = R"sh(# fish completion for gar; load it with: gar completion fish | source
function __gar_in
  set -l path ''
  for word in (commandline -opc)[2..-1]
    switch "$path|$word"
)sh";
  for (const Verb& verb : verbs) {
    for (const std::string& child : verb.verbs) {
      const std::string path = verb.path.empty() ? child : verb.path + " " + child;
      out +=
          fmt::format("      case {}\n        set path {}\n", fish_quoted(verb.path + "|" + child), fish_quoted(path));
    }
  }
  out += "    end\n  end\n  test \"$path\" = \"$argv[1]\"\nend\ncomplete -c gar -f\n";
  for (const Verb& verb : verbs) {
    const std::string condition = fish_quoted("__gar_in " + fish_quoted(verb.path));
    for (const std::string& child : verb.verbs) {
      const std::string path = verb.path.empty() ? child : verb.path + " " + child;
      const auto found = std::find_if(verbs.begin(), verbs.end(), [&](const Verb& v) { return v.path == path; });
      out += fmt::format("complete -c gar -n {} -a {} -d {}\n", condition, child, fish_quoted(found->help));
    }
    if (!verb.argument.words.empty()) {
      out += fmt::format("complete -c gar -n {} -a {}\n", condition, fish_quoted(joined(verb.argument.words)));
    }
    if (verb.argument.has_files) out += fmt::format("complete -c gar -n {} -F\n", condition);
    for (const Flag& flag : verb.flags) out += fish_flag(verb, flag);
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& program, Context& context) {
  CLI::App* verb = program.add_subcommand("completion", "Print a completion script for a shell");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "The shell")
      ->required()
      ->type_name("SHELL")
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}));
  set_examples(*verb, {{"in ~/.bashrc", "source <(gar completion bash)"},
                       {"in ~/.config/fish/config.fish", "gar completion fish | source"}});
  on_run(*verb, context, [&program, shell] {
    std::vector<Verb> verbs;
    collect(program, "", verbs);
    print(*shell == "bash" ? bash_script(verbs) : *shell == "zsh" ? zsh_script(verbs) : fish_script(verbs));
    return kExitOk;
  });
}

}  // namespace gar::cli
