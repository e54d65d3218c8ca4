// The documents of `gar reproduce`.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "gar/model.hpp"

namespace gar::cli {

/// Keeps the order in which fields are added.
using Json = nlohmann::ordered_json;

/// A document with "gar_version" and "schema" in it; `schema` is for example "gar.reproduce/1".
Json json_document(std::string_view schema);
/// Writes a document to standard output.
void print_json(const Json& document);

/// {"alpha":..., "beta":..., "gamma":..., "delta":..., "epsilon":...} in seconds.
Json terms_json(const Terms& terms);

}  // namespace gar::cli
