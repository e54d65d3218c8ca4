#include "io/guarded_stream.hpp"

#include <fmt/format.h>

#include <utility>

#include "gar/errors.hpp"

namespace gar {
namespace {

constexpr std::int64_t kMaxStringBytes = std::int64_t{1} << 20;
constexpr std::int64_t kMaxNumberBytes = 1024;

bool separates(char c) {
  return c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}' || c == ' ' || c == '\n' || c == '\t' ||
         c == '\r';
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::streambuf& from, std::string source, std::int64_t max_bytes)
    : from_(from), source_(std::move(source)), max_bytes_(max_bytes), chunk_(std::size_t{1} << 16) {}

GuardedBuffer::int_type GuardedBuffer::underflow() {
  const std::streamsize got = from_.sgetn(chunk_.data(), static_cast<std::streamsize>(chunk_.size()));
  if (got <= 0) return traits_type::eof();
  inspect(static_cast<std::size_t>(got));
  setg(chunk_.data(), chunk_.data(), chunk_.data() + got);
  return traits_type::to_int_type(*gptr());
}

void GuardedBuffer::inspect(std::size_t size) {
  num_bytes_ += static_cast<std::int64_t>(size);
  if (num_bytes_ > max_bytes_) refuse(fmt::format("is longer than {} bytes, the most that is accepted", max_bytes_));
  for (std::size_t i = 0; i < size; ++i) {
    const char c = chunk_[i];
    ++token_bytes_;
    if (in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        token_bytes_ = 0;
      }
      if (token_bytes_ > kMaxStringBytes)
        refuse(fmt::format("a string is longer than {} bytes, the most that is accepted", kMaxStringBytes));
    } else if (c == '"') {
      in_string_ = true;
      token_bytes_ = 0;
    } else if (separates(c)) {
      token_bytes_ = 0;
    } else if (token_bytes_ > kMaxNumberBytes) {
      refuse(fmt::format("a number or word is longer than {} bytes, the most that is accepted", kMaxNumberBytes));
    }
  }
}

void GuardedBuffer::refuse(const std::string& what) const { throw ParseError(fmt::format("{}: {}", source_, what)); }

}  // namespace gar
