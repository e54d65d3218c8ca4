#include "runtime/transports/mpi/admission.hpp"

#include <algorithm>

#include "runtime/transports/mpi/mpi_call.hpp"

namespace gar {

void MpiAdmission::admit() {
  queue_.admit([&](const Expected& message) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, message.peer, message.ticket, comm_, &request), "MPI_Isend");
    check_mpi(MPI_Request_free(&request), "MPI_Request_free");  // empty: it leaves by itself
  });
}

void MpiAdmission::arrived(int peer) {
  queue_.arrived(peer);
  admit();
}

void MpiAdmission::await(int peer, int tag, std::int64_t id) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(nullptr, 0, MPI_BYTE, peer, tag, comm_, &request), "MPI_Irecv");
  requests_.push_back(request);
  awaited_.push_back({peer, id});
}

const std::vector<std::int64_t>& MpiAdmission::admitted() {
  admitted_.clear();
  if (requests_.empty()) return admitted_;
  int num_done = 0;
  done_.resize(requests_.size());
  check_mpi(
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &num_done, done_.data(), MPI_STATUSES_IGNORE),
      "MPI_Testsome");
  if (num_done <= 0) return admitted_;  // MPI_UNDEFINED is negative
  for (int i = 0; i < num_done; ++i) {
    const auto place = static_cast<std::size_t>(done_[static_cast<std::size_t>(i)]);
    admitted_.push_back(awaited_[place].id);
    awaited_[place].peer = -1;
  }
  // In the order of sending, whatever the order in which they were found.
  std::sort(admitted_.begin(), admitted_.end());
  std::erase_if(awaited_, [](const Awaited& a) { return a.peer < 0; });
  std::erase(requests_, MPI_REQUEST_NULL);
  return admitted_;
}

std::vector<int> MpiAdmission::awaited_peers() const {
  std::vector<int> out;
  for (const Awaited& a : awaited_) out.push_back(a.peer);
  return out;
}

void MpiAdmission::cancel() noexcept {
  for (MPI_Request& request : requests_) {
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);  // an empty receive that was taken back ends at once
  }
  requests_.clear();
  awaited_.clear();
  queue_.clear();
}

}  // namespace gar
