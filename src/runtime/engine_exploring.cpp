// Which size classes explore, with which candidates, and a call that takes part (exploration.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "gar/algorithms.hpp"
#include "runtime/engine_running.hpp"

namespace gar {

namespace {

constexpr int kMostPlans = 4;  // of the model, its own choice included
constexpr const char* kNativeName = "native";

double predicted(const ChosenPlan& chosen, int size_class) {
  return chosen.seconds(Collective::kAllReduce, 1.5 * std::ldexp(1.0, size_class - 1) / 4);
}

/// Planning the candidates of a class takes about a millisecond, which shall be 2% of the time in its calls. How long
/// these take is known to each rank alone, so all go by the length.
std::int64_t quiet_calls(int size_class) {
  constexpr double kPlanningS = 1e-3;
  constexpr double kShare = 0.02;
  constexpr double kCallS = 5e-6;
  constexpr double kByteS = 1e-9;
  const double call_s = kCallS + kByteS * std::ldexp(1.0, size_class - 1);
  return std::clamp<std::int64_t>(std::llround(kPlanningS / kShare / call_s), 64, 4096);
}

ExploredCandidate plan_candidate(const ChosenPlan& chosen, int size_class) {
  return {ExploredCandidate::Kind::kPlan, chosen.name, chosen, predicted(chosen, size_class)};
}

}  // namespace

std::unique_ptr<Engine::Advancing> Engine::begin(const CollectiveCall& call, const Path& path) {
  if (path.moving) return std::make_unique<Moving>(*this, call, path);
  if (path.explored) return std::make_unique<Explored>(*this, call, path.explored);
  return std::make_unique<Running>(*this, call, path);
}

std::shared_ptr<ExploredClass> Engine::explored_class(const CollectiveCall& call) {
  if (!exploration_.is_on || size() == 1 || device_ != nullptr || own_ != nullptr) return nullptr;
  if (call.collective != Collective::kAllReduce || call.count == 0) return nullptr;
  const auto bytes = static_cast<std::uint64_t>(vector_bytes(call, size()));
  const bool has_native = exploration_.native != nullptr && exploration_.native->takes(call);
  std::shared_ptr<ExploredClass>& entry = classes_[{std::bit_width(bytes), has_native}];
  if (entry == nullptr) {
    entry = make_class(std::bit_width(bytes), has_native);
    const auto size_class = static_cast<std::size_t>(entry->size_class);
    if (size_class < ToldWinners::kNumClasses) plain_classes_[has_native ? 1 : 0][size_class] = entry.get();
  }
  return entry;
}

/// All ranks come to the same candidates in the same order: they know the same parameters, and what was told.
void Engine::add_candidates(ExploredClass& explored) {
  const std::int64_t least = std::int64_t{1} << (explored.size_class - 1);
  const std::string told = exploration_.told.of(explored.size_class);
  std::vector<ExploredCandidate>& out = explored.candidates;
  out.push_back(plan_candidate(chooser_.choose(Collective::kAllReduce, least), explored.size_class));
  if (explored.has_native) out.push_back({ExploredCandidate::Kind::kNative, kNativeName, {}, -1});
  const int most = kMostPlans - 1 + chooser_.num_special(least);
  for (const ChosenPlan& other : chooser_.others(least, most, told == kNativeName ? "" : told)) {
    out.push_back(plan_candidate(other, explored.size_class));
  }
}

std::shared_ptr<ExploredClass> Engine::make_class(int size_class, bool has_native) {
  auto out = std::make_shared<ExploredClass>();
  out->id = static_cast<int>(classes_.size());
  out->size_class = size_class;
  out->has_native = has_native;
  if (exploration_.is_patient && has_native && exploration_.told.of(size_class).empty()) {
    out->num_quiet = quiet_calls(size_class);
    out->candidates.push_back({ExploredCandidate::Kind::kNative, kNativeName, {}, -1});
    out->begin_turn({.candidate = 0, .num_calls = out->num_quiet + 1});
  } else {
    fill(*out);
  }
  return out;
}

/// Before an operation of the class: one that was quiet until now begins to explore. All ranks have counted the same
/// calls.
void Engine::wake(ExploredClass& explored) {
  if (explored.num_quiet == 0 || explored.num_done < explored.num_quiet) return;
  explored.num_quiet = 0;
  explored.id = -1 - explored.id;  // the first candidate is another one now
  explored.candidates.clear();
  fill(explored);
}

void Engine::fill(ExploredClass& explored) {
  const int size_class = explored.size_class;
  add_candidates(explored);
  const std::string told = exploration_.told.of(size_class);
  const auto is_told = [&](const ExploredCandidate& candidate) { return candidate.name == told; };
  const auto found = std::find_if(explored.candidates.begin(), explored.candidates.end(), is_told);
  const bool is_known = found != explored.candidates.end();
  const auto native =
      std::find_if(explored.candidates.begin(), explored.candidates.end(),
                   [](const ExploredCandidate& c) { return c.kind == ExploredCandidate::Kind::kNative; });
  const bool is_native_first = exploration_.begins_natively && native != explored.candidates.end();
  Turn first;
  first.candidate = is_known          ? static_cast<int>(found - explored.candidates.begin())
                    : is_native_first ? static_cast<int>(native - explored.candidates.begin())
                                      : 0;
  explored.begin_turn(first);
  if (rank() != 0) return;
  std::vector<double> expected;
  const std::int64_t least = std::int64_t{1} << (size_class - 1);
  for (const Decision& decision : exploration_.kept) {
    if (decision.from_bytes != least) continue;
    explored.before = decision;
    if (!is_known || !decision.is_settled) continue;
    // Which plans come next differs a little from job to job, but a verdict without the MPI library's own is none.
    bool has_all = true;
    for (const ExploredCandidate& candidate : explored.candidates) {
      const DecisionCandidate* old = decision.find(candidate.name);
      has_all = has_all && (old != nullptr || candidate.kind != ExploredCandidate::Kind::kNative);
      expected.push_back(old == nullptr ? -1 : old->seconds);
    }
    if (!has_all) expected.clear();
  }
  if (!told.empty() && !is_known && warn_) {
    warn_(fmt::format("all_reduce of {}..{} bytes: an earlier job found {} to be the fastest, which cannot run here",
                      least, 2 * least - 1, told));
  }
  explored.contest.emplace(static_cast<int>(explored.candidates.size()), first.candidate, std::move(expected),
                           ContestOptions{.share = options_.explore_share});
}

Path Engine::make_candidate_path(const CollectiveCall& call, const ExploredCandidate& candidate) {
  Path path;
  PlanReport report;
  if (candidate.kind == ExploredCandidate::Kind::kNative) {
    path.is_native = true;
    report.algorithm = kNativeName;
    report.transport = "mpi";
    report.reason = fmt::format("{}'s own", exploration_.native->library());
  } else {
    return path_with(call, *candidate.plan);
  }
  path.report = std::make_shared<PlanReport>(std::move(report));
  return path;
}

PlanReport Engine::report_of(const CollectiveCall& call) {
  const Path path = path_of(call);
  if (!path.explored) return *path.report;
  const std::lock_guard lock(choice_mutex_);
  const Turn& turn = path.explored->turn;
  PlanReport out = *candidate_path(call, *path.explored, turn.candidate).report;
  out.reason = fmt::format("{}; {}", turn.is_settled ? "by measurement" : "being measured", out.reason);
  return out;
}

const Path& Engine::candidate_path(const CollectiveCall& call, const ExploredClass& explored, int candidate) {
  // What a damaged word could ask for.
  if (candidate >= static_cast<int>(explored.candidates.size())) candidate = 0;
  const Key key{call.collective, call.count, size_of(call.type), explored.id, candidate};
  if (const Path* known = find_path(key)) return *known;
  try {
    return remember(key, make_candidate_path(call, explored.candidates[static_cast<std::size_t>(candidate)]));
  } catch (const PlanError&) {
    // It needs more staging memory than there is, on every rank. The model's choice would have failed before.
    if (candidate == 0) throw;
    return candidate_path(call, explored, 0);
  }
}

Decisions Engine::decisions() {
  const std::lock_guard lock(choice_mutex_);
  Decisions all{exploration_.place, {}};
  std::vector<Decision>& out = all.decisions;
  for (const auto& [key, explored] : classes_) {
    if (!explored->contest) continue;
    Decision decision = decision_of(*explored);
    const DecisionCandidate* winner = decision.find(decision.winner);
    if (winner == nullptr || winner->seconds <= 0) continue;
    // Calls of a type that MPI does not know have a class of their own; the one with more calls speaks for both.
    if (!out.empty() && out.back().from_bytes == decision.from_bytes) {
      if (out.back().num_calls < decision.num_calls) out.back() = std::move(decision);
    } else {
      out.push_back(std::move(decision));
    }
  }
  return all;
}

bool Engine::has_news() {
  constexpr double kWritingS = 2e-3;
  constexpr double kOtherTime = 1.1;
  const std::lock_guard lock(choice_mutex_);
  double seconds = 0;
  for (const auto& [key, explored] : classes_) {
    if (!explored->contest || explored->contest->num_calls() == 0) continue;
    seconds += explored->contest->seconds();
    const Decision now = decision_of(*explored);
    if (!explored->before || explored->before->winner != now.winner || explored->before->is_settled != now.is_settled) {
      return true;
    }
    const DecisionCandidate* was = explored->before->find(now.winner);
    const DecisionCandidate* is = now.find(now.winner);
    if (was == nullptr || is->seconds > kOtherTime * was->seconds || was->seconds > kOtherTime * is->seconds)
      return true;
  }
  // Programs make and free communicators in loops. How many calls there were is worth a file when these took a while.
  return options_.explore_share * seconds > kWritingS;
}

std::string Engine::keep() {
  if (!exploration_.is_on || rank() != 0) return {};
  return keep_decisions(exploration_.folder, decisions());
}

bool Engine::is_settled(const CollectiveCall& call) {
  const std::lock_guard lock(choice_mutex_);
  const std::shared_ptr<ExploredClass> explored = explored_class(call);
  return explored == nullptr || explored->turn.is_settled;
}

void Engine::close() {
  drain();
  if (std::exchange(is_closed_, true) || !exploration_.is_on || rank() != 0 || !has_news()) return;
  const std::string problem = keep();
  if (!problem.empty() && warn_) warn_(fmt::format("what was measured is not kept for the next job: {}", problem));
}

void Engine::log_settled(const ExploredClass& explored) {
  if (!log_) return;
  const Decision decision = decision_of(explored);
  const double share = decision.seconds > 0 ? 100 * decision.extra_seconds / decision.seconds : 0;
  log_(fmt::format(
      "all_reduce of {}..{} bytes, {} ranks over {}: {} by measurement; {}; looking has cost {:.1f}% of the "
      "time in {} calls",
      decision.from_bytes, decision.to_bytes, size(), transport_->name(), decision.winner, words_of(decision), share,
      decision.num_calls));
}

/// Everything but the last call of a turn can run so. What is read here is changed by operations alone, and none is
/// under way where the queue is empty. Ranks may differ in whether they come here: they run the same candidate all the
/// same, because each counts the calls of a turn.
bool Engine::run_plainly(const CollectiveCall& call) {
  if (!exploration_.is_on || call.collective != Collective::kAllReduce || call.count == 0) return false;
  const auto size_class =
      static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(vector_bytes(call, size()))));
  if (size_class >= ToldWinners::kNumClasses) return false;
  NativeAllReduce* native = exploration_.native.get();
  const bool has_native = native != nullptr && native->takes(call);
  ExploredClass* explored = plain_classes_[has_native ? 1 : 0][size_class].load(std::memory_order_acquire);
  if (explored == nullptr || num_queued_.load(std::memory_order_acquire) != 0 || explored->is_last_of_turn() ||
      has_failed_ || is_blocked_) {
    return false;
  }
  const bool is_timed = explored->is_timed();
  const auto begin = is_timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  const int candidate = explored->turn.candidate;
  const bool is_known = candidate < static_cast<int>(explored->candidates.size());
  if (is_known && explored->candidates[static_cast<std::size_t>(candidate)].kind == ExploredCandidate::Kind::kNative) {
    if (!native->is_blocking()) return false;
    try {
      native->start(call);
    } catch (const std::exception& e) {
      give_up(e.what());
      throw;
    }
  } else {
    is_blocked_ = !allows_threads_;  // operations of other communicators go on meanwhile
    const Unblock unblock(is_blocked_);
    Path path;
    {
      const std::lock_guard lock(choice_mutex_);
      const Path& known = candidate_path(call, *explored, candidate);
      path.schedule = known.schedule;
      path.is_native = known.is_native;
    }
    run_path(call, path);
  }
  ++explored->num_done;
  if (is_timed) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const std::lock_guard lock(choice_mutex_);
    explored->contest->add(seconds.count());
  } else if (explored->contest) {
    ++explored->num_untimed;
  }
  return true;
}

