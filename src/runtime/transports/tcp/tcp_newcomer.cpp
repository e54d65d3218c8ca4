// A process that joins a communicator at work (tcp_growth.hpp).
#include <fmt/format.h>
#include <poll.h>

#include <charconv>
#include <utility>

#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/tcp.hpp"
#include "runtime/arguments.hpp"
#include "runtime/choice.hpp"
#include "runtime/exploration.hpp"
#include "runtime/survival/peer_lost.hpp"
#include "runtime/transports/tcp/line.hpp"
#include "runtime/transports/tcp/reception.hpp"
#include "runtime/transports/tcp/tcp_growth.hpp"

namespace gar {

namespace {

constexpr int kSeatPollMs = 50;

CommunicatorOptions newcomer_options(CommunicatorOptions options) {
  options.plan.reset();
  options.algorithm = "ring";  // whatever GAR_ALGO says: the members know
  options = with_environment(std::move(options), 2, true);
  options.topology.reset();
  options.on_failure = OnFailure::kShrinkAndGrow;
  return options;
}

class Newcomer {
 public:
  Newcomer(Store& store, std::string_view name, double limit_s, const CommunicatorOptions& options,
           const TcpOptions& tcp)
      : store_(store),
        name_(name),
        prefix_(fmt::format("gar/{}/", name)),
        limit_s_(limit_s),
        limit_ns_(now_ns() + static_cast<std::int64_t>(limit_s * 1e9)),
        options_(newcomer_options(options)),
        tcp_(tcp) {
    if (tcp_.interface.empty()) tcp_.interface = environment::text(environment::kInterface);
    if (tcp_.secret.empty()) tcp_.secret = store.secret();
    if (!tcp_.secret.empty()) check_secret(tcp_.secret, "join_tcp");
  }

  Communicator join() {
    find_door();
    std::optional<Address> towards;
    if (const std::string server = store_.server(); !server.empty()) towards = read_address(server);
    File listening = listen_on(local_address(tcp_.interface, towards));
    job_.own = bound_address(listening.fd);
    Reception reception(std::move(listening), newcomer_key(job_.secret, job_.door), {Purpose::kNewcomer, 0, 0, 1});
    take_seat();
    while (true) {
      for (Guest& member : reception.serve()) {
        Line line(std::move(member.socket));
        if (std::optional<Communicator> made = follow(line)) return std::move(*made);
      }
      if (now_ns() > limit_ns_) give_up();
      pollfd entry{reception.fd(), POLLIN, 0};
      poll(&entry, 1, kSeatPollMs);
    }
  }

 private:
  [[noreturn]] void give_up() const {
    throw TransportError(
        fmt::format("join_tcp: no member of '{}' has taken this process in within {} s; expected that they call grow{}",
                    name_, limit_s_, problem_.empty() ? "" : " (" + escaped(problem_) + ")"));
  }

  void find_door() {
    std::optional<Nonce> nonce;
    try {
      nonce = read_nonce(store_.get(door_key(prefix_), limit_s_));
    } catch (const TransportError& error) {
      throw TransportError(fmt::format(
          "join_tcp: there is no communicator '{}' that takes newcomers in; expected one with on_failure = shrink and "
          "grow ({})",
          name_, error.what()));
    }
    if (!nonce) throw TransportError("join_tcp: what the members have put into the store is no nonce");
    job_.door.store = &store_;
    job_.door.prefix = prefix_;
    job_.door.nonce = *nonce;
    job_.secret = secret_at_door(tcp_.secret, job_.door);
    job_.timeout_s = options_.timeout_s;
    job_.staging_bytes = options_.staging_bytes;
  }

  void take_seat() {
    std::uint64_t seat = 0;
    while (!store_.claim(seat_key(prefix_, seat), to_string(job_.own))) ++seat;
  }

  /// A member has called. Nothing when it comes to nothing: this process waits on.
  std::optional<Communicator> follow(Line& line) {
    GrowthTable table;
    std::optional<Grown> grown;
    try {
      grown = connect(line, table);
      grown->survival->await_welcome(table.first_newcomer, limit_ns_);
    } catch (const TransportError& error) {
      problem_ = error.what();
      return std::nullopt;
    }
    options_.algorithm = table.door.algorithm;
    options_.latency_bytes = table.door.latency_bytes;
    options_.reproducible = table.door.is_reproducible;
    options_.overlap = table.door.overlap;
    Communicator out = make_communicator(std::move(grown->transport), options_, grown->topology, {},
                                         std::move(grown->short_network), std::move(grown->survival));
    out.barrier();
    return out;
  }

  Grown connect(Line& line, GrowthTable& table) {
    File listening = listen_beside(job_.own);
    const Announcement own{bound_address(listening.fd), host_identity(), own_cores(), own_switch_path(), {}};
    line.say("application", write_announcement(own), limit_ns_);
    const std::string place = line.hear("place", limit_ns_);
    int index = -1;
    std::from_chars(place.data(), place.data() + place.size(), index);
    const std::optional<GrowthTable> told = read_growth(line.hear("table", limit_ns_));
    const bool is_sound = told && index >= 0 && index < static_cast<int>(told->ranks.size()) &&
                          told->ranks[static_cast<std::size_t>(index)] >= told->first_newcomer;
    if (!is_sound) throw TransportError("a member has sent a table that no member sends");
    table = *told;
    return connect_grown(job_, table, index, std::move(listening), [&] {
      if (line.has_ended()) throw PeerLost("the members have given it up");
      if (now_ns() > limit_ns_) throw PeerLost("the time is over");
    });
  }

  Store& store_;
  std::string name_;
  std::string prefix_;
  double limit_s_;
  std::int64_t limit_ns_;
  CommunicatorOptions options_;
  TcpOptions tcp_;
  TcpJob job_;
  std::string problem_;  ///< of the last attempt
};

}  // namespace

Communicator join_tcp(Store& store, std::string_view name, double limit_s, const CommunicatorOptions& options,
                      const TcpOptions& tcp) {
  check_membership(name, 0, 1, "join_tcp");
  if (!(limit_s > 0) || limit_s > 1e8) {
    throw InvalidArgument(fmt::format("join_tcp: a limit of {} s; expected more than 0, and at most 1e8", limit_s));
  }
  return Newcomer(store, name, limit_s, options, tcp).join();
}

}  // namespace gar
