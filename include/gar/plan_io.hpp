// Plan files to values and back; docs/formats-plan.md describes the format.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "gar/plan.hpp"

namespace gar {

/// Reads a plan file (schema "gar.plan/3" or "gar.plan/2", or the older "gar.plan/1") as a stream, never as a whole.
/// Throws ParseError.
Plan read_plan_file(const std::string& path);
/// The same from a stream; `source` stands for the file name in messages.
Plan read_plan(std::istream& in, const std::string& source);

/// A field that describes a plan without being part of it, such as "predicted_seconds". Readers skip these.
struct PlanNote {
  std::string_view field;  ///< one of docs/formats-plan.md
  std::string json;        ///< its value as JSON text
};
/// Writes a plan as a stream, and the notes after it. Throws InvalidArgument for a note that the format does not know.
void write_plan(const Plan& plan, std::ostream& out, std::span<const PlanNote> notes = {});

/// A format that plans are imported from.
struct PlanReader {
  std::string_view name;                                      ///< for `--format`: "gar-json"
  std::string_view about;                                     ///< a few words for people
  Plan (*read)(std::istream& in, const std::string& source);  ///< throws ParseError that names `source`
};
/// A format that plans are exported to.
struct PlanWriter {
  std::string_view name;                               ///< for `--format`: "gar-json"
  std::string_view about;                              ///< a few words for people
  void (*write)(const Plan& plan, std::ostream& out);  ///< writes the whole plan
};
/// All formats; the first one is the default.
std::span<const PlanReader> plan_readers();
std::span<const PlanWriter> plan_writers();  ///< the first one is the default

}  // namespace gar
