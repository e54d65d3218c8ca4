// One operation of an engine while it runs.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "runtime/engine.hpp"
#include "runtime/movement.hpp"

namespace gar {

/// Ends a blocking call, however it ends.
struct Unblock {
  bool& is_blocked;
  explicit Unblock(bool& b) : is_blocked(b) {}
  Unblock(const Unblock&) = delete;
  Unblock& operator=(const Unblock&) = delete;
  ~Unblock() { is_blocked = false; }
};

class Engine::Running final : public Advancing {
 public:
  /// Begins the operation. Throws TransportError when the transport has failed before.
  Running(Engine& engine, const CollectiveCall& call, const Path& path, std::optional<Stream> stream = std::nullopt);
  bool advance() override;
  [[nodiscard]] bool waits_elsewhere() const override { return native_ != nullptr; }

 private:
  /// Gathers without a plan: the transport does it.
  bool advance_exchange();
  /// On a device: one rank, no elements, or a library's own collectives.
  bool advance_without_plan(DeviceSide& device);

  Engine& engine_;
  CollectiveCall call_;
  std::shared_ptr<const Schedule> schedule_;
  NativeAllReduce* native_ = nullptr;  ///< runs it
  Signature signature_;
  Operands operands_;
  std::optional<Execution> execution_;
  std::vector<const std::byte*> exchanged_;  ///< of every rank, where the transport gathers
  bool has_met_ = false;
};

/// A movement: all ranks meet, then each runs its program.
class Engine::Moving final : public Advancing {
 public:
  Moving(Engine& engine, const CollectiveCall& call, const Path& path);
  bool advance() override;
  [[nodiscard]] bool waits_elsewhere() const override { return false; }

 private:
  [[nodiscard]] BlockCounts counts() const;
  void move();

  Engine& engine_;
  CollectiveCall call_;
  std::shared_ptr<const MovementCall> movement_;
  MovementPlace place_;
  std::vector<std::int64_t> told_;     ///< lengths of this rank's blocks, where they differ
  std::vector<const std::byte*> met_;  ///< what every rank has told
  bool has_met_ = false;
  Schedule schedule_;
  std::optional<Execution> execution_;
};

/// A call whose way is measured (exploration.hpp).
class Engine::Explored final : public Advancing {
 public:
  Explored(Engine& engine, const CollectiveCall& call, std::shared_ptr<ExploredClass> explored);
  bool advance() override;
  [[nodiscard]] bool waits_elsewhere() const override { return running_->waits_elsewhere(); }

 private:
  void begin(const CollectiveCall& call, const Path& path);
  /// The user's call is over.
  void end_call();
  void end_turn(unsigned word);

  Engine& engine_;
  CollectiveCall call_;
  std::shared_ptr<ExploredClass> explored_;
  bool is_last_ = false;       ///< of its turn
  bool carries_word_ = false;  ///< the vector itself does
  bool is_word_ = false;       ///< what is under way is the word alone
  unsigned word_ = 0;          ///< on rank 0
  bool was_settled_ = false;
  std::chrono::steady_clock::time_point begin_;
  std::optional<Running> running_;
};

}  // namespace gar
