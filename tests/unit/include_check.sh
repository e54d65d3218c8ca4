#!/usr/bin/env bash
# The arrows between the modules, checked on the #include lines of src, apps, bindings, include and examples:
#   include_check.sh SOURCE_DIR
# A module may use itself, what is listed for it below, the standard library and {fmt}. Run with --arrows to print the list.
set -euo pipefail

# Module: the modules that it may use.
declare -A uses=(
  [base]=""
  [topology]="base"
  [plan]="base topology"
  [model]="base topology plan"
  [sim]="base topology plan model"
  [planner]="base topology plan model sim"
  [fit]="base topology plan model planner"
  [io]="base topology plan model sim fit"
  [explain]="base topology plan model planner sim fit"
  [documents]="base topology plan model planner sim fit io explain"
  [report]="base topology plan model planner sim fit io explain"
  [ask]="base topology plan model planner sim fit io explain documents"
  [runtime]="base topology plan model planner io documents"
  [measure]="base topology plan model planner fit io runtime"
)
# Public header: the module that it belongs to.
declare -A home=(
  [language]=base [errors]=base [version]=base [format]=base [quantity]=base [data_type]=base [stats]=base [environment]=base [limits]=base
  [nccl_log]=topology [topology]=topology [shapes]=topology [network_words]=topology
  [plan]=plan [algorithms]=plan [verify]=plan
  [model]=model
  [planner]=planner [predict]=planner [basic_plan]=planner
  [simulate]=sim [critical_path]=sim [what_if]=sim [scene]=sim [compare]=sim
  [profile]=fit [fit]=fit [fit_design]=fit [fit_report]=fit [link_limit]=fit
  [topology_io]=io [plan_io]=io [profile_io]=io [results_io]=io [files]=io [trace]=io [decisions]=io
  [explain]=explain [explain_topology]=explain [explain_simulation]=explain [explain_profile]=explain [explain_nccl]=explain
  [documents]=documents
  [ask]=ask [report]=report [plot]=report
  [reduction]=runtime [movement]=runtime [communicator]=runtime [mpi]=runtime [mpi_library]=runtime [cuda]=runtime [nccl]=runtime [tcp]=runtime [store]=runtime
)
# Folder of the command line program: the folders of it that it may use.
declare -A app_uses=(
  [cli]="" [views]="cli" [reproduce]="cli views" [verbs]="cli views reproduce" [main.cpp]="cli verbs"
)

if [[ ${1:-} == --arrows ]]; then
  for module in "${!uses[@]}"; do echo "$module <- ${uses[$module]:-nothing}"; done | sort
  exit 0
fi
cd "${1:?a source directory is needed}"
status=0
complain() {
  echo "include_check: $1"
  status=1
}
has_word() { [[ " $1 " == *" $2 "* ]]; }

