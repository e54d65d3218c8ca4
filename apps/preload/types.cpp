#include "apps/preload/types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "apps/preload/real.hpp"
#include "base/hash.hpp"
#include "runtime/transports/mpi/native.hpp"

namespace gar::preload {

namespace {

/// Which operators MPI defines for a type.
enum class Kind { kCInteger, kInteger, kFloat, kComplex, kByte };

struct Entry {
  MPI_Datatype handle;
  Kind kind;
  DataType type;
};

std::optional<DataType> integer_of(int bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? DataType::kInt8 : DataType::kUint8;
    case 2:
      return is_signed ? DataType::kInt16 : DataType::kUint16;
    case 4:
      return is_signed ? DataType::kInt32 : DataType::kUint32;
    case 8:
      return is_signed ? DataType::kInt64 : DataType::kUint64;
    default:
      return std::nullopt;
  }
}

std::optional<DataType> float_of(int bytes) {
  if (bytes == 4) return DataType::kFloat32;
  if (bytes == 8) return DataType::kFloat64;
  return std::nullopt;
}

/// The sizes of Fortran's types depend on how the library was built, so all sizes are asked for.
std::vector<Entry> make_entries() {
  std::vector<Entry> out;
  const auto add = [&](MPI_Datatype handle, Kind kind, bool is_signed = true) {
    int bytes = 0;
    if (handle == MPI_DATATYPE_NULL || MPI_Type_size(handle, &bytes) != MPI_SUCCESS) return;
    const bool is_float = kind == Kind::kFloat || kind == Kind::kComplex;
    const auto type = is_float ? float_of(kind == Kind::kComplex ? bytes / 2 : bytes) : integer_of(bytes, is_signed);
    if (type) out.push_back({handle, kind, *type});
  };
  for (MPI_Datatype type : {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8}) {
    add(type, Kind::kFloat);
  }
  for (MPI_Datatype type : {MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_SHORT, MPI_SIGNED_CHAR, MPI_INT8_T, MPI_INT16_T,
                            MPI_INT32_T, MPI_INT64_T}) {
    add(type, Kind::kCInteger);
  }
  for (MPI_Datatype type : {MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UNSIGNED_SHORT,
                            MPI_UNSIGNED_CHAR, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T}) {
    add(type, Kind::kCInteger, false);
  }
  // Not MPI_OFFSET: Open MPI 4.1 compares it as an unsigned number.
  for (MPI_Datatype type : {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_AINT, MPI_COUNT}) {
    add(type, Kind::kInteger);
  }
  for (MPI_Datatype type :
       {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16}) {
    add(type, Kind::kComplex);
  }
  add(MPI_BYTE, Kind::kByte, false);
  return out;
}

bool is_defined(Kind kind, ReduceOp op) {
  const bool is_order = op == ReduceOp::kMin || op == ReduceOp::kMax;
  const bool is_arithmetic = op == ReduceOp::kSum || op == ReduceOp::kProd;
  const bool is_bitwise = op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
  switch (kind) {
    case Kind::kCInteger:
      return true;
    case Kind::kInteger:
      return is_order || is_arithmetic || is_bitwise;
    case Kind::kFloat:
      return is_order || is_arithmetic;
    case Kind::kComplex:
      return op == ReduceOp::kSum;  // the parts of a product mix
    case Kind::kByte:
      return is_bitwise;
  }
  return false;
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kEntries = make_entries();
  return kEntries;
}

/// One type and operator, with numbers of all magnitudes, or with all pairs of floating-point numbers that are not like
/// others, and in such a number that vector instructions and what is left over have their share.
class Trial {
 public:
  Trial(const Entry& entry, ReduceOp op) : type_(entry.type), is_float_(entry.kind == Kind::kFloat) {
    if (!is_defined(entry.kind, op) || entry.kind == Kind::kComplex) return;
    if (is_float_ && op != ReduceOp::kMin && op != ReduceOp::kMax) return;  // rounding is nobody's deviation
    if (!is_float_) {
      for (std::size_t i = 0; i < a_.size(); ++i) {
        a_[i] = static_cast<std::byte>(mix(2 * i));
        b_[i] = static_cast<std::byte>(mix(2 * i + 1));
      }
    } else if (type_ == DataType::kFloat32) {
      fill_specially<float>();
    } else {
      fill_specially<double>();
    }
    theirs_ = b_;
    const int count = static_cast<int>(static_cast<std::int64_t>(a_.size()) / size_of(type_));
    has_run_ = true;
    const ErrorsReturned quiet;
    is_refused_ = MPI_Reduce_local(a_.data(), theirs_.data(), count, entry.handle, mpi_op(op)) != MPI_SUCCESS;
    const std::array<const void*, 2> operands{a_.data(), b_.data()};
    reduce(type_, op, ours_.data(), operands, count);
    if (is_float_) make_nan_alike();
  }
  [[nodiscard]] bool is_other() const { return has_run_ && (is_refused_ || ours_ != theirs_); }
  /// "Open MPI 4.1.4 makes 127 of 100 and 100, where -56 is right", or of what nobody has defined "where gar makes
  /// nan"; empty: nothing to say.
  [[nodiscard]] std::string words(const std::string& library) const {
    if (!is_other()) return {};
    if (is_refused_) return fmt::format("{} refuses it", library);
    const auto differing = std::mismatch(ours_.begin(), ours_.end(), theirs_.begin()).first - ours_.begin();
    const auto index = static_cast<std::size_t>(differing / size_of(type_));
    const std::string right = text(ours_, index);
    return fmt::format("{} makes {} of {} and {}, where {}", library, text(theirs_, index), text(a_, index),
                       text(b_, index), is_float_ ? "gar makes " + right : right + " is right");
  }

