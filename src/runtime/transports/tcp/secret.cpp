#include "runtime/transports/tcp/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/store.hpp"
#include "runtime/transports/shared/meeting_place.hpp"

namespace gar {

namespace {

constexpr std::size_t kLeastLetters = 16;
constexpr std::size_t kMostLetters = 4096;

std::string read_secret(const std::string& path) {
  const auto refuse = [&](std::string_view why) {
    throw InvalidArgument(fmt::format("GAR_SECRET_FILE={} in the environment: {}", escaped(path), why));
  };
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) refuse(std::strerror(errno));
  struct stat about = {};
  if (fstat(file.fd, &about) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse("expected a file");
  if (about.st_uid != geteuid() && about.st_uid != 0) refuse("expected a file of the user who runs the job");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) refuse("others may read or write it; expected mode 0600");
  std::string text(kMostLetters, '\0');
  const ssize_t got = read(file.fd, text.data(), text.size());
  if (got < 0) refuse(std::strerror(errno));
  text.resize(static_cast<std::size_t>(got));
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  return text;
}

}  // namespace

Digest hmac(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<unsigned char> text;
  for (const auto& part : parts) {
    const auto* begin = reinterpret_cast<const unsigned char*>(part.data());
    text.insert(text.end(), begin, begin + part.size());
  }
  Digest out{};
  unsigned int length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(), text.size(),
           reinterpret_cast<unsigned char*>(out.data()), &length) == nullptr ||
      length != out.size()) {
    throw TransportError("HMAC-SHA256 is not available in this OpenSSL");
  }
  return out;
}

bool is_same(const Digest& a, const Digest& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

Nonce random_nonce() {
  Nonce out{};
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size())) != 1) {
    throw TransportError("the system has no random numbers");
  }
  return out;
}

Digest derive_key(std::string_view secret, std::string_view purpose) {
  return hmac(std::as_bytes(std::span(secret)), {std::as_bytes(std::span(purpose))});
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) out += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return out;
}

void check_secret(std::string_view secret, std::string_view where) {
  if (secret.size() >= kLeastLetters && secret.size() < kMostLetters) return;
  throw InvalidArgument(
      fmt::format("{}: the secret has {} characters; expected {} to {}, such as those of: openssl rand "
                  "-hex 32",
                  where, secret.size(), kLeastLetters, kMostLetters - 1));
}

std::string job_secret() {
  if (std::string text = environment::text(environment::kSecret); !text.empty()) {
    check_secret(text, "GAR_SECRET in the environment");
    return text;
  }
  const std::string path = environment::text(environment::kSecretFile);
  if (path.empty()) return {};
  std::string out = read_secret(path);
  check_secret(out, fmt::format("GAR_SECRET_FILE={} in the environment", escaped(path)));
  return out;
}

}  // namespace gar
