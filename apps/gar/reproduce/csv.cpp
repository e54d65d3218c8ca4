#include "apps/gar/reproduce/csv.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;  // names and values

std::string value_text(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const Json& one : value) out += (out.empty() ? "" : " ") + value_text(one);
  return out;
}

void add_fields(const Json& object, const std::string& prefix, std::string_view left_out, Fields& row) {
  for (const auto& [name, value] : object.items()) {
    if (name == left_out) continue;
    if (value.is_object()) {
      add_fields(value, prefix + name + ".", "", row);
    } else {
      row.emplace_back(prefix + name, value_text(value));
    }
  }
}

/// The name of the list of an entry that has cells of its own; empty: it is a cell.
std::string list_of_cells(const Json& entry) {
  for (const auto& [name, value] : entry.items()) {
    if (value.is_array() && !value.empty() && value.front().is_object()) return name;
  }
  return "";
}

/// The cells, with what their group says about all of them.
std::vector<Fields> rows_of(const Json& document) {
  std::vector<Fields> out;
  for (const char* list : {"cells", "rows", "trees", "columns"}) {
    if (!document.contains(list)) continue;
    for (const Json& entry : document[list]) {
      Fields row;
      const std::string inner = list_of_cells(entry);
      add_fields(entry, "", inner, row);
      if (inner.empty()) {
        out.push_back(std::move(row));
        continue;
      }
      for (const Json& cell : entry[inner]) {
        out.push_back(row);
        add_fields(cell, "", "", out.back());
      }
    }
    break;
  }
  return out;
}

}  // namespace

std::string reproduction_csv(const Json& document) {
  const std::vector<Fields> rows = rows_of(document);
  std::vector<std::string> names;
  for (const Fields& row : rows) {
    for (const auto& [name, value] : row) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string out = csv_line(names);
  for (const Fields& row : rows) {
    std::vector<std::string> cells(names.size());
    for (const auto& [name, value] : row) {
      cells[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())] = value;
    }
    out += csv_line(cells);
  }
  return out;
}

}  // namespace gar::cli
