#include "apps/gar/views/json_output.hpp"

#include "apps/gar/cli/common.hpp"

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

}  // namespace gar::cli
