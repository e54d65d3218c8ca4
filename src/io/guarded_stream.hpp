// A stream of JSON text that ends with an error before a reader can be made to use too much memory.
#pragma once

#include <cstdint>
#include <streambuf>
#include <string>
#include <vector>

namespace gar {

/// Passes on what another stream holds. Throws ParseError when there is more than `max_bytes` of it, or a string or
/// number so long that no document of ours has it.
class GuardedBuffer : public std::streambuf {
 public:
  GuardedBuffer(std::streambuf& from, std::string source, std::int64_t max_bytes);

 protected:
  int_type underflow() override;

 private:
  void inspect(std::size_t size);
  [[noreturn]] void refuse(const std::string& what) const;

  std::streambuf& from_;
  std::string source_;
  std::int64_t max_bytes_;
  std::int64_t num_bytes_ = 0;
  std::int64_t token_bytes_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
  std::vector<char> chunk_;
};

}  // namespace gar
