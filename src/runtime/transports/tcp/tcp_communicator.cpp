// Makes communicators over TCP: where the ranks are, who is connected with whom, and which network it is.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "base/hash.hpp"
#include "gar/environment.hpp"
#include "gar/format.hpp"
#include "gar/tcp.hpp"
#include "runtime/arguments.hpp"
#include "runtime/choice.hpp"
#include "runtime/exploration.hpp"
#include "runtime/shared_options.hpp"
#include "runtime/transports/tcp/announcement.hpp"
#include "runtime/transports/tcp/mesh.hpp"
#include "runtime/transports/tcp/tcp_transport.hpp"
#include "runtime/transports/tcp/transport_probe.hpp"
#include "topology/hash.hpp"
#include "topology/hosts.hpp"

namespace gar {

namespace {

constexpr std::int64_t kLeastChunkBytes = 256 << 10;
constexpr double kPartingS = 1;
constexpr double kVerdictS = 2;         // that rank 0's word may take longer than its own patience
constexpr double kSharedForever = 1e9;  // between hosts silence is noticed by messages
constexpr int kLooks = 60;

int own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int bound = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  return std::max({1, bound, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))});
}

/// One communicator that is being made.
class TcpSetup {
 public:
  TcpSetup(Store& store, std::string_view name, int rank, int size, const CommunicatorOptions& options,
           const TcpOptions& tcp)
      : store_(store),
        prefix_(fmt::format("gar/{}/", name)),
        rank_(rank),
        size_(size),
        options_(with_environment(options, size, true)),
        tcp_(tcp),
        num_fakes_(fake_hosts_from_environment()) {
    if (tcp_.interface.empty()) tcp_.interface = environment::text(environment::kInterface);
    if (tcp_.secret.empty()) tcp_.secret = store.secret();
    if (!tcp_.secret.empty()) check_secret(tcp_.secret, "tcp_communicator");
  }

  Communicator make(const std::optional<Address>& towards) {
    File listening = listen_on(local_address(tcp_.interface, towards));
    own_ = bound_address(listening.fd);
    find_others();
    hosts_ = map_hosts(table_.ranks, rank_, num_fakes_);
    if (tcp_.path == TcpPath::kHierarchy && hosts_.num_hosts == 1) return make_shared();
    connect(std::move(listening));
    try {
      return finish();
    } catch (const std::exception& e) {
      tell_failure(e.what());
      throw;
    }
  }

 private:
  // --- finding each other ---

  void find_others() {
    const Announcement own{own_, host_identity(), own_cores(), own_switch_path(),
                           shared_options(options_, static_cast<std::uint64_t>(tcp_.path), num_fakes_, false)};
    const std::string key = prefix_ + "rank/";
    store_.set(key + std::to_string(rank_), write_announcement(own));
    if (rank_ == 0) collect(key);
    const std::optional<JobTable> table = read_table(store_.get(prefix_ + "table", options_.timeout_s + kVerdictS));
    if (!table || (table->failure.empty() && table->ranks.size() != static_cast<std::size_t>(size_))) {
      throw TransportError("tcp_communicator: what rank 0 has put into the store is no table of this job");
    }
    table_ = *table;
    try {
      if (!table_.failure.empty()) throw TransportError(escaped(table_.failure));
      compare_options();
    } catch (const Error&) {
      part();
      throw;
    }
  }

