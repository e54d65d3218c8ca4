#include "runtime/transports/mpi/network.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/transports/mpi/polite.hpp"

namespace gar {

namespace {

class MpiProbe final : public NetworkProbe {
 public:
  explicit MpiProbe(MPI_Comm comm) : comm_(comm) {
    check_mpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
  }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void barrier() override { barrier_politely(comm_); }
  void shift(std::span<const Shift> messages, int bytes) override {
    const auto place = [](int peer) { return peer < 0 ? MPI_PROC_NULL : peer; };
    requests_.assign(2 * messages.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      std::byte* at = memory_.data() + i * static_cast<std::size_t>(bytes);
      check_mpi(MPI_Irecv(at, bytes, MPI_BYTE, place(messages[i].from), 0, comm_, &requests_[2 * i]), "MPI_Irecv");
    }
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const std::byte* at = memory_.data() + kMostBytes + i * static_cast<std::size_t>(bytes);
      check_mpi(MPI_Isend(at, bytes, MPI_BYTE, place(messages[i].to), 0, comm_, &requests_[2 * i + 1]), "MPI_Isend");
    }
    wait_politely(requests_);
  }

 protected:
  void gather_bytes(std::span<const std::byte> in, std::span<std::byte> out) override {
    const auto bytes = static_cast<int>(in.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallgather(in.data(), bytes, MPI_BYTE, out.data(), bytes, MPI_BYTE, comm_, &request),
              "MPI_Iallgather");
    wait_politely(request);
  }

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * static_cast<std::size_t>(kMostBytes));
  std::vector<MPI_Request> requests_;
};

}  // namespace

Topology measure_network(MPI_Comm comm, const Hosts& hosts, bool is_shared) {
  MpiProbe probe(comm);
  return measure_network("mpi", probe, hosts, is_shared);
}

Node measure_rank(MPI_Comm comm, const Hosts& hosts, bool is_shared) {
  MpiProbe probe(comm);
  return measure_rank(probe, hosts, is_shared);
}

std::optional<Topology> measure_messages(MPI_Comm comm, const Hosts& hosts, const Topology& network) {
  MpiProbe probe(comm);
  return measure_messages(probe, hosts, network);
}

}  // namespace gar
