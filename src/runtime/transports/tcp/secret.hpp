// What the members of a job share and nobody else knows. The cryptography is OpenSSL's.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace gar {

/// Of HMAC-SHA256; also a key.
using Digest = std::array<std::byte, 32>;
/// Random, and never used twice.
using Nonce = std::array<std::byte, 32>;

/// HMAC-SHA256 over the parts, one after the other. They must have fixed lengths, or tell them.
Digest hmac(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts);
/// In a time that does not tell where two digests differ.
bool is_same(const Digest& a, const Digest& b);
/// Throws TransportError when the system has none.
Nonce random_nonce();

/// The key that a secret stands for, for one purpose.
Digest derive_key(std::string_view secret, std::string_view purpose);

/// Bytes as hexadecimal digits.
std::string to_hex(std::span<const std::byte> bytes);

/// Throws InvalidArgument when a secret is too short; `where` is its place, for the message.
void check_secret(std::string_view secret, std::string_view where);

}  // namespace gar
