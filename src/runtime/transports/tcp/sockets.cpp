#include "runtime/transports/tcp/sockets.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "gar/errors.hpp"
#include "gar/format.hpp"

namespace gar {

namespace {

struct HostAndPort {
  std::string host;
  std::string port;
};

std::optional<HostAndPort> split_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.size() > 300) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;  // an IPv6 address needs brackets
  }
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number > 65535 || host.empty()) return std::nullopt;
  return HostAndPort{std::string(host), std::string(port)};
}

std::optional<Address> look_up(const HostAndPort& place, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  Address out;
  out.length = list->ai_addrlen;
  std::memcpy(&out.storage, list->ai_addr, list->ai_addrlen);
  return out;
}

std::span<const std::byte> raw(const Address& address) {
  if (address.family() == AF_INET6) {
    return std::as_bytes(std::span(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr.s6_addr));
  }
  return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, 1));
}

struct Interface {
  std::string name;
  Address address;
  bool is_loopback = false;
};

std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, freeifaddrs);
  std::vector<Interface> out;
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Interface one;
    one.name = i->ifa_name;
    one.is_loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    one.address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&one.address.storage, i->ifa_addr, one.address.length);
    out.push_back(std::move(one));
  }
  // Link-local addresses of IPv6 come last: they mean something on one cable only.
  const auto rank = [](const Interface& one) {
    const bool is_link_local =
        one.address.family() == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(&one.address.storage)->sin6_addr);
    return (one.is_loopback ? 4 : 0) + (is_link_local ? 2 : 0) + (one.address.family() == AF_INET6 ? 1 : 0);
  };
  std::stable_sort(out.begin(), out.end(), [&](const Interface& a, const Interface& b) { return rank(a) < rank(b); });
  return out;
}

std::string host_text(const Address& address) {
  char host[NI_MAXHOST] = {};
  if (getnameinfo(address.get(), address.length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  return host;
}

/// Is the address one of the network "10.77.0.0/16"?
bool is_in_network(const Address& address, const std::string& wish) {
  const std::size_t slash = wish.find('/');
  if (slash == std::string::npos) return false;
  const std::optional<Address> network = look_up({wish.substr(0, slash), "0"}, AI_NUMERICHOST);
  unsigned bits = 0;
  const char* end = wish.data() + wish.size();
  const auto [at, error] = std::from_chars(wish.data() + slash + 1, end, bits);
  if (!network || error != std::errc() || at != end || network->family() != address.family()) return false;
  const auto a = raw(address);
  const auto b = raw(*network);
  if (bits > 8 * a.size()) return false;
  for (unsigned bit = 0; bit < bits; ++bit) {
    const auto mask = static_cast<std::byte>(0x80U >> bit % 8);
    if ((a[bit / 8] & mask) != (b[bit / 8] & mask)) return false;
  }
  return true;
}

/// The address that the kernel would send from.
std::optional<Address> address_towards(const Address& to) {
  const File probe(socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (probe.fd < 0 || connect(probe.fd, to.get(), to.length) != 0) return std::nullopt;
  Address out = bound_address(probe.fd);
  out.set_port(0);
  return out;
}

}  // namespace

std::uint16_t Address::port() const {
  return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                    : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

void Address::set_port(std::uint16_t port) {
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
  }
}

std::string to_string(const Address& address) {
  return address.family() == AF_INET6 ? fmt::format("[{}]:{}", host_text(address), address.port())
                                      : fmt::format("{}:{}", host_text(address), address.port());
}

std::optional<Address> read_address(std::string_view text) {
  const std::optional<HostAndPort> place = split_address(text);
  return place ? look_up(*place, AI_NUMERICHOST) : std::nullopt;
}

Address resolve(std::string_view text, std::string_view what) {
  const std::optional<HostAndPort> place = split_address(text);
  if (!place) {
    throw InvalidArgument(
        fmt::format("{} '{}': expected HOST:PORT, such as 10.77.0.1:29500 or [fd00::1]:29500", what, escaped(text)));
  }
  if (const std::optional<Address> found = look_up(*place, 0)) return *found;
  throw InvalidArgument(fmt::format("{} '{}': there is no host of this name", what, escaped(text)));
}

Address local_address(const std::string& wish, const std::optional<Address>& towards) {
  const std::vector<Interface> all = interfaces();
  if (wish.empty()) {
    if (towards) {
      if (const std::optional<Address> found = address_towards(*towards)) return *found;
    }
    if (!all.empty()) return all.front().address;
    throw TransportError("this host has no network interface that is up, not even a loopback");
  }
  std::string there;
  for (const Interface& one : all) {
    if (one.name == wish || is_in_network(one.address, wish)) return one.address;
    there += fmt::format("{}{} ({})", there.empty() ? "" : ", ", one.name, host_text(one.address));
  }
  throw InvalidArgument(fmt::format(
      "no interface '{}' (GAR_INTERFACE) on this host; expected a name or a network, such as eth0 or 10.0.0.0/8; "
      "there is {}",
      escaped(wish), there.empty() ? "none" : there));
}

File listen_on(const Address& address) {
  constexpr int kBacklog = 4096;
  File out(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (out.fd < 0 || setsockopt(out.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(out.fd, address.get(), address.length) != 0 || listen(out.fd, kBacklog) != 0) {
    const int error = errno;
    throw TransportError(fmt::format("cannot listen on {}: {}", to_string(address), std::strerror(error)));
  }
  return out;
}

Address bound_address(int fd) {
  Address out;
  out.length = sizeof out.storage;
  getsockname(fd, out.get(), &out.length);
  return out;
}

File start_connecting(const Address& to, const std::optional<Address>& from) {
  File out(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (out.fd < 0) return out;
  // Who calls a port that nobody listens on yet may be given that port itself. Whoever wants to listen there still can.
  const int on = 1;
  if (!from) setsockopt(out.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (from && from->family() == to.family()) {
    Address source = *from;
    source.set_port(0);
    if (bind(out.fd, source.get(), source.length) != 0) return File();
  }
  if (connect(out.fd, to.get(), to.length) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    out = File();
    errno = error;
  }
  return out;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void set_up(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void set_silence_limit(int fd, double seconds) {
  const auto limit = static_cast<unsigned>(std::clamp(seconds * 1000, 1.0, 2e9));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

}  // namespace gar
