// The envelope of every --json document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gar::cli {

/// Keeps the order in which fields are added.
using Json = nlohmann::ordered_json;

/// A document with "gar_version" and "schema" in it; `schema` is for example "gar.predict/1".
Json json_document(std::string_view schema);
/// Writes a document to standard output.
void print_json(const Json& document);

}  // namespace gar::cli
