#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/store.hpp"
#include "runtime/store/messages.hpp"
#include "runtime/store/store_key.hpp"
#include "runtime/transports/tcp/reception.hpp"

namespace gar {

namespace {

using ClientClock = std::chrono::steady_clock;
constexpr auto kCallAgain = std::chrono::milliseconds(50);
constexpr auto kMostAnswer = std::chrono::seconds(15);  // then it calls again: who listens there may be somebody else

class TcpStore final : public Store {
 public:
  TcpStore(const std::string& address, const std::string& secret, double timeout_s)
      : address_(resolve(address, "the store")), secret_(secret), timeout_s_(timeout_s) {
    check_secret(secret, "the store");
    begin(timeout_s);
    connect();
  }
  void set(const std::string& key, const std::string& value) override {
    begin(timeout_s_);
    if (ask(StoreKind::kSet, key, value).kind != StoreKind::kDone) {
      throw TransportError(fmt::format("the store at {} is full", to_string(address_)));
    }
  }
  std::string get(const std::string& key, double timeout_s) override {
    begin(timeout_s);
    return ask(StoreKind::kGet, key, {}).value;
  }
  std::optional<std::string> look(const std::string& key) override {
    begin(timeout_s_);
    StoreMessage answer = ask(StoreKind::kLook, key, {});
    if (answer.kind == StoreKind::kNone) return std::nullopt;
    return std::move(answer.value);
  }
  bool claim(const std::string& key, const std::string& value) override {
    begin(timeout_s_);
    const StoreKind answer = ask(StoreKind::kClaim, key, value).kind;
    if (answer == StoreKind::kFull) throw TransportError(fmt::format("the store at {} is full", to_string(address_)));
    return answer == StoreKind::kDone;
  }
  void remove(const std::string& key) override {
    begin(timeout_s_);
    ask(StoreKind::kRemove, key, {});
  }
  [[nodiscard]] std::string secret() const override { return secret_; }
  [[nodiscard]] std::string server() const override { return to_string(address_); }

 private:
  void begin(double timeout_s) {
    limit_s_ = timeout_s;
    limit_ = ClientClock::now() +
             std::chrono::duration_cast<ClientClock::duration>(std::chrono::duration<double>(std::min(timeout_s, 1e8)));
  }
  [[nodiscard]] bool is_late() const { return ClientClock::now() >= limit_; }

  void connect() {
    std::string why;
    while (true) {
      if (call(why)) return;
      if (is_late()) {
        throw TransportError(fmt::format("no store answers at {} within {} s: {}", to_string(address_), limit_s_, why));
      }
      std::this_thread::sleep_for(kCallAgain);
    }
  }

  /// One attempt.
  bool call(std::string& why) {
    const auto limit = std::min(limit_, ClientClock::now() + kMostAnswer);
    File socket = start_connecting(address_, std::nullopt);
    if (socket.fd < 0) {
      why = std::strerror(errno);
      return false;
    }
    if (!wait_for(socket.fd, POLLOUT, limit)) {
      if (why.empty()) why = "no answer";
      return false;
    }
    if (const int error = connect_error(socket.fd); error != 0) {
      why = std::strerror(error);
      return false;
    }
    set_up(socket.fd);
    Greeter greeter(std::move(socket),
                    Handshake::caller(store_key(secret_), {Purpose::kStore, 0, 0, 1}, random_nonce()));
    while (!greeter.advance()) {
      if (!wait_for(greeter.fd(), greeter.wants_to_write() ? POLLOUT : POLLIN, limit)) {
        if (why.empty()) why = "no answer";
        return false;
      }
    }
    if (!greeter.is_welcome()) {
      why = "it is not a gar store, or has another secret (GAR_SECRET, GAR_SECRET_FILE)";
      return false;
    }
    socket_ = greeter.take();
    return true;
  }

  /// False: the time is over.
  static bool wait_for(int fd, int events, ClientClock::time_point limit) {
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - ClientClock::now()).count();
      pollfd entry{fd, static_cast<short>(events), 0};
      if (poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1000))) > 0) return true;
      if (ClientClock::now() >= limit) return false;
    }
  }

  StoreMessage ask(StoreKind kind, const std::string& key, const std::string& value) {
    if (socket_.fd < 0) connect();
    std::vector<std::byte> out;
    write_message(out, kind, key, value);
    for (std::size_t done = 0; done < out.size();) {
      const ssize_t sent = send(socket_.fd, out.data() + done, out.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) done += static_cast<std::size_t>(sent);
      if (sent < 0 && errno != EINTR && errno != EAGAIN) lose(std::strerror(errno));
      if (sent < 0 && !wait_for(socket_.fd, POLLOUT, limit_)) lose("it takes nothing");
    }
    StoreReader reader;
    std::array<std::byte, 4096> in;
    while (true) {
      if (std::optional<StoreMessage> answer = reader.next()) return *answer;
      if (!wait_for(socket_.fd, POLLIN, limit_)) {
        socket_ = File();
        throw TransportError(fmt::format("nobody has set '{}' in the store at {} within {} s", escaped(key),
                                         to_string(address_), limit_s_));
      }
      const ssize_t got = recv(socket_.fd, in.data(), in.size(), MSG_DONTWAIT);
      if (got == 0) lose("it has ended");
      if (got < 0 && errno != EINTR && errno != EAGAIN) lose(std::strerror(errno));
      if (got > 0) reader.take(std::span(in).first(static_cast<std::size_t>(got)));
    }
  }

  [[noreturn]] void lose(std::string_view why) {
    socket_ = File();
    throw TransportError(fmt::format("the store at {}: {}", to_string(address_), why));
  }

  Address address_;
  std::string secret_;
  double timeout_s_;
  double limit_s_ = 0;
  ClientClock::time_point limit_;
  File socket_;
};

}  // namespace

std::unique_ptr<Store> tcp_store(const std::string& address, const std::string& secret, double timeout_s) {
  return std::make_unique<TcpStore>(address, secret, timeout_s);
}

}  // namespace gar
