// What the demonstration has found, as a document.
#include "documents/json.hpp"
#include "gar/documents.hpp"

namespace gar {

std::string demo_document(const DemoAnswer& answer) {
  documents::Json out = documents::begin("gar.demo/1");
  out["where"] = answer.where;
  out["num_ranks"] = answer.num_ranks;
  out["bytes"] = answer.bytes;
  out["algorithm"] = answer.algorithm;
  out["seconds"] = answer.seconds;
  out["predicted_seconds"] = answer.predicted_seconds;
  out["other"] = answer.other;
  out["other_seconds"] = answer.other_seconds > 0 ? documents::Json(answer.other_seconds) : documents::Json(nullptr);
  out["speed"] = answer.other_seconds > 0 && answer.seconds > 0 ? documents::Json(answer.other_seconds / answer.seconds)
                                                                : documents::Json(nullptr);
  return documents::text_of(out);
}

std::string page_document(const std::string& file, std::int64_t bytes) {
  documents::Json document = documents::begin("gar.page/1");
  document["file"] = file;
  document["bytes"] = bytes;
  return documents::text_of(document);
}

}  // namespace gar
