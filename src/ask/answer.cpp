// The table of questions, and what becomes of those that cannot be answered.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "ask/question.hpp"
#include "documents/json.hpp"
#include "gar/ask.hpp"
#include "gar/errors.hpp"
#include "gar/format.hpp"

namespace gar {
namespace {

struct Kind {
  std::string_view name;
  std::string (*answer)(const ask::Question& question);
};
constexpr std::array<Kind, 13> kKinds{{{"predict", ask::ask_predict},
                                       {"curve", ask::ask_curve},
                                       {"heat", ask::ask_heat},
                                       {"plan", ask::ask_plan},
                                       {"verify", ask::ask_verify},
                                       {"simulate", ask::ask_simulate},
                                       {"movie", ask::ask_movie},
                                       {"trace", ask::ask_trace},
                                       {"topology", ask::ask_topology},
                                       {"network", ask::ask_network},
                                       {"profile", ask::ask_profile},
                                       {"diagnose", ask::ask_diagnose},
                                       {"inspect", ask::ask_inspect}}};

constexpr int kUsage = 2;
constexpr int kBadInput = 3;
constexpr int kRunTime = 4;

std::string error_document(const std::string& what, int exit_code) {
  documents::Json out = documents::begin("gar.error/1");
  out["error"] = what;
  out["exit_code"] = exit_code;
  return documents::text_of(out);
}

std::string answer_to(std::string_view text) {
  const nlohmann::json json = parse_json(text, "question");
  if (!json.is_object()) throw ParseError("question: expected an object with the field \"ask\"");
  const ask::Question question(json);
  std::string names;
  for (const Kind& kind : kKinds) {
    if (!names.empty()) names += ' ';
    names += kind.name;
  }
  const std::string name = question.needed_text("ask", names);
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.name == name; });
  if (found == kKinds.end()) {
    throw UsageError(fmt::format("question: ask: is '{}'; expected {}", escaped(name), names));
  }
  return found->answer(question);
}

}  // namespace

std::string answer(std::string_view question) {
  try {
    return answer_to(question);
  } catch (const UsageError& error) {
    return error_document(error.what(), kUsage);
  } catch (const Error& error) {
    return error_document(error.what(), kBadInput);
  } catch (const std::bad_alloc&) {
    return error_document("there is not enough memory for this", kRunTime);
  } catch (const std::exception& error) {
    return error_document(error.what(), kRunTime);
  }
}

}  // namespace gar
