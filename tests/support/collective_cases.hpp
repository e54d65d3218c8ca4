// One collective operation with its inputs, as every rank runs and checks it; and the sets of them that tests draw
// from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "support/collective_oracle.hpp"
#include "support/rank_groups.hpp"
#include "support/scale.hpp"

namespace gar::test {

/// Where the result lies. In place: AllReduce, all of the input; ReduceScatter and AllGather, this rank's block.
enum class Form { kOutOfPlace, kInPlace, kFirstBlock, kLastBlock };
enum class Call { kBlocking, kStart, kPersistent };

struct Case {
  Collective collective = Collective::kAllReduce;
  Form form = Form::kOutOfPlace;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::int64_t count = 0;  ///< of a block, for ReduceScatter and AllGather
  Call call = Call::kBlocking;
};

inline std::string to_string(const Case& c) {
  static const char* const kCollectives[] = {"all_reduce", "reduce_scatter", "all_gather"};
  static const char* const kForms[] = {"out of place", "in place", "in place, first block", "in place, last block"};
  static const char* const kCalls[] = {"", ", non-blocking", ", persistent"};
  return std::string(kCollectives[static_cast<int>(c.collective)]) + " of " + std::to_string(c.count) + " " +
         std::string(to_string(c.type)) + " " + std::string(to_string(c.op)) + ", " + kForms[static_cast<int>(c.form)] +
         kCalls[static_cast<int>(c.call)];
}

/// A vector between two zones that nobody may touch. It starts at an address that is aligned for its element type and
/// not for more.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(std::int64_t bytes, int element_size, std::uint64_t salt) { reset(bytes, element_size, salt); }

  void reset(std::int64_t bytes, int element_size, std::uint64_t salt) {
    bytes_ = bytes;
    begin_ = kGuard + static_cast<std::int64_t>(mix(salt) % 8) * element_size;
    const std::int64_t end = begin_ + bytes + kGuard;
    if (memory_.size() < static_cast<std::size_t>(end)) memory_.resize(static_cast<std::size_t>(end));
    end_ = end;
    std::memset(memory_.data(), kFill, static_cast<std::size_t>(end));
  }
  [[nodiscard]] std::byte* data() { return memory_.data() + begin_; }
  [[nodiscard]] bool is_intact() const {
    const auto is_fill = [](std::byte b) { return b == static_cast<std::byte>(kFill); };
    return std::all_of(memory_.begin(), memory_.begin() + begin_, is_fill) &&
           std::all_of(memory_.begin() + begin_ + bytes_, memory_.begin() + end_, is_fill);
  }
  /// With the zones.
  [[nodiscard]] std::span<std::byte> all() { return {memory_.data(), static_cast<std::size_t>(end_)}; }

 private:
  static constexpr std::int64_t kGuard = 128;
  static constexpr int kFill = 0xC7;
  std::vector<std::byte> memory_;
  std::int64_t begin_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t end_ = 0;
};

/// A case on one rank: buffers, the call, and the check afterwards. The members are called in this order; the buffers
/// of several may live at once.
class CaseRun {
 public:
  CaseRun(const Case& c, int rank, int size, std::uint64_t salt)
      : case_(c),
        rank_(rank),
        size_(size),
        salt_(salt),
        oracle_(c.type, c.op, size, salt, is_blocks() ? c.count * size : c.count) {
    const std::int64_t element = oracle_.size();
    const std::int64_t all = c.count * (is_blocks() ? size : 1) * element;
    const std::int64_t block = c.count * element;
    const bool gathers = c.collective == Collective::kAllGather;
    const bool scatters = c.collective == Collective::kReduceScatter;
    if (c.form == Form::kOutOfPlace) {
      in_buffer_.reset(gathers ? block : all, oracle_.size(), salt);
      out_buffer_.reset(scatters ? block : all, oracle_.size(), salt + 1);
      in_ = in_buffer_.data();
      out_ = out_buffer_.data();
    } else {
      in_buffer_.reset(all, oracle_.size(), salt);
      const std::int64_t place = (c.form == Form::kInPlace ? rank : c.form == Form::kFirstBlock ? 0 : size - 1) * block;
      in_ = in_buffer_.data() + (gathers ? place : 0);
      out_ = in_buffer_.data() + (scatters ? place : 0);
    }
    load();
  }