// --- one call --------------------------------------------------------------------------------------------------------

Engine::Explored::Explored(Engine& engine, const CollectiveCall& call, std::shared_ptr<ExploredClass> explored)
    : engine_(engine), call_(call), explored_(std::move(explored)), begin_(std::chrono::steady_clock::now()) {
  std::unique_lock lock(engine_.choice_mutex_);
  const std::int64_t bytes = vector_bytes(call, engine_.size());
  engine_.wake(*explored_);
  is_last_ = explored_->is_last_of_turn();
  carries_word_ = is_last_ && bytes <= kCarryingBytes;
  const int candidate = explored_->turn.candidate;
  was_settled_ = explored_->turn.is_settled;
  if (is_last_ && explored_->contest) {
    explored_->contest->add_untimed(explored_->num_untimed);
    word_ = encode(explored_->contest->next());
  }
  CollectiveCall made = call;
  if (carries_word_) {
    engine_.carrier_.resize(static_cast<std::size_t>(kCarryingBytes + kTurnBits * 8));
    std::byte* carrier = engine_.carrier_.data();
    std::memcpy(carrier, call.in, static_cast<std::size_t>(bytes));
    write_word(carrier + bytes, call.type, call.op,
               engine_.rank() == 0 ? std::optional<unsigned>(word_) : std::nullopt);
    made.in = made.out = carrier;
    made.count += kTurnBits;
  }
  const Path& known = engine_.candidate_path(made, *explored_, candidate);
  Path path;
  path.schedule = known.schedule;
  path.is_native = known.is_native;
  lock.unlock();
  begin(made, path);
}

