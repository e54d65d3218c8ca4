// Ranks over TCP: forked processes of this host that find each other through a store on the loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gar/store.hpp"
#include "gar/tcp.hpp"
#include "runtime/transports/tcp/launchers.hpp"
#include "support/rank_groups.hpp"

namespace gar::test {

/// Starts the ranks; they find each other through a server in rank 0. The listener must outlive the start of all.
class TcpRanks {
 public:
  TcpRanks(int size, TcpPath path) : size_(size), path_(path) {}

  void start(Processes& processes, const Body& body) {
    for (int rank = 0; rank < size_; ++rank) {
      processes.start([this, rank, &body] { run(rank, body); });
    }
  }
  [[nodiscard]] const std::string& address() const { return listener_.address(); }
  [[nodiscard]] const std::string& secret() const { return secret_; }

 private:
  void run(int rank, const Body& body) {
    std::unique_ptr<StoreServer> server;
    if (rank == 0) server = std::make_unique<StoreServer>(listener_.take(), secret_);
    const std::unique_ptr<Store> store = tcp_store(listener_.address(), secret_, kLongestWait);
    int made = 0;
    TcpOptions tcp;
    tcp.path = path_;
    Member member{rank, size_, [&](const CommunicatorOptions& options) {
                    return tcp_communicator(*store, "c" + std::to_string(made++), rank, size_, options, tcp);
                  }};
    body(member);
  }

  int size_;
  TcpPath path_;
  std::string secret_ = make_secret();
  LoopbackListener listener_;
};

inline std::vector<std::string> run_tcp(int size, TcpPath path, const Body& body) {
  TcpRanks ranks(size, path);
  Processes processes;
  ranks.start(processes, body);
  std::vector<std::string> out;
  for (const Processes::Outcome& outcome : processes.collect()) out.push_back(outcome.text);
  return out;
}

}  // namespace gar::test