  /// (Re)writes the inputs.
  void load() {
    if (case_.collective == Collective::kAllGather) {
      oracle_.fill(rank_, rank_ * case_.count, case_.count, in_);
    } else {
      oracle_.fill(rank_, 0, case_.count * (is_blocks() ? size_ : 1), in_);
    }
  }

  void run(Communicator& communicator) {
    switch (case_.call) {
      case Call::kBlocking:
        return block(communicator);
      case Call::kStart:
        return start(communicator).wait();
      case Call::kPersistent:
        Request request = prepare(communicator);
        request.start();
        request.wait();
        load();  // The result of the first time is the input of nothing.
        if (case_.form == Form::kOutOfPlace) std::memset(out_, 0x5A, static_cast<std::size_t>(out_bytes()));
        request.start();
        request.wait();
        return;
    }
  }
  void block(Communicator& communicator) {
    switch (case_.collective) {
      case Collective::kAllReduce:
        return communicator.all_reduce(in_, out_, case_.count, case_.type, case_.op);
      case Collective::kReduceScatter:
        return communicator.reduce_scatter(in_, out_, case_.count, case_.type, case_.op);
      case Collective::kAllGather:
        return communicator.all_gather(in_, out_, case_.count, case_.type);
    }
  }
  Request start(Communicator& communicator) {
    switch (case_.collective) {
      case Collective::kReduceScatter:
        return communicator.start_reduce_scatter(in_, out_, case_.count, case_.type, case_.op);
      case Collective::kAllGather:
        return communicator.start_all_gather(in_, out_, case_.count, case_.type);
      default:
        return communicator.start_all_reduce(in_, out_, case_.count, case_.type, case_.op);
    }
  }
  Request prepare(Communicator& communicator) {
    switch (case_.collective) {
      case Collective::kReduceScatter:
        return communicator.prepare_reduce_scatter(in_, out_, case_.count, case_.type, case_.op);
      case Collective::kAllGather:
        return communicator.prepare_all_gather(in_, out_, case_.count, case_.type);
      default:
        return communicator.prepare_all_reduce(in_, out_, case_.count, case_.type, case_.op);
    }
  }

  /// Throws Failure when the result, the input or the memory around them is not as it must be.
  void verify() {
    const std::int64_t bad = wrong_element();
    check(bad < 0, to_string(case_) + ": element " + std::to_string(bad) + " of the result is wrong" + where());
    if (case_.form == Form::kOutOfPlace) {
      const std::int64_t changed =
          case_.collective == Collective::kAllGather
              ? oracle_.find_other_than_input(rank_, rank_ * case_.count, case_.count, in_)
              : oracle_.find_other_than_input(rank_, 0, case_.count * (is_blocks() ? size_ : 1), in_);
      check(changed < 0,
            to_string(case_) + ": element " + std::to_string(changed) + " of the input has changed" + where());
      check(out_buffer_.is_intact(), to_string(case_) + ": memory around the output has changed" + where());
    }
    check(in_buffer_.is_intact(), to_string(case_) + ": memory around the input has changed" + where());
  }

 private:
  [[nodiscard]] bool is_blocks() const { return case_.collective != Collective::kAllReduce; }
  [[nodiscard]] std::int64_t out_bytes() const {
    return case_.count * oracle_.size() * (case_.collective == Collective::kAllGather ? size_ : 1);
  }
  [[nodiscard]] std::string where() const {
    return " (rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ", salt " + std::to_string(salt_) + ")";
  }

  std::int64_t wrong_element() {
    switch (case_.collective) {
      case Collective::kAllReduce:
        return oracle_.find_other_than_result(0, case_.count, out_);
      case Collective::kReduceScatter:
        return oracle_.find_other_than_result(rank_ * case_.count, case_.count, out_);
      case Collective::kAllGather:
        for (int r = 0; r < size_; ++r) {
          const std::int64_t first = r * case_.count;
          const std::int64_t bad = oracle_.find_other_than_input(r, first, case_.count, out_ + first * oracle_.size());
          if (bad >= 0) return first + bad;
        }
    }
    return -1;
  }

  Case case_;
  int rank_;
  int size_;
  std::uint64_t salt_;
  Oracle oracle_;

 protected:
  GuardedBuffer in_buffer_;
  GuardedBuffer out_buffer_;
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
};

