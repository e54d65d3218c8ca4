// A question, field by field: what several kinds of them have in common.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/profile_io.hpp"
#include "gar/quantity.hpp"
#include "gar/what_if.hpp"
#include "io/json_reader.hpp"

namespace gar::ask {

/// The fields of a question; whatever is wrong with one is a ParseError or InvalidArgument that names it.
class Question {
 public:
  explicit Question(const nlohmann::json& json) : source_("question"), document_(json, source_) {}

  /// The text of a field as it stands; empty: it is not there.
  [[nodiscard]] std::string text(std::string_view field) const;
  /// The same; it must be there.
  [[nodiscard]] std::string needed_text(std::string_view field, std::string_view accepted) const;
  [[nodiscard]] bool flag(std::string_view field) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view field) const;
  [[nodiscard]] std::int64_t whole(std::string_view field, std::int64_t otherwise, std::int64_t least,
                                   std::int64_t most) const;
  [[nodiscard]] bool has(std::string_view field) const { return document_.find(field).has_value(); }

  /// "topology" (a name or a generator) or "network" (the text of a file), with "profile" (text) laid over it, or that
  /// alone. Throws as load_network does.
  [[nodiscard]] Network network() const;
  /// "size" or "count", "dtype".
  [[nodiscard]] VectorSize size() const;
  /// "counts": whole numbers of elements, ascending or not.
  [[nodiscard]] std::vector<VectorSize> sizes() const;
  /// "algo", or what is given here.
  [[nodiscard]] std::vector<AlgorithmSpec> algorithms(const std::string& otherwise) const;
  /// "model" and "incast_degree".
  [[nodiscard]] ModelOptions model() const;
  /// "collective".
  [[nodiscard]] Collective collective() const;
  /// "plan": the text of a plan file; none: nothing.
  [[nodiscard]] std::optional<Plan> plan() const;
  /// "slow", "degrade", "fail", "background" (lists of texts as on the command line), "jitter" and "seed".
  [[nodiscard]] WhatIf what_if() const;

 private:
  std::string source_;
  JsonPlace document_;
};

// The questions.
std::string ask_predict(const Question& question);
std::string ask_curve(const Question& question);
std::string ask_heat(const Question& question);
std::string ask_plan(const Question& question);
std::string ask_verify(const Question& question);
std::string ask_simulate(const Question& question);
std::string ask_movie(const Question& question);
std::string ask_trace(const Question& question);
std::string ask_topology(const Question& question);
std::string ask_network(const Question& question);
std::string ask_profile(const Question& question);
std::string ask_diagnose(const Question& question);
std::string ask_inspect(const Question& question);

}  // namespace gar::ask
