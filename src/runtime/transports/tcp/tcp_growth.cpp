#include "runtime/transports/tcp/tcp_growth.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "gar/errors.hpp"
#include "runtime/admission.hpp"
#include "runtime/survival/peer_lost.hpp"
#include "runtime/transports/tcp/words.hpp"

namespace gar {

namespace {

constexpr std::string_view kGrowthMark = "gar-grow-1";

/// Numbers of a growth, in the order in which they are written.
std::vector<std::uint64_t> numbers_of(const GrowthTable& table) {
  return {table.generation,
          static_cast<std::uint64_t>(table.first_newcomer),
          static_cast<std::uint64_t>(table.path),
          static_cast<std::uint64_t>(table.num_fakes),
          table.door.next_seat,
          static_cast<std::uint64_t>(table.door.latency_bytes),
          table.door.is_reproducible ? 1U : 0U,
          std::bit_cast<std::uint64_t>(table.door.overlap)};
}

bool take_small(std::string_view& text, int most, int& out) {
  std::uint64_t number = 0;
  if (!take_number(text, number) || number > static_cast<std::uint64_t>(most)) return false;
  out = static_cast<int>(number);
  return true;
}

}  // namespace

std::string write_growth(const GrowthTable& table) {
  return fmt::format("{} {:x}\n{:x}\n{}\n{}", kGrowthMark, fmt::join(numbers_of(table), " "),
                     fmt::join(table.ranks, " "), table.door.algorithm, write_table(table.table));
}

std::optional<GrowthTable> read_growth(std::string_view text) {
  constexpr int kMostFakes = 4096;
  constexpr int kMostNumber = 1 << 24;
  GrowthTable out;
  std::string_view first = take_line(text);
  int path = 0;
  int is_reproducible = 0;
  std::uint64_t latency_bytes = 0;
  std::uint64_t overlap = 0;
  if (take_word(first) != kGrowthMark || !take_number(first, out.generation) ||
      !take_small(first, kMostNumber, out.first_newcomer) || !take_small(first, 1, path) ||
      !take_small(first, kMostFakes, out.num_fakes) || !take_number(first, out.door.next_seat) ||
      !take_number(first, latency_bytes) || !take_small(first, 1, is_reproducible) || !take_number(first, overlap)) {
    return std::nullopt;
  }
  out.path = static_cast<TcpPath>(path);
  out.door.latency_bytes = static_cast<std::int64_t>(latency_bytes);
  out.door.is_reproducible = is_reproducible != 0;
  out.door.overlap = std::bit_cast<double>(overlap);
  std::string_view ranks = take_line(text);
  while (!ranks.empty()) {
    if (!take_small(ranks, kMostNumber, out.ranks.emplace_back())) return std::nullopt;
  }
  out.door.algorithm = std::string(take_line(text));
  std::optional<JobTable> table = read_table(text);
  const bool ascends =
      std::adjacent_find(out.ranks.begin(), out.ranks.end(), std::greater_equal<>()) == out.ranks.end();
  if (!table || !ascends || out.ranks.empty() || out.ranks.size() > kMostMembers || out.num_fakes < 1 ||
      table->ranks.size() != out.ranks.size()) {
    return std::nullopt;
  }
  out.table = std::move(*table);
  return out;
}

std::string door_key(const std::string& prefix) { return prefix + "door"; }
std::string seat_key(const std::string& prefix, std::uint64_t seat) { return fmt::format("{}seat/{}", prefix, seat); }

std::string secret_at_door(const std::string& given, const TcpDoor& door) {
  return given.empty() ? to_hex(door.nonce) : given;
}

Digest newcomer_key(const std::string& secret, const TcpDoor& door) {
  return job_key(secret, door.nonce, "newcomer", 0);
}

namespace {

/// What the members of the larger group know of each other.
TcpJob grown_job(const TcpJob& own, const GrowthTable& table, int index) {
  TcpJob out = own;
  const auto place = static_cast<std::size_t>(index);
  out.rank = table.ranks[place];
  out.members = table.ranks;
  out.generation = table.generation;
  out.path = table.path;
  out.num_fakes = table.num_fakes;
  out.table = {};
  out.table.nonce = table.table.nonce;
  out.table.ranks.resize(static_cast<std::size_t>(table.ranks.back()) + 1);
  for (std::size_t i = 0; i < table.ranks.size(); ++i) {
    out.table.ranks[static_cast<std::size_t>(table.ranks[i])] = table.table.ranks[i];
  }
  out.door = table.door;
  out.door.store = own.door.store;
  out.door.prefix = own.door.prefix;
  out.door.nonce = own.door.nonce;
  return out;
}

TcpGroup grown_group(const TcpJob& job, const GrowthTable& table, int index, const std::function<void()>& look) {
  TcpGroup out;
  out.member.rank = index;
  out.member.key = job_key(job.secret, job.table.nonce, "data", job.generation);
  out.member.own = job.own;
  for (const Announcement& one : table.table.ranks) out.member.addresses.push_back(one.address);
  out.member.timeout_s = job.timeout_s;
  out.member.look = look;
  out.hosts = map_hosts(table.table.ranks, index, job.num_fakes);
  return out;
}

}  // namespace

Grown connect_grown(const TcpJob& own, const GrowthTable& table, int index, File listening,
                    const std::function<void()>& look) {
  TcpJob job = grown_job(own, table, index);
  TcpGroup group = grown_group(job, table, index, look);
  std::unique_ptr<TcpTransport> messages = connect_messages(group, std::move(listening));
  try {
    // Who dies or gives up from now on is noticed by all who are connected with it.
    group.member.look = [connected = messages.get()] { connected->look(); };
    TransportProbe probe(*messages, 2);
    const bool is_shared =
        job.path == TcpPath::kHierarchy && group.hosts.num_hosts < static_cast<int>(table.ranks.size());
    Topology topology = measure_network("tcp", probe, group.hosts, is_shared);
    job.max_senders = admitted_senders(topology);
    for (const int other : probe.all_gather(job.max_senders)) job.max_senders = std::min(job.max_senders, other);
    messages->set_admission(job.max_senders);
    std::unique_ptr<Survival> survival = survival_over_tcp(job, probe, group.member.look);
    std::unique_ptr<Transport> transport;
    if (is_shared) {
      const std::string name = "tcp-" + to_hex(std::span(job.table.nonce).first(16));
      transport = share_memory(messages, group, probe, name, job.staging_bytes);
    } else {
      transport = std::move(messages);
    }
    return {.transport = std::move(transport),
            .survival = std::move(survival),
            .topology = std::move(topology),
            .short_network = std::nullopt,
            .first_newcomer = table.first_newcomer};
  } catch (const std::exception& error) {
    if (messages != nullptr) messages->fail(error.what());
    throw;
  }
}

}  // namespace gar
