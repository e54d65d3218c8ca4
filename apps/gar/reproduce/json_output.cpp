// The documents of `gar reproduce`.
#include "apps/gar/reproduce/json_output.hpp"

#include "apps/gar/cli/output.hpp"
#include "gar/version.hpp"

namespace gar::cli {

Json json_document(std::string_view schema) {
  Json document;
  document["gar_version"] = version();
  document["schema"] = schema;
  return document;
}

void print_json(const Json& document) {
  // Names may come from files in any encoding: what is not UTF-8 is replaced instead of refused.
  print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json terms_json(const Terms& terms) {
  Json j;
  for (const TermInfo& term : kTerms) {
    if (!term.is_optional || terms.*term.seconds != 0) j[std::string(term.name)] = terms.*term.seconds;
  }
  return j;
}

}  // namespace gar::cli
