// Random operations on a communicator that may lose ranks, each checked exactly against the members that it names.
//
// Everything about an operation follows from its number, so that ranks need not tell each other. The parts of ranks are
// small whole numbers: their sums are exact in every type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "support/rank_groups.hpp"

namespace gar::test {

class SurvivorRun {
 public:
  /// `note` is told every operation that was given to this rank, and between whom it was.
  SurvivorRun(Communicator& communicator, int first_rank, std::uint64_t seed, std::int64_t most_elements,
              std::function<void(std::uint64_t operation, const Members& members)> note)
      : communicator_(communicator),
        first_rank_(first_rank),
        seed_(seed),
        most_elements_(most_elements),
        note_(std::move(note)) {}

  /// One operation, and one that tells all ranks whether one of them wants to stop. Throws Failure when a result is not
  /// that of the members.
  bool step(bool wants_to_stop) {
    dice_.seed(seed_ + number_);
    if (draw(2) == 0) {
      operation<float>();
    } else {
      operation<std::int64_t>();
    }
    ++number_;
    std::vector<std::int32_t> stops{wants_to_stop ? 1 : 0};
    communicator_.all_reduce(stops);
    done(communicator_.members());
    ++number_;
    return stops.front() == 0;
  }

 private:
  enum class How { kBlocking, kRequest, kPersistent };

  std::int64_t draw(std::int64_t below) { return std::uniform_int_distribution<std::int64_t>(0, below - 1)(dice_); }

  template <class T>
  T part(int rank, std::int64_t i) const {
    return static_cast<T>((static_cast<std::int64_t>(number_ % 1009) * 7 + rank * 13 + i * 3) % 50);
  }

  void done(const Members& members) {
    check(std::find(members.ranks.begin(), members.ranks.end(), first_rank_) != members.ranks.end(),
          "this rank is no member");
    check(members.ranks.at(static_cast<std::size_t>(communicator_.rank())) == first_rank_, "the rank is another one");
    check(static_cast<int>(members.ranks.size()) == communicator_.size(), "the size is another one");
    check(members.generation >= generation_, "an earlier generation comes back");
    generation_ = members.generation;
    note_(number_, members);
  }

  Members run(const CollectiveCall& call, How how) {
    if (how == How::kBlocking) {
      communicator_.run(call);
      return communicator_.members();
    }
    Request request = how == How::kRequest ? communicator_.start(call) : communicator_.prepare(call);
    if (how == How::kPersistent) request.start();
    request.wait();
    return request.members();
  }

  template <class T>
  void operation() {
    const Members layout = communicator_.members();
    const auto size = static_cast<std::int64_t>(layout.ranks.size());
    const auto place = std::find(layout.ranks.begin(), layout.ranks.end(), first_rank_) - layout.ranks.begin();
    const auto collective = static_cast<Collective>(draw(3));
    const bool is_short = draw(2) == 0;
    const std::int64_t most = is_short ? 64 : most_elements_;
    const std::int64_t count =
        collective == Collective::kAllReduce ? draw(most) : draw(std::max<std::int64_t>(most / size, 1));
    const bool in_place = draw(2) == 0;
    const auto how = static_cast<How>(draw(3));
    const std::int64_t num_in = collective == Collective::kReduceScatter ? count * size : count;
    const std::int64_t num_out = collective == Collective::kAllGather ? count * size : count;
    std::vector<T> memory(static_cast<std::size_t>(num_in + num_out), T{77});
    T* in = memory.data();
    T* out = in + num_in;
    if (in_place && collective == Collective::kAllReduce) out = in;
    if (in_place && collective == Collective::kReduceScatter) out = in + place * count;
    if (in_place && collective == Collective::kAllGather) in = out + place * count;
    for (std::int64_t i = 0; i < num_in; ++i) in[i] = part<T>(first_rank_, i);
    const Members members = run({collective, in, out, count, data_type_of<T>(), ReduceOp::kSum}, how);
    for (std::int64_t i = 0; i < num_out; ++i) {
      T expected{};
      if (collective == Collective::kAllGather) {
        const int from = layout.ranks[static_cast<std::size_t>(i / count)];
        const bool is_member = std::find(members.ranks.begin(), members.ranks.end(), from) != members.ranks.end();
        if (is_member) expected = part<T>(from, i % count);
      } else {
        const std::int64_t at = collective == Collective::kReduceScatter ? place * count + i : i;
        for (const int rank : members.ranks) expected += part<T>(rank, at);
      }
      check(out[i] == expected, "operation " + std::to_string(number_) + ", element " + std::to_string(i) + ": " +
                                    std::to_string(out[i]) + ", expected " + std::to_string(expected) + " between " +
                                    std::to_string(members.ranks.size()) + " ranks");
    }
    done(members);
  }

  Communicator& communicator_;
  int first_rank_;
  std::uint64_t seed_;
  std::int64_t most_elements_;
  std::function<void(std::uint64_t, const Members&)> note_;
  std::mt19937_64 dice_;
  std::uint64_t number_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace gar::test
