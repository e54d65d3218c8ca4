// Addresses and sockets: IPv4 and IPv6 alike.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/transports/shared/meeting_place.hpp"

namespace gar {

/// An address with a port.
struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] std::uint16_t port() const;
  void set_port(std::uint16_t port);
};

/// "10.77.0.1:29500", "[fd00::1]:29500", and what read_address takes.
std::string to_string(const Address& address);
/// Numbers only; nothing when it is none. A scope may follow an IPv6 address: "[fe80::1%eth0]:5".
std::optional<Address> read_address(std::string_view text);
/// "host:port", where the host may be a name; looks names up. Throws InvalidArgument, which begins with `what`.
Address resolve(std::string_view text, std::string_view what);

/// The address of this host that connections of a job use. `wish`: the name of an interface ("eth0"), or a network
/// ("10.77.0.0/16", "fd00::/8"). Without one: the address that leads to `towards`, or else that of the first interface
/// that is up and not the loopback, IPv4 first; the loopback where there is no other. Throws InvalidArgument when
/// nothing fits the wish, and says what is there.
Address local_address(const std::string& wish, const std::optional<Address>& towards);

/// Listens on this address alone; port 0: any. Does not block. Throws TransportError.
File listen_on(const Address& address);
/// The address that a socket is bound to.
Address bound_address(int fd);
/// Begins to connect, without waiting; from this address, if it is given. A descriptor of -1 and errno when it cannot.
File start_connecting(const Address& to, const std::optional<Address>& from);
/// After that: 0 when it is connected, otherwise the error.
int connect_error(int fd);
/// What all connections have: no delay for short messages.
void set_up(int fd);
/// Unacknowledged data are an error after this long: a cable that was cut, a host without power.
void set_silence_limit(int fd, double seconds);

}  // namespace gar