void Engine::Explored::begin(const CollectiveCall& call, const Path& path) {
  // The other ranks compare what the user has called.
  const bool is_ours = call.count != call_.count || call.in != call_.in;
  if (is_ours) engine_.outer_ = call_;
  try {
    running_.emplace(engine_, call, path);
  } catch (...) {
    engine_.outer_.reset();
    throw;
  }
  if (is_ours) engine_.outer_.reset();
}

void Engine::Explored::end_call() {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
  if (carries_word_) {
    const std::int64_t bytes = vector_bytes(call_, engine_.size());
    std::memcpy(call_.out, engine_.carrier_.data(), static_cast<std::size_t>(bytes));
  }
  const std::lock_guard lock(engine_.choice_mutex_);
  if (explored_->contest) {
    if (is_last_) {
      explored_->contest->add_carrier(seconds.count());
    } else {
      explored_->contest->add(seconds.count());
    }
  }
  if (!is_last_) ++explored_->num_done;
}

void Engine::Explored::end_turn(unsigned word) {
  bool is_news = false;
  {
    const std::lock_guard lock(engine_.choice_mutex_);
    explored_->begin_turn(decode(word));
    is_news = explored_->turn.is_settled && !was_settled_ && explored_->contest;
  }
  if (is_news) engine_.log_settled(*explored_);
}

bool Engine::Explored::advance() {
  if (!running_->advance()) return false;
  if (!is_word_) {
    end_call();
    if (!is_last_) return true;
    if (carries_word_) {
      const std::int64_t bytes = vector_bytes(call_, engine_.size());
      end_turn(read_word(engine_.carrier_.data() + bytes, call_.type));
      return true;
    }
    is_word_ = true;
    engine_.carrier_.resize(static_cast<std::size_t>(kCarryingBytes + kTurnBits * 8));
    std::byte* carrier = engine_.carrier_.data();
    const CollectiveCall word{.in = carrier, .out = carrier, .count = kTurnBits, .type = DataType::kInt8};
    write_word(carrier, word.type, word.op, engine_.rank() == 0 ? std::optional<unsigned>(word_) : std::nullopt);
    begin(word, engine_.path_of(word, false, true));
    if (!running_->advance()) return false;
  }
  end_turn(read_word(engine_.carrier_.data(), DataType::kInt8));
  return true;
}

}  // namespace gar
