// Makes communicators over TCP: where the ranks are, who is connected with whom, and which network it is.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>

#include "base/hash.hpp"
#include "gar/environment.hpp"
#include "gar/format.hpp"
#include "gar/tcp.hpp"
#include "runtime/arguments.hpp"
#include "runtime/choice.hpp"
#include "runtime/exploration.hpp"
#include "runtime/shared_options.hpp"
#include "runtime/transports/tcp/announcement.hpp"
#include "runtime/transports/tcp/tcp_group.hpp"
#include "runtime/transports/tcp/tcp_growth.hpp"
#include "runtime/transports/tcp/tcp_survival.hpp"
#include "topology/hash.hpp"
#include "topology/hosts.hpp"

namespace gar {

namespace {

constexpr double kPartingS = 1;
constexpr double kVerdictS = 2;  // that rank 0's word may take longer than its own patience

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
    if (may_grow()) open_door();
    if (tcp_.path == TcpPath::kHierarchy && hosts_.num_hosts == 1 && !may_grow()) return make_shared();
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

  // --- newcomers (tcp_growth.hpp) ---

  [[nodiscard]] bool may_grow() const { return options_.on_failure == OnFailure::kShrinkAndGrow; }

  void open_door() {
    door_.store = &store_;
    door_.prefix = prefix_;
    if (rank_ == 0) store_.set(door_key(prefix_), to_hex(random_nonce()));
    const std::optional<Nonce> nonce = read_nonce(store_.get(door_key(prefix_), options_.timeout_s));
    if (!nonce) throw TransportError("tcp_communicator: what rank 0 has put into the store is no nonce");
    door_.nonce = *nonce;
    door_.algorithm = options_.algorithm;
    door_.latency_bytes = options_.latency_bytes;
    door_.is_reproducible = options_.reproducible;
    door_.overlap = options_.overlap;
  }

  // --- connecting ---

  void connect(File listening) {
    MeshMember& member = group_.member;
    member.rank = rank_;
    member.key = job_key(tcp_.secret, table_.nonce, "data", 0);
    member.own = own_;
    for (const Announcement& one : table_.ranks) member.addresses.push_back(one.address);
    member.timeout_s = options_.timeout_s;
    group_.hosts = hosts_;
    messages_ = connect_messages(group_, std::move(listening));
    if (rank_ == 0) store_.remove(prefix_ + "table");
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
    std::unique_ptr<Survival> survival;
    if (options_.on_failure != OnFailure::kReport) survival = survival_over_tcp(job(max_senders), probe);
    if (is_shared) {
      const std::string name = "tcp-" + to_hex(std::span(table_.nonce).first(16));
      whole_ = share_memory(messages_, group_, probe, name, options_.staging_bytes);
    } else {
      whole_ = std::move(messages_);
    }
    return make_communicator(std::move(whole_), options_, *topology, std::move(exploration), std::move(short_network),
                             std::move(survival));
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

  [[nodiscard]] TcpJob job(int max_senders) const {
    std::vector<int> members(static_cast<std::size_t>(size_));
    std::iota(members.begin(), members.end(), 0);
    return {.rank = rank_,
            .members = std::move(members),
            .own = own_,
            .table = table_,
            .num_fakes = num_fakes_,
            .secret = may_grow() ? secret_at_door(tcp_.secret, door_) : tcp_.secret,
            .path = tcp_.path,
            .timeout_s = options_.timeout_s,
            .staging_bytes = options_.staging_bytes,
            .max_senders = max_senders,
            .door = door_};
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
  TcpDoor door_;
  HostMap hosts_;
  TcpGroup group_;
  std::unique_ptr<TcpTransport> messages_;
  std::unique_ptr<Transport> whole_;
};

}  // namespace

bool has_tcp() { return true; }

Communicator tcp_communicator(Store& store, std::string_view name, int rank, int size,
                              const CommunicatorOptions& options, const TcpOptions& tcp) {
  check_membership(name, rank, size, "tcp_communicator");
  if (size == 1 && options.on_failure != OnFailure::kShrinkAndGrow)
    return std::move(thread_communicators(1, options).front());
  std::optional<Address> towards;
  if (const std::string server = store.server(); !server.empty()) towards = read_address(server);
  return TcpSetup(store, name, rank, size, options, tcp).make(towards);
}

}  // namespace gar
