#include "apps/preload/types.hpp"

#include <algorithm>
#include <array>
#include <vector>

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

}  // namespace

std::optional<ReduceOp> op_of(MPI_Op op) {
  for (int i = 0; i < kNumReduceOps; ++i) {
    const auto ours = static_cast<ReduceOp>(i);
    if (op == mpi_op(ours)) return ours;
  }
  return std::nullopt;
}

std::optional<Elements> elements_of(MPI_Datatype type, MPI_Op op) {
  static const std::vector<Entry> kEntries = make_entries();
  const std::optional<ReduceOp> known = op_of(op);
  const auto entry = std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& e) { return e.handle == type; });
  if (!known || entry == kEntries.end() || !is_defined(entry->kind, *known)) return std::nullopt;
  return Elements{entry->type, entry->kind == Kind::kComplex ? 2 : 1, *known};
}

}  // namespace gar::preload
