#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "gar/errors.hpp"
#include "gar/store.hpp"
#include "runtime/store/messages.hpp"
#include "runtime/store/store_key.hpp"
#include "runtime/transports/tcp/reception.hpp"

namespace gar {

namespace {

constexpr std::size_t kMostStored = std::size_t{256} << 20;  // bytes of all keys and values
constexpr std::size_t kMostWaiting = std::size_t{4} << 20;   // bytes that a client does not take
constexpr int kServePollMs = 500;

struct Client {
  File socket;
  StoreReader reader;
  std::vector<std::byte> out;
  std::optional<std::string> awaits;  ///< the key
  bool is_gone = false;
};

}  // namespace

struct StoreServer::Impl {
  Impl(File listening, const std::string& secret)
      : address(bound_address(listening.fd)),
        reception(std::move(listening), store_key(secret), {Purpose::kStore, 0, 0, 1}),
        wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        process(getpid()) {
    if (wake.fd < 0) throw TransportError("the store: no event descriptor");
    thread = std::thread([this] { run(); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (getpid() != process) {  // a forked child does not have the thread
      thread.detach();
      return;
    }
    const std::uint64_t one = 1;
    static_cast<void>(!write(wake.fd, &one, sizeof one));
    thread.join();
  }

  void run() {
    while (true) {
      std::vector<pollfd> entries{{wake.fd, POLLIN, 0}, {reception.fd(), POLLIN, 0}};
      for (const Client& client : clients) {
        entries.push_back({client.socket.fd, static_cast<short>(client.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
      }
      poll(entries.data(), entries.size(), kServePollMs);
      if (entries[0].revents != 0) return;
      std::size_t i = 2;
      for (Client& client : clients) {
        if (entries[i++].revents != 0) serve(client);
      }
      try {
        for (Guest& guest : reception.serve()) clients.emplace_back().socket = std::move(guest.socket);
      } catch (const std::exception&) {  // no random numbers, no memory: who calls is not let in
        continue;
      }
      clients.remove_if([](const Client& client) { return client.is_gone; });
    }
  }

  void serve(Client& client) {
    try {
      std::array<std::byte, 4096> in;
      const ssize_t got = recv(client.socket.fd, in.data(), in.size(), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) client.is_gone = true;
      if (got > 0) client.reader.take(std::span(in).first(static_cast<std::size_t>(got)));
      while (const std::optional<StoreMessage> request = client.reader.next()) answer(client, *request);
      write_out(client);
    } catch (const std::exception&) {  // nonsense
      client.is_gone = true;
    }
  }

  void answer(Client& client, const StoreMessage& request) {
    switch (request.kind) {
      case StoreKind::kSet:
        return set(client, request);
      case StoreKind::kClaim:
        if (!values.contains(request.key)) return set(client, request);
        return write_message(client.out, StoreKind::kTaken, {}, {});
      case StoreKind::kLook: {
        const auto found = values.find(request.key);
        const bool is_there = found != values.end();
        return write_message(client.out, is_there ? StoreKind::kValue : StoreKind::kNone, {},
                             is_there ? std::string_view(found->second) : std::string_view());
      }
      case StoreKind::kGet: {
        const auto found = values.find(request.key);
        if (found == values.end()) {
          client.awaits = request.key;
        } else {
          write_message(client.out, StoreKind::kValue, {}, found->second);
        }
        return;
      }
      case StoreKind::kRemove: {
        const auto found = values.find(request.key);
        if (found != values.end()) {
          stored -= found->first.size() + found->second.size();
          values.erase(found);
        }
        write_message(client.out, StoreKind::kDone, {}, {});
        return;
      }
      default:
        client.is_gone = true;
    }
  }

  void set(Client& client, const StoreMessage& request) {
    const std::size_t bytes = request.key.size() + request.value.size();
    if (stored + bytes > kMostStored) {
      write_message(client.out, StoreKind::kFull, {}, {});
      return;
    }
    const auto [entry, is_new] = values.try_emplace(request.key);
    stored += bytes;
    if (!is_new) stored -= request.key.size() + entry->second.size();
    entry->second = request.value;
    write_message(client.out, StoreKind::kDone, {}, {});
    for (Client& waiting : clients) {
      if (waiting.awaits != request.key) continue;
      waiting.awaits.reset();
      write_message(waiting.out, StoreKind::kValue, {}, request.value);
      write_out(waiting);
    }
  }

  static void write_out(Client& client) {
    while (!client.out.empty()) {
      const ssize_t sent = send(client.socket.fd, client.out.data(), client.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) {
        if (errno != EAGAIN) client.is_gone = true;
        break;
      }
      client.out.erase(client.out.begin(), client.out.begin() + sent);
    }
    if (client.out.size() > kMostWaiting) client.is_gone = true;
  }

  Address address;
  Reception reception;
  File wake;
  pid_t process;
  std::map<std::string, std::string> values;
  std::size_t stored = 0;
  std::list<Client> clients;
  std::thread thread;
};

namespace {

File listening_socket(const std::string& listen, const std::string& secret) {
  check_secret(secret, "the store");
  return listen_on(resolve(listen, "the store listens on"));
}

}  // namespace

StoreServer::StoreServer(const std::string& listen, const std::string& secret)
    : impl_(std::make_unique<Impl>(listening_socket(listen, secret), secret)) {}

StoreServer::StoreServer(int listening, const std::string& secret)
    : impl_(std::make_unique<Impl>(File(listening), secret)) {}

StoreServer::~StoreServer() = default;

std::string StoreServer::address() const { return to_string(impl_->address); }

std::string make_secret() { return to_hex(random_nonce()); }

}  // namespace gar
