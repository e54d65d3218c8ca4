#include "runtime/exploration.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hash.hpp"
#include "gar/environment.hpp"
#include "topology/hash.hpp"

namespace gar {

namespace {

/// The bytes of 1, as an element.
std::array<std::uint8_t, 8> one_of(DataType type) {
  std::array<std::uint8_t, 8> out{};
  switch (type) {
    case DataType::kFloat16:
      out[1] = 0x3c;
      break;
    case DataType::kBfloat16:
      out[0] = 0x80;
      out[1] = 0x3f;
      break;
    case DataType::kFloat32:
      out = std::bit_cast<std::array<std::uint8_t, 8>>(static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(1.0F)));
      break;
    case DataType::kFloat64:
      out = std::bit_cast<std::array<std::uint8_t, 8>>(1.0);
      break;
    default:
      out[0] = 1;
      break;
  }
  return out;
}

/// What changes neither 0 nor 1.
std::array<std::uint8_t, 8> neutral_of(DataType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::kProd:
    case ReduceOp::kMin:
    case ReduceOp::kLand:
    case ReduceOp::kBand:
      return one_of(type);
    default:
      return {};
  }
}

std::string hostname() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

}  // namespace

bool is_exploring(const CommunicatorOptions& options, bool is_default) {
  if (!options.algorithm.empty() || options.plan || options.reproducible) return false;
  if (options.on_failure != OnFailure::kReport) return false;  // turns are counted by ranks that are all there
  return options.explores.value_or(is_default);
}

std::string ToldWinners::of(int size_class) const {
  if (size_class < 0 || size_class >= static_cast<int>(kNumClasses)) return {};
  const auto& name = names[static_cast<std::size_t>(size_class)];
  return {name.data(), strnlen(name.data(), name.size())};
}

ToldWinners told_winners(const std::vector<Decision>& decisions) {
  ToldWinners out;
  for (const Decision& decision : decisions) {
    const auto size_class = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(decision.from_bytes)));
    // Classes of another version of ours may have other borders.
    const bool is_a_class = std::has_single_bit(static_cast<std::uint64_t>(decision.from_bytes)) &&
                            decision.to_bytes == 2 * decision.from_bytes - 1;
    if (!is_a_class || size_class >= ToldWinners::kNumClasses || decision.winner.size() >= ToldWinners::kMostLetters) {
      continue;
    }
    std::copy(decision.winner.begin(), decision.winner.end(), out.names[size_class].begin());
  }
  return out;
}

void load(Exploration& exploration, const CommunicatorOptions& options) {
  exploration.folder = decisions_folder();
  if (!options.believes_decisions) return;
  KeptDecisions kept = load_decisions(exploration.folder, exploration.place);
  exploration.kept = std::move(kept.decisions);
  for (Decision& decision : exploration.kept) {
    const auto rename = [](std::string& name) {
      if (name == "latency") name = "gather";  // what it was called before
    };
    rename(decision.winner);
    for (DecisionCandidate& candidate : decision.candidates) rename(candidate.name);
  }
  exploration.problem = std::move(kept.problem);
  exploration.told = told_winners(exploration.kept);
}

DecisionPlace place_on_this_host(const CommunicatorOptions& options, std::string_view transport, int num_ranks) {
  DecisionPlace out;
  out.network = options.topology ? options.topology->name() : hostname();
  out.digest = mix_in(2, std::string_view(hostname()));
  if (options.topology) out.digest = mix_in(out.digest, hash_of(*options.topology));
  out.transport = transport;
  out.num_ranks = num_ranks;
  return out;
}

std::string words_of(const Decision& decision) {
  std::string out;
  for (std::size_t i = 0; i < decision.candidates.size(); ++i) {
    const DecisionCandidate& candidate = decision.candidates[i];
    if (i > 0) out += ", ";
    out += candidate.seconds < 0 ? candidate.name + " not tried"
                                 : fmt::format("{} {:.3g} s", candidate.name, candidate.seconds);
    if (i == 0) out += " (the model's choice)";
  }
  return out;
}

void ExploredClass::begin_turn(const Turn& next) {
  turn = next;
  num_done = 0;
  num_untimed = 0;
}

Decision decision_of(const ExploredClass& explored) {
  const Contest& contest = *explored.contest;
  Decision out;
  out.from_bytes = std::int64_t{1} << (explored.size_class - 1);
  out.to_bytes = 2 * out.from_bytes - 1;
  out.winner = explored.candidates[static_cast<std::size_t>(contest.incumbent())].name;
  out.is_settled = contest.is_settled();
  out.num_calls = contest.num_calls();
  out.seconds = contest.seconds();
  out.extra_seconds = contest.extra_seconds();
  for (std::size_t i = 0; i < explored.candidates.size(); ++i) {
    const Contest::Standing standing = contest.standing(static_cast<int>(i));
    DecisionCandidate candidate;
    candidate.name = explored.candidates[i].name;
    candidate.predicted_seconds = explored.candidates[i].predicted_seconds;
    if (standing.num_known > 0) {
      candidate.seconds = standing.seconds;
      candidate.num_calls = standing.num_known;
    } else if (const DecisionCandidate* old = explored.before ? explored.before->find(candidate.name) : nullptr) {
      candidate.seconds = old->seconds;
      candidate.num_calls = old->num_calls;
    }
    out.candidates.push_back(std::move(candidate));
  }
  return out;
}

void write_word(std::byte* at, DataType type, ReduceOp op, std::optional<unsigned> word) {
  const auto size = static_cast<std::size_t>(size_of(type));
  const std::array<std::uint8_t, 8> one = one_of(type);
  const std::array<std::uint8_t, 8> zero{};
  const std::array<std::uint8_t, 8> neutral = neutral_of(type, op);
  for (unsigned bit = 0; bit < kTurnBits; ++bit) {
    const auto& element = !word ? neutral : (*word >> bit & 1U) != 0 ? one : zero;
    std::memcpy(at + bit * size, element.data(), size);
  }
}

unsigned read_word(const std::byte* at, DataType type) {
  const auto size = static_cast<std::size_t>(size_of(type));
  unsigned out = 0;
  for (unsigned bit = 0; bit < kTurnBits; ++bit) {
    const bool is_set =
        std::any_of(at + bit * size, at + (bit + 1) * size, [](std::byte b) { return b != std::byte{0}; });
    if (is_set) out |= 1U << bit;
  }
  return out;
}

}  // namespace gar
