// The members' part of a growth: who waits, and where everybody listens.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>

#include "gar/errors.hpp"
#include "runtime/survival/peer_lost.hpp"
#include "runtime/transports/tcp/line.hpp"
#include "runtime/transports/tcp/reception.hpp"
#include "runtime/transports/tcp/tcp_growth.hpp"

namespace gar {

namespace {

constexpr std::int64_t kMostCallNs = 1'000'000'000;   // for one newcomer
constexpr std::int64_t kMostCallsNs = 3'000'000'000;  // for all: the other members wait
constexpr int kMostCalls = 3;                         // of one that does not answer
constexpr std::size_t kMostGuests = 256;              // at once

class TcpGrower final : public Grower {
 public:
  explicit TcpGrower(TcpJob job) : job_(std::move(job)), num_seen_(job_.door.next_seat) {}

  std::string invite() override {
    end();
    look_for_seats();
    const std::int64_t begin = now_ns();
    const std::int64_t limit = begin + std::min(kMostCallsNs, static_cast<std::int64_t>(job_.timeout_s * 1e9 / 4));
    GrowthTable table;
    const auto first = static_cast<int>(job_.table.ranks.size());
    std::uint64_t next_seat = num_seen_;
    for (auto seat = waiting_.begin(); seat != waiting_.end();) {
      bool is_gone = false;
      if (guests_.size() < kMostGuests && now_ns() < limit) {
        std::optional<Announcement> guest = call(seat->second, std::min(limit, now_ns() + kMostCallNs), is_gone);
        if (guest) {
          table.ranks.push_back(first + static_cast<int>(table.ranks.size()));
          table.table.ranks.push_back(*guest);
        }
        is_gone = is_gone || (!guest && ++seat->second.num_calls >= kMostCalls);
        if (!guest && !is_gone) next_seat = std::min(next_seat, seat->first);
      } else {
        next_seat = std::min(next_seat, seat->first);
      }
      seat = is_gone ? waiting_.erase(seat) : std::next(seat);
    }
    if (table.ranks.empty()) return {};
    table.generation = job_.generation;
    table.first_newcomer = first;
    table.path = job_.path;
    table.num_fakes = job_.num_fakes;
    table.door = job_.door;
    table.door.next_seat = next_seat;
    table.table.nonce = random_nonce();
    return write_growth(table);
  }

  std::string prepare() override {
    listening_ = listen_beside(job_.own);
    return to_string(bound_address(listening_.fd));
  }

  Grown connect(const Growing& growing) override {
    const GrowthTable table = table_of(growing);
    const auto self = std::find(table.ranks.begin(), table.ranks.end(), job_.rank);
    std::size_t index = growing.members.size();
    const std::int64_t limit = now_ns() + kMostCallNs;
    const std::string text = write_growth(table);
    for (Line& guest : guests_) {
      guest.say("place", std::to_string(index++), limit);
      guest.say("table", text, limit);
    }
    return connect_grown(job_, table, static_cast<int>(self - table.ranks.begin()), std::move(listening_), [&] {
      growing.look();
      for (const Line& guest : guests_) {
        if (guest.has_ended()) throw PeerLost("a newcomer has gone while it was taken in");
      }
    });
  }

  void end() noexcept override {
    guests_.clear();
    listening_ = File();
  }

 private:
  /// Somebody who sits and waits.
  struct Waiting {
    Address address;
    int num_calls = 0;  ///< without an answer
  };

  void look_for_seats() {
    while (const std::optional<std::string> value = job_.door.store->look(seat_key(job_.door.prefix, num_seen_))) {
      if (const std::optional<Address> address = read_address(*value)) waiting_[num_seen_] = {*address};
      ++num_seen_;
    }
  }

  /// Where it will listen; nothing when it does not answer. `is_gone`: nobody listens there any more.
  std::optional<Announcement> call(const Waiting& waiting, std::int64_t limit_ns, bool& is_gone) {
    File socket = start_connecting(waiting.address, job_.own);
    const auto wait = [&](int fd, int events) {
      const std::int64_t left_ms = (limit_ns - now_ns()) / 1'000'000;
      pollfd entry{fd, static_cast<short>(events), 0};
      return left_ms >= 0 && poll(&entry, 1, static_cast<int>(left_ms) + 1) == 1;
    };
    if (socket.fd < 0 || !wait(socket.fd, POLLOUT)) return std::nullopt;
    const int error = connect_error(socket.fd);
    is_gone = error == ECONNREFUSED;
    if (error != 0) return std::nullopt;
    set_up(socket.fd);
    Greeter greeter(std::move(socket), Handshake::caller(newcomer_key(job_.secret, job_.door),
                                                         {Purpose::kNewcomer, 0, 0, 1}, random_nonce()));
    while (!greeter.advance()) {
      if (!wait(greeter.fd(), greeter.wants_to_write() ? POLLOUT : POLLIN)) return std::nullopt;
    }
    if (!greeter.is_welcome()) return std::nullopt;
    try {
      Line line(greeter.take());
      std::optional<Announcement> out = read_announcement(line.hear("application", limit_ns));
      if (out) guests_.push_back(std::move(line));
      return out;
    } catch (const TransportError&) {  // it has gone, or is no newcomer
      return std::nullopt;
    }
  }

  /// The newcomers of the invitation behind the members.
  [[nodiscard]] GrowthTable table_of(const Growing& growing) const {
    std::optional<GrowthTable> out = read_growth(growing.invitation);
    if (!out) throw TransportError("the lowest rank has sent an invitation that no rank sends");
    std::vector<Announcement> ranks;
    for (std::size_t i = 0; i < growing.members.size(); ++i) {
      const std::optional<Address> address = read_address(growing.addresses[i]);
      if (!address) {
        throw TransportError(fmt::format("rank {} has sent an address that no rank sends", growing.members[i]));
      }
      ranks.push_back(job_.table.ranks.at(static_cast<std::size_t>(growing.members[i])));
      ranks.back().address = *address;
    }
    ranks.insert(ranks.end(), out->table.ranks.begin(), out->table.ranks.end());
    out->table.ranks = std::move(ranks);
    out->ranks.insert(out->ranks.begin(), growing.members.begin(), growing.members.end());
    out->generation = growing.generation;
    return *out;
  }

  TcpJob job_;
  std::uint64_t num_seen_;  ///< seats
  std::map<std::uint64_t, Waiting> waiting_;
  std::list<Line> guests_;  ///< lines to those who are invited, in the order of their numbers
  File listening_;
};

}  // namespace

std::unique_ptr<Grower> grower_over_tcp(const TcpJob& job) { return std::make_unique<TcpGrower>(job); }

}  // namespace gar