 private:
  using Bytes = std::array<std::byte, 1160>;  // no multiple of a vector register

  template <class T>
  void fill_specially() {
    constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
    constexpr std::array<T, 7> kNumbers{kNan, T{1}, T{0}, -T{0}, T{-2}, std::numeric_limits<T>::infinity(), T{3}};
    for (std::size_t i = 0; (i + 1) * sizeof(T) <= a_.size(); ++i) {
      std::memcpy(a_.data() + i * sizeof(T), &kNumbers[i % kNumbers.size()], sizeof(T));
      std::memcpy(b_.data() + i * sizeof(T), &kNumbers[i / kNumbers.size() % kNumbers.size()], sizeof(T));
    }
  }
  /// One NaN is as good as another.
  void make_nan_alike() {
    const auto width = static_cast<std::size_t>(size_of(type_));
    for (std::size_t i = 0; (i + 1) * width <= ours_.size(); ++i) {
      if (!std::isnan(number(ours_, i)) || !std::isnan(number(theirs_, i))) continue;
      std::memcpy(theirs_.data() + i * width, ours_.data() + i * width, width);
    }
  }
  [[nodiscard]] double number(const Bytes& bytes, std::size_t index) const {
    if (type_ == DataType::kFloat64) {
      double value = 0;
      std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
      return value;
    }
    float value = 0;
    std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
    return static_cast<double>(value);
  }

  [[nodiscard]] std::string text(const Bytes& bytes, std::size_t index) const {
    if (is_float_) return fmt::format("{}", number(bytes, index));
    const auto width = static_cast<std::size_t>(size_of(type_));
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + index * width, width);
    const bool is_signed =
        type_ == DataType::kInt8 || type_ == DataType::kInt16 || type_ == DataType::kInt32 || type_ == DataType::kInt64;
    const auto unused = static_cast<unsigned>(64 - 8 * width);
    if (is_signed) return fmt::format("{}", static_cast<std::int64_t>(value << unused) >> unused);
    return fmt::format("{}", value);
  }

  DataType type_;
  bool is_float_;
  Bytes a_{};
  Bytes b_{};
  Bytes ours_{};
  Bytes theirs_{};
  bool has_run_ = false;
  bool is_refused_ = false;
};

}  // namespace

std::optional<ReduceOp> op_of(MPI_Op op) {
  for (int i = 0; i < kNumReduceOps; ++i) {
    const auto ours = static_cast<ReduceOp>(i);
    if (op == mpi_op(ours)) return ours;
  }
  return std::nullopt;
}

bool is_basic(MPI_Datatype type) {
  return std::any_of(entries().begin(), entries().end(), [&](const Entry& e) { return e.handle == type; });
}

std::optional<Elements> elements_of(MPI_Datatype type, MPI_Op op) {
  const std::optional<ReduceOp> known = op_of(op);
  const auto entry = std::find_if(entries().begin(), entries().end(), [&](const Entry& e) { return e.handle == type; });
  if (!known || entry == entries().end() || !is_defined(entry->kind, *known)) return std::nullopt;
  return Elements{static_cast<int>(entry - entries().begin()), entry->type, entry->kind == Kind::kComplex ? 2 : 1,
                  *known};
}

void Deviations::add(const Deviations& other) {
  for (std::size_t i = 0; i < kMostEntries; ++i) ops_[i] = static_cast<std::uint16_t>(ops_[i] | other.ops_[i]);
}

void Deviations::add(int entry, ReduceOp op) {
  std::uint16_t& ops = ops_[static_cast<std::size_t>(entry)];
  ops = static_cast<std::uint16_t>(ops | 1U << static_cast<unsigned>(op));
}

bool Deviations::has(const Elements& elements) const {
  return (ops_[static_cast<std::size_t>(elements.entry)] >> static_cast<unsigned>(elements.op) & 1U) != 0;
}

Deviations find_deviations() {
  static_assert(kNumReduceOps <= 16);
  Deviations out;
  const Inside inside;
  for (std::size_t i = 0; i < std::min(entries().size(), Deviations::kMostEntries); ++i) {
    for (int o = 0; o < kNumReduceOps; ++o) {
      if (Trial(entries()[i], static_cast<ReduceOp>(o)).is_other())
        out.add(static_cast<int>(i), static_cast<ReduceOp>(o));
    }
  }
  return out;
}

std::string describe_deviation(const Elements& elements, const std::string& library) {
  const Inside inside;
  const Entry& entry = entries()[static_cast<std::size_t>(elements.entry)];
  char name[MPI_MAX_OBJECT_NAME] = {};
  int length = 0;
  MPI_Type_get_name(entry.handle, static_cast<char*>(name), &length);
  const std::string words = Trial(entry, elements.op).words(library);
  return fmt::format("the {} of {}: {}", to_string(elements.op), static_cast<const char*>(name),
                     words.empty() ? fmt::format("{} on another host differs from gar", library) : words);
}

}  // namespace gar::preload
