// One connection to another rank: frames that wait to leave, and the frame that is coming in.
//
// What is sent leaves from where it lies (scatter-gather); what comes goes straight to where it belongs, but for what
// is read together with a head. Nothing here waits: descriptors do not block, and an event loop (edge-triggered epoll)
// says when it is worth another try.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/transports/shared/meeting_place.hpp"
#include "runtime/transports/tcp/frames.hpp"

namespace gar {

/// Who gets what has come.
class FrameSink {
 public:
  /// Where the payload of a frame goes, which is not empty. Null: it cannot be taken yet; the connection stalls until
  /// it is resumed. Throws TransportError when it is nothing that the rank could have sent.
  virtual std::byte* place(int peer, const FrameHead& head) = 0;
  /// The payload is there.
  virtual void arrived(int peer, const FrameHead& head) = 0;

 protected:
  FrameSink() = default;
  FrameSink(const FrameSink&) = default;
  FrameSink& operator=(const FrameSink&) = default;
  ~FrameSink() = default;
};

/// What becomes of a message when its last byte has been handed to the kernel.
struct SendToken {
  int slot = -1;   ///< -1: none
  int index = -1;  ///< of a send out of the user's memory; -1: none
};

class Connection {
 public:
  Connection() = default;
  Connection(int peer, File socket) : peer_(peer), socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.fd; }
  /// What epoll has said.
  void note(std::uint32_t events);

  /// `data` stay where they are until they have left.
  void queue(const FrameHead& head, const std::byte* data, const SendToken& token);
  void queue_copy(const FrameHead& head, std::span<const std::byte> payload);
  /// Hands to the kernel what it takes; tokens of what has left are added to `left`. True when something has.
  bool flush(std::vector<SendToken>& left);
  [[nodiscard]] bool is_sending() const { return !out_.empty(); }
  [[nodiscard]] bool may_flush() const { return is_writable_ && !out_.empty() && !is_broken(); }

  /// Takes in what has come. True when something has. A limit keeps one peer from holding up the others.
  bool receive(FrameSink& sink);
  [[nodiscard]] bool may_receive() const { return (is_readable_ || staged_ > begin_) && !is_stalled_; }
  void resume() { is_stalled_ = false; }
  /// Does something wait that cannot be taken yet?
  [[nodiscard]] bool is_stalled() const { return is_stalled_; }
  /// Is there more to read than epoll will speak of?
  [[nodiscard]] bool is_restless() const { return is_stalled_ || is_readable_; }
  /// Has the peer closed it, or has it failed?
  [[nodiscard]] bool has_ended() const { return has_ended_ || is_broken(); }
  [[nodiscard]] bool is_broken() const { return error_ != 0; }
  /// errno of what broke it; 0: nothing has.
  [[nodiscard]] int error() const { return error_; }

  /// Only a frame that has begun to leave still does, from memory of our own; the others are dropped. What comes in
  /// does not go to memory of others any more. Throws std::bad_alloc.
  void withdraw();
  /// Takes in what comes and throws it away.
  void discard();
  /// Nothing follows.
  void shut_down();
  /// Has the other host everything that was sent?
  [[nodiscard]] bool is_delivered() const;
  void close() { socket_ = File(); }

 private:
  static constexpr std::size_t kStaging = 24 << 10;  // messages of 16 KiB are read with their heads in one call

  struct Outgoing {
    FrameHead head;
    const std::byte* data = nullptr;
    std::vector<std::byte> own;  ///< where data lie, if they are a copy
    SendToken token;
  };
  void take_staged(FrameSink& sink);
  void advance_payload(std::size_t bytes, FrameSink& sink);
  void pop_sent(std::size_t bytes, std::vector<SendToken>& left);

  int peer_ = -1;
  File socket_;
  bool is_readable_ = true;
  bool is_writable_ = true;
  bool is_hung_up_ = false;
  bool is_stalled_ = false;
  bool has_ended_ = false;
  int error_ = 0;

  std::deque<Outgoing> out_;
  std::size_t front_sent_ = 0;  ///< of the first one, head included

  FrameHead head_;           ///< of the frame that is coming in
  std::size_t missing_ = 0;  ///< of its payload
  std::byte* target_ = nullptr;
  std::vector<std::byte> waste_;
  std::size_t begin_ = 0;  ///< bytes in staging that are not looked at yet: from here
  std::size_t staged_ = 0;
  std::array<std::byte, kStaging> staging_{};
};

}  // namespace gar
