// The fields of a topology file: which object has which, and what each takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/topology/document.hpp"

namespace gar {

/// The first kNumFields are the parameters and their words, in the order of kParamNames.
enum class Field : std::uint8_t {
  kFirstParam = 0,
  kLastParam = kNumParams - 1,
  kBandwidthText = kBandwidth,
  kLatencyText = kLatency,
  kSchema,
  kTopName,
  kDescription,
  kClasses,
  kSubtrees,
  kTree,
  kNodes,
  kName,
  kClass,
  kKind,
  kRepeat,
  kRef,
  kParent,
  kChildren,
  kNone
};

struct FieldName {
  const char* name;
  Field field;
};

/// Fields of the file itself, of a parameter class, of a node in "tree" or "subtrees", of a node in "nodes".
std::span<const FieldName> top_fields();
std::span<const FieldName> class_fields();
std::span<const FieldName> tree_fields();
std::span<const FieldName> flat_fields();

/// What a field takes, for messages: "expected a number from 0 to 1e+06".
std::string accepted(Field field);

}  // namespace gar