# Headers of other libraries, and the only places for them.
check_foreign() {
  local file=$1 header=$2 where=$3
  local places=
  case "$header" in
    nlohmann/*) places='src/io/* src/documents/* src/ask/* src/measure/bench/document.cpp apps/gar/reproduce/*' ;;
    Eigen/*) places='src/fit/*' ;;
    CLI/*) places='apps/gar/*' ;;
    hwy/*) places='src/runtime/kernels/*' ;;
    pybind11/*) places='bindings/python/*' ;;
    openssl/*) places='src/runtime/transports/tcp/*' ;;
    hwloc.h) places='src/runtime/transports/mpi/*' ;;
    mpi.h) places='src/runtime/transports/mpi/* src/measure/world/*_mpi.cpp apps/preload/* include/gar/*mpi.h* examples/*' ;;
    nccl.h) places='src/runtime/transports/nccl/*' ;;
    cuda* | vector_types.h) places='src/runtime/transports/cuda/* src/runtime/transports/nccl/* src/measure/world/*_cuda.cpp examples/*' ;;
    format | ranges | source_location) places='apps/* src/runtime/* src/measure/*' ;;
    *) return 0 ;;
  esac
  set -f
  local place
  for place in $places; do
    # shellcheck disable=SC2053 # the right side is a pattern
    [[ $file == $place ]] && { set +f; return 0; }
  done
  set +f
  complain "$where: <$header> belongs to ${places// /, }"
}

# What a file of `module` may include of ours.
check_module() {
  local module=$1 header=$2 where=$3 other
  case "$header" in
    gar/*)
      other=${header#gar/} other=${other%.h*}
      case "$other" in
        gar | gar_mpi | gar_cuda | gar_tcp) other=runtime ;;
        measure/*) other=measure ;;
        *) other=${home[$other]:-} ;;
      esac
      if [[ -z $other ]]; then
        complain "$where: tests/unit/include_check.sh does not know whose $header is"
        return 0
      fi
      ;;
    */*) other=${header%%/*} ;;
    *) return 0 ;;
  esac
  case "$other" in
    "$module") ;;
    apps | tests | bench | examples) complain "$where: the library must not use $header" ;;
    *)
      [[ -z ${home[$other]:-}${uses[$other]+known} ]] || has_word "${uses[$module]-}" "$other" ||
        complain "$where: $module must not use $header"
      ;;
  esac
}

# The command line program uses public headers, and its own folders along their arrows.
check_app() {
  local file=$1 header=$2 where=$3
  local folder=${file#apps/gar/} other
  folder=${folder%%/*}
  case "$header" in
    gar/*) ;;
    apps/gar/*)
      other=${header#apps/gar/} other=${other%%/*}
      [[ $other == "$folder" ]] || has_word "${app_uses[$folder]-}" "$other" || complain "$where: $folder must not use $header"
      ;;
    apps/*) complain "$where: the program must not use $header" ;;
    *)
      [[ -z ${uses[${header%%/*}]+known} || $header != */* ]] || complain "$where: $header is private; the program uses gar/*.hpp"
      ;;
  esac
}

while IFS=: read -r file line header; do
  where=$file:$line
  check_foreign "$file" "$header" "$where"
  case "$file" in
    src/*)
      module=${file#src/}
      check_module "${module%%/*}" "$header" "$where"
      ;;
    apps/gar/*) check_app "$file" "$header" "$where" ;;
    apps/preload/*)
      case "$header" in
        apps/preload/* | gar/* | runtime/*) ;;
        apps/*) complain "$where: the preload library must not use $header" ;;
        */*) [[ -z ${uses[${header%%/*}]+known} ]] || check_module runtime "$header" "$where" ;;
      esac
      ;;
    bindings/*)
      case "$header" in
        gar/measure/*) complain "$where: a binding must not use $header" ;;
        gar/*.hpp | pybind11/*) ;;
        */*) complain "$where: a binding uses the public headers only, not $header" ;;
      esac
      ;;
    include/gar/gar.hpp) ;; # all of them
    include/gar/*)
      name=${file#include/gar/} name=${name%.h*}
      module=${home[$name]:-}
      case "$name" in
        gar | gar_mpi | gar_cuda | gar_tcp) module=runtime ;;
        measure/*) module=measure ;;
      esac
      [[ -n $module ]] || { complain "$file: tests/unit/include_check.sh does not know whose header it is"; continue; }
      case "$header" in
        gar/*) check_module "$module" "$header" "$where" ;;
        mpi.h) ;;
        */*) complain "$where: a public header must not use $header" ;;
      esac
      ;;
    examples/*)
      case "$header" in
        gar/*.hpp | gar/*.h | sys/*) ;;
        */*) complain "$where: an example uses the public headers only, not $header" ;;
      esac
      ;;
  esac
done < <(grep -rnE '^ *# *include *["<]' src apps bindings include examples --include='*.cpp' --include='*.hpp' --include='*.h' \
  --include='*.c' --include='*.cu' --include='*.cuh' | sed -E 's/^([^:]+:[0-9]+:) *# *include *["<]([^">]+)[">].*/\1\2/')

for directory in src/*/; do
  module=$(basename "$directory")
  [[ -n ${uses[$module]+known} ]] || complain "src/$module has no arrows; add them to tests/unit/include_check.sh"
done
((status)) || echo "include_check: every include follows the arrows"
exit $status