  /// Nothing comes of it. The store may end with rank 0, so that waits a moment until the others know, too.
  void part() noexcept {
    const auto key = [&](int rank) { return fmt::format("{}knows/{}", prefix_, rank); };
    const std::int64_t limit = now_ns() + static_cast<std::int64_t>(kPartingS * 1e9);
    try {
      if (rank_ != 0) store_.set(key(rank_), "");
      for (int rank = 1; rank_ == 0 && rank < size_; ++rank) {
        store_.get(key(rank), std::max(static_cast<double>(limit - now_ns()) * 1e-9, 1e-3));
      }
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): one that never came does not answer
    }
  }

  /// Rank 0 tells all others which ranks are there, or why the job does not begin.
  void collect(const std::string& key) {
    JobTable table;
    const std::int64_t limit = now_ns() + static_cast<std::int64_t>(options_.timeout_s * 1e9);
    for (int rank = 0; rank < size_ && table.failure.empty(); ++rank) {
      const double left_s = std::max(static_cast<double>(limit - now_ns()) * 1e-9, 1e-3);
      try {
        const std::optional<Announcement> one = read_announcement(store_.get(key + std::to_string(rank), left_s));
        if (!one)
          table.failure =
              fmt::format("tcp_communicator: what rank {} has put into the store is nothing of this version", rank);
        if (one) table.ranks.push_back(*one);
      } catch (const TransportError& error) {
        table.failure = fmt::format("tcp_communicator: rank {} has not joined within {} s: {}", rank,
                                    options_.timeout_s, error.what());
      }
    }
    table.nonce = random_nonce();
    store_.set(prefix_ + "table", write_table(table));
    for (int rank = 0; rank < size_; ++rank) store_.remove(key + std::to_string(rank));
  }

  void compare_options() const {
    std::vector<SharedOptions> all;
    for (const Announcement& one : table_.ranks) all.push_back(one.options);
    if (const std::string difference = difference_of(all); !difference.empty()) {
      throw InvalidArgument("tcp_communicator: " + difference);
    }
  }

  /// All ranks are on one host.
  Communicator make_shared() {
    return shared_memory_communicator("tcp-" + to_hex(std::span(table_.nonce).first(16)), rank_, size_, options_);
  }

  // --- connecting ---

  void connect(File listening) {
    MeshMember member;
    member.rank = rank_;
    member.key = hmac(std::as_bytes(std::span(tcp_.secret)), {std::as_bytes(std::span(std::string_view("gar job"))),
                                                              std::span<const std::byte>(table_.nonce)});
    member.own = own_;
    for (const Announcement& one : table_.ranks) member.addresses.push_back(one.address);
    member.timeout_s = options_.timeout_s;
    const Introduction own{Purpose::kPeer, 0, static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(size_)};
    Reception reception(std::move(listening), member.key, own);
    std::vector<File> sockets = connect_mesh(member, reception);
    for (const File& socket : sockets) {
      // Later than ranks report silence, who know more about it.
      if (socket.fd >= 0) set_silence_limit(socket.fd, 2 * options_.timeout_s);
    }
    TcpTransportOptions transport;
    transport.timeout_s = options_.timeout_s;
    transport.num_looks = is_crowded() ? 0 : kLooks;
    if (hosts_.num_hosts > 1) transport.least_chunk_bytes = kLeastChunkBytes;
    messages_ = std::make_unique<TcpTransport>(rank_, std::move(sockets), std::move(transport));
    // When all have come this far, no rank calls any more: nothing listens while the job runs.
    TransportProbe(*messages_, 1).barrier();
    if (rank_ == 0) store_.remove(prefix_ + "table");
  }

  [[nodiscard]] bool is_crowded() const {
    const auto num_ranks = static_cast<double>(
        std::count(hosts_.host_of.begin(), hosts_.host_of.end(), hosts_.host_of[static_cast<std::size_t>(rank_)]));
    return num_ranks > hosts_.cores_of[static_cast<std::size_t>(rank_)];
  }

  Communicator finish() {
    TransportProbe probe(*messages_, 2);
    const bool is_shared = tcp_.path == TcpPath::kHierarchy && hosts_.num_hosts < size_;
    std::optional<Topology> topology = place(probe, is_shared);
    std::optional<Topology> short_network;
    if (topology) short_network = measure_messages(probe, hosts_, *topology);
    if (!topology) topology = measure_network("tcp", probe, hosts_, is_shared);
    options_.topology.reset();
    int max_senders = admitted_senders(*topology);
    for (const int other : probe.all_gather(max_senders)) max_senders = std::min(max_senders, other);
    messages_->set_admission(max_senders);
    Exploration exploration = explore(probe, *topology);
    if (is_shared) share_memory(probe);
    if (!whole_) whole_ = std::move(messages_);
    return make_communicator(std::move(whole_), options_, *topology, std::move(exploration), std::move(short_network));
  }

  std::optional<Topology> place(TransportProbe& probe, bool is_shared) const {
    if (!options_.topology) return std::nullopt;
    const std::vector<std::int64_t> servers = servers_of_ranks(*options_.topology, hosts_.host_of);
    check_order(*options_.topology, servers);
    return place_ranks(*options_.topology, servers, measure_rank(probe, hosts_, is_shared));
  }

  Exploration explore(TransportProbe& probe, const Topology& topology) const {
    Exploration out;
    out.is_on = is_exploring(options_, false);
    if (!out.is_on) return out;
    if (rank_ == 0) {
      out.place.network = topology.name();
      out.place.digest = mix_in(static_cast<std::uint64_t>(5), hash_of(topology));
      for (const int host : hosts_.host_of) out.place.digest = mix_in(out.place.digest, host);
      out.place.transport = tcp_.path == TcpPath::kHierarchy ? "shm+tcp" : "tcp";
      out.place.num_ranks = size_;
      load(out, options_);
    }
    out.told = probe.all_gather(out.told).front();
    return out;
  }

  /// Messages between ranks of a host go through its memory from now on.
  void share_memory(TransportProbe& probe) {
    SegmentShape shape = suitable_shape(static_cast<int>(hosts_.members.size()), options_.staging_bytes);
    // The same staging space everywhere, because it decides how operations are cut.
    for (const std::int64_t other : probe.all_gather(shape.staging_bytes)) {
      shape.staging_bytes = std::min(shape.staging_bytes, other);
    }
    const int local_rank =
        static_cast<int>(std::find(hosts_.members.begin(), hosts_.members.end(), rank_) - hosts_.members.begin());
    const std::string name = fmt::format("tcp-{}-{}", to_hex(std::span(table_.nonce).first(16)),
                                         hosts_.host_of[static_cast<std::size_t>(rank_)]);
    auto shared = std::make_unique<SharedTransport>(join_segment(name, local_rank, shape, options_.timeout_s),
                                                    Membership{rank_, size_, hosts_.members}, kSharedForever);
    TcpTransport* messages = messages_.get();
    shared->set_idle([messages] { messages->look(); });
    std::vector<bool> has_other_way(static_cast<std::size_t>(size_), false);
    for (const int member : hosts_.members) has_other_way[static_cast<std::size_t>(member)] = true;
    messages_->leave_to_others(std::move(has_other_way));
    whole_ = std::make_unique<HybridTransport>(std::move(shared), std::move(messages_));
  }

  void tell_failure(const char* reason) {
    if (whole_) whole_->fail(reason);
    if (messages_) messages_->fail(reason);
  }

  Store& store_;
  std::string prefix_;
  int rank_;
  int size_;
  CommunicatorOptions options_;
  TcpOptions tcp_;
  int num_fakes_;
  Address own_;
  JobTable table_;
  HostMap hosts_;
  std::unique_ptr<TcpTransport> messages_;
  std::unique_ptr<Transport> whole_;
};

}  // namespace

bool has_tcp() { return true; }

Communicator tcp_communicator(Store& store, std::string_view name, int rank, int size,
                              const CommunicatorOptions& options, const TcpOptions& tcp) {
  check_membership(name, rank, size, "tcp_communicator");
  if (size == 1) return std::move(thread_communicators(1, options).front());
  std::optional<Address> towards;
  if (const std::string server = store.server(); !server.empty()) towards = read_address(server);
  return TcpSetup(store, name, rank, size, options, tcp).make(towards);
}

}  // namespace gar
