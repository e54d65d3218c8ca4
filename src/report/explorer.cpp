// A network into the empty explorer page, whose script reads it from an element of its own.
#include <fmt/format.h>

#include <sstream>

#include "gar/errors.hpp"
#include "gar/profile_io.hpp"
#include "gar/report.hpp"
#include "gar/topology_io.hpp"
#include "io/json_text.hpp"

namespace gar {
namespace {

constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"gar-start\">";
constexpr std::string_view kEnd = "</script>";

/// JSON in an HTML page: nothing in it may end the element, or begin another or a comment.
std::string in_page(const std::string& json) {
  std::string out;
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

void add_field(std::string& json, std::string_view name, const std::string& value) {
  json += fmt::format("{}\"{}\":{}", json.size() > 1 ? "," : "", name, value);
}

}  // namespace

std::string explorer_page(std::string_view empty_page, const ExplorerStart& start) {
  const std::size_t begin = empty_page.find(kBegin);
  const std::size_t end = begin == std::string_view::npos ? begin : empty_page.find(kEnd, begin);
  if (end == std::string_view::npos) {
    throw ParseError("the empty page has no place for a network; expected gar.html as `make web` builds it");
  }
  std::string json = "{";
  if (!start.spec.empty()) {
    add_field(json, "topology", quoted(start.spec));
  } else if (start.topology) {
    std::ostringstream text;
    write_topology(*start.topology, text);
    add_field(json, "topology", "null");
    add_field(json, "network", quoted(text.str()));
    if (!start.name.empty()) add_field(json, "name", quoted(start.name));
  }
  if (start.profile) {
    std::ostringstream text;
    write_profile(*start.profile, text);
    add_field(json, "profile", quoted(text.str()));
  }
  if (start.bytes > 0) add_field(json, "bytes", fmt::format("{}", start.bytes));
  json += "}";
  std::string out(empty_page.substr(0, begin + kBegin.size()));
  out += in_page(json);
  out += empty_page.substr(end);
  return out;
}

}  // namespace gar