inline void run_case(Communicator& communicator, const Case& c, std::uint64_t salt) {
  CaseRun run(c, communicator.rank(), communicator.size(), salt);
  run.run(communicator);
  run.verify();
}

// --- sets of cases ---------------------------------------------------------------------------------------------------

struct TypedOp {
  DataType type;
  ReduceOp op;
};
inline std::vector<TypedOp> typed_ops() {
  std::vector<TypedOp> out;
  for (int t = 0; t < kNumDataTypes; ++t) {
    for (int o = 0; o < kNumReduceOps; ++o) {
      const TypedOp both{static_cast<DataType>(t), static_cast<ReduceOp>(o)};
      if (fits(both.type, both.op)) out.push_back(both);
    }
  }
  return out;
}

struct Shape {
  Collective collective;
  Form form;
};
inline std::vector<Shape> shapes() {
  using C = Collective;
  return {{C::kAllReduce, Form::kOutOfPlace},     {C::kAllReduce, Form::kInPlace},
          {C::kReduceScatter, Form::kOutOfPlace}, {C::kReduceScatter, Form::kInPlace},
          {C::kReduceScatter, Form::kFirstBlock}, {C::kReduceScatter, Form::kLastBlock},
          {C::kAllGather, Form::kOutOfPlace},     {C::kAllGather, Form::kInPlace}};
}

/// 1,000,003 is a prime, like most of the others.
inline std::vector<std::int64_t> counts(int num_ranks) {
  const std::int64_t n = num_ranks;
  std::vector<std::int64_t> out{0, 1, n - 1, n, n + 1, 97, 4099, 65537, 1'000'003};
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}
/// So many elements in all make blocks of so many.
inline std::int64_t case_count(Collective collective, std::int64_t count, int num_ranks) {
  return collective == Collective::kAllReduce || count <= 97 ? count : count / num_ranks;
}

/// Values in random order that come round again, each as often as the others.
template <class T>
class Deck {
 public:
  Deck(std::vector<T> cards, std::uint64_t seed) : cards_(std::move(cards)), random_(seed) {}
  const T& draw() {
    if (next_ % cards_.size() == 0) std::shuffle(cards_.begin(), cards_.end(), random_);
    return cards_[next_++ % cards_.size()];
  }

 private:
  std::vector<T> cards_;
  std::mt19937_64 random_;
  std::size_t next_ = 0;
};

/// Deals cases such that types with operators, shapes, counts and ways of calling each come equally often.
class CaseDealer {
 public:
  explicit CaseDealer(std::uint64_t seed)
      : ops_(typed_ops(), seed),
        shapes_(shapes(), seed + 1),
        counts_({0, 1, 2, 3, 4, 5, 6, 7}, seed + 2),
        calls_({Call::kBlocking, Call::kBlocking, Call::kStart, Call::kPersistent}, seed + 3) {}

  /// With any count but the largest.
  Case deal(int num_ranks) {
    const std::vector<std::int64_t> all = counts(num_ranks);
    return make(all[counts_.draw() % (all.size() - 1)], num_ranks);
  }
  Case deal_large(int num_ranks) { return make(counts(num_ranks).back(), num_ranks); }

 private:
  Case make(std::int64_t count, int num_ranks) {
    const TypedOp typed = ops_.draw();
    const Shape shape = shapes_.draw();
    return {shape.collective, shape.form, typed.type, typed.op, case_count(shape.collective, count, num_ranks),
            calls_.draw()};
  }

  Deck<TypedOp> ops_;
  Deck<Shape> shapes_;
  Deck<std::size_t> counts_;
  Deck<Call> calls_;
};

/// The whole cross product; beside AllReduce, the largest vectors with one operator only. Ways of calling alternate.
inline std::vector<Case> all_cases(int num_ranks) {
  std::vector<Case> out;
  for (const Shape& shape : shapes()) {
    for (const TypedOp& typed : typed_ops()) {
      if (shape.collective == Collective::kAllGather && typed.op != ReduceOp::kSum) continue;
      for (const std::int64_t count : counts(num_ranks)) {
        if (shape.collective != Collective::kAllReduce && count > 100'000 && typed.op != ReduceOp::kSum) continue;
        const auto call = static_cast<Call>(out.size() % 3);
        out.push_back(
            {shape.collective, shape.form, typed.type, typed.op, case_count(shape.collective, count, num_ranks), call});
      }
    }
  }
  return out;
}

}  // namespace gar::test
