#include "topology/names.hpp"

#include <fmt/format.h>

#include "gar/format.hpp"
#include "gar/topology.hpp"

namespace gar {

std::string name_problem(std::string_view name) {
  if (name.size() > kMaxNameBytes) {
    return fmt::format("the name has {} bytes; expected at most {}", name.size(), kMaxNameBytes);
  }
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/') return fmt::format("the name '{}' contains '/', which separates names in a path", name);
    if (byte < 0x20 || byte == 0x7f) {
      return fmt::format("the name contains the control character 0x{:02x}; expected printable text", byte);
    }
  }
  if (const std::string shown = escaped(name); shown != name) {
    return fmt::format("the name '{}' contains bytes that are no UTF-8, or control characters; expected printable text",
                       shown);
  }
  return {};
}

}  // namespace gar
