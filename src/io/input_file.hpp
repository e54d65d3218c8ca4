// A file that is read from its beginning to its end, and that cannot make a program wait or read for ever.
#pragma once

#include <cstdint>
#include <optional>
#include <streambuf>
#include <string>
#include <vector>

#include "io/descriptor.hpp"

namespace gar {

/// An input file as a stream buffer. Accepted are regular files, and pipes; none may be silent for longer than
/// GAR_INPUT_TIMEOUT. Devices, sockets and folders are refused before anything is read, except for standard input under
/// a name such as /dev/stdin, which may be anything and may be silent. All problems are ParseErrors that name the file.
class InputFile : public std::streambuf {
 public:
  /// `accepted` says what the file should be, for messages: "a plan file"; empty: any file.
  InputFile(std::string path, std::int64_t max_bytes, std::string accepted = "");

 protected:
  int_type underflow() override;

 private:
  [[noreturn]] void fail(const std::string& problem) const;
  [[noreturn]] void fail_too_long(const std::string& size) const;
  /// The bytes that were read into chunk_; 0 at the end.
  std::size_t read_some();

  std::string path_;
  std::string accepted_;
  std::int64_t max_bytes_;
  std::int64_t num_bytes_ = 0;
  Descriptor file_;
  bool is_pipe_ = false;              ///< other than standard input
  std::optional<double> patience_s_;  ///< how long it may be silent; none: standard input, as long as it likes
  std::vector<char> chunk_;
};

}  // namespace gar
