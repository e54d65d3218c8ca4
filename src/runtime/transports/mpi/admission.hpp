// Admission (runtime/admission.hpp) by empty messages of MPI.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/admission.hpp"

namespace gar {

class MpiAdmission {
 public:
  using Queue = AdmissionQueue<int>;  ///< tickets are tags
  using Expected = Queue::Expected;

  /// `max_senders` 0: every rank may send at any time.
  MpiAdmission(MPI_Comm comm, int rank, int size, int max_senders) : comm_(comm), queue_(rank, size, max_senders) {}

  void begin(std::int64_t fan_in) { queue_.begin(fan_in); }
  [[nodiscard]] bool concerns(std::int64_t bytes) const { return queue_.concerns(bytes); }

  // Receiver.
  void expect(std::vector<Expected> messages) { queue_.expect(std::move(messages)); }
  /// Admits the ranks that may send now.
  void admit();
  /// A message that was expected has arrived.
  void arrived(int peer);

  // Sender.
  /// Asks for the admission of message `id` (any number); admitted() names it when it has arrived.
  void await(int peer, int tag, std::int64_t id);
  /// The numbers of messages that have been admitted since the last call.
  const std::vector<std::int64_t>& admitted();
  [[nodiscard]] bool is_waiting() const { return !awaited_.empty(); }
  [[nodiscard]] std::vector<int> awaited_peers() const;

  /// Takes back what was not admitted.
  void cancel() noexcept;

 private:
  struct Awaited {
    int peer = 0;
    std::int64_t id = 0;
  };

  MPI_Comm comm_;
  Queue queue_;
  std::vector<MPI_Request> requests_;
  std::vector<Awaited> awaited_;  ///< as requests_
  std::vector<int> done_;
  std::vector<std::int64_t> admitted_;
};

}  // namespace gar
