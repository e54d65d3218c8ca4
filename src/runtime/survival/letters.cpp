#include "runtime/survival/letters.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace gar {

namespace {

constexpr std::size_t kMostText = 2048;
constexpr std::uint32_t kLetterMark = 0x6c724147;

class LetterWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_integral_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    out_.append(text);
  }
  void ranks(const std::vector<int>& ranks) {
    number(static_cast<std::uint32_t>(ranks.size()));
    for (const int rank : ranks) number(static_cast<std::int32_t>(rank));
  }
  void outcome(const Outcome& outcome) {
    ranks(outcome.members);
    number(outcome.num_standing);
    number(static_cast<std::uint32_t>(outcome.addresses.size()));
    for (const std::string& address : outcome.addresses) text(address);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Once something is wrong, all that follows is nothing.
class LetterReader {
 public:
  explicit LetterReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    T value = 0;
    is_good_ = is_good_ && bytes_.size() >= sizeof value;
    if (!is_good_) return 0;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string text(std::size_t most) {
    const auto length = number<std::uint32_t>();
    is_good_ = is_good_ && length <= most && length <= bytes_.size();
    if (!is_good_) return {};
    std::string out(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
    return out;
  }
  std::size_t count() {
    const auto out = number<std::uint32_t>();
    is_good_ = is_good_ && out <= kMostMembers;
    return is_good_ ? out : 0;
  }
  std::vector<int> ranks() {
    std::vector<int> out;
    const std::size_t num = count();
    for (std::size_t i = 0; i < num && is_good_; ++i) out.push_back(number<std::int32_t>());
    return out;
  }
  Outcome outcome() {
    Outcome out;
    out.members = ranks();
    out.num_standing = number<std::uint64_t>();
    const std::size_t num = count();
    for (std::size_t i = 0; i < num && is_good_; ++i) out.addresses.push_back(text(kMostAddressBytes));
    return out;
  }
  [[nodiscard]] bool is_at_end() const { return is_good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool is_good_ = true;
};

}  // namespace

std::string write_letter(const Letter& letter) {
  LetterWriter out;
  out.number(kLetterMark);
  out.number(static_cast<std::uint8_t>(letter.kind));
  out.number(letter.generation);
  out.number(letter.ballot);
  out.number(letter.report.num_done);
  out.text(letter.report.address);
  out.ranks(letter.report.gone);
  out.ranks(letter.report.silent);
  out.number(letter.report.accepted);
  out.outcome(letter.report.outcome);
  out.outcome(letter.outcome);
  out.text(std::string_view(letter.text).substr(0, kMostText));
  return out.take();
}

std::optional<Letter> read_letter(std::string_view bytes) {
  LetterReader in(bytes);
  Letter out;
  const auto mark = in.number<std::uint32_t>();
  const auto kind = in.number<std::uint8_t>();
  if (mark != kLetterMark || kind < 1 || kind > static_cast<std::uint8_t>(LetterKind::kKinds)) return std::nullopt;
  out.kind = static_cast<LetterKind>(kind);
  out.generation = in.number<std::uint64_t>();
  out.ballot = in.number<std::int64_t>();
  out.report.num_done = in.number<std::uint64_t>();
  out.report.address = in.text(kMostAddressBytes);
  out.report.gone = in.ranks();
  out.report.silent = in.ranks();
  out.report.accepted = in.number<std::int64_t>();
  out.report.outcome = in.outcome();
  out.outcome = in.outcome();
  out.text = in.text(kMostText);
  if (!in.is_at_end()) return std::nullopt;
  return out;
}

}  // namespace gar
