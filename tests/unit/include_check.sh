#!/usr/bin/env bash
# The arrows between the modules, checked on the #include lines: include_check.sh SOURCE_DIR
# topology <- plan <- model <- planner, sim, fit <- explain; topology, plan, model, fit <- io; everything <- apps, tests,
# bench.
set -euo pipefail
cd "$1"
status=0
complain() {
  echo "include_check: $1"
  status=1
}

# What each module may use beside the standard library, {fmt} and its own private headers.
declare -A public=(
  [topology]="errors topology"
  [plan]="errors topology plan algorithms verify"
  [model]="errors topology plan algorithms verify model"
  [planner]="errors topology plan algorithms verify model planner predict basic_plan"
  [sim]="errors topology plan model simulate"
  [fit]="errors topology plan algorithms verify model profile fit"
  [explain]="errors topology plan algorithms verify model planner predict simulate profile fit explain"
  [io]="errors topology plan algorithms verify model profile fit io"
  [runtime]="errors topology plan algorithms verify model planner predict io reduction communicator mpi cuda nccl"
)
declare -A modules=(
  [topology]="topology" [plan]="topology plan" [model]="topology plan model"
  [planner]="topology plan model planner" [sim]="topology plan model sim" [fit]="topology plan model fit" [explain]="explain"
  [io]="topology plan model io"
  [runtime]="runtime"
)
has_word() { [[ " $1 " == *" $2 "* ]]; }

while IFS=: read -r file line text; do
  header=$(sed -E 's/^ *# *include *["<]([^">]+)[">].*/\1/' <<<"$text")
  case "$file" in
    src/*)
      module=${file#src/} module=${module%%/*}
      case "$header" in
        gar/*.hpp)
          name=${header#gar/} name=${name%.hpp}
          has_word "${public[$module]:-}" "$name" || complain "$file:$line: $module must not use $header"
          ;;
        nlohmann/*) [[ $module == io ]] || complain "$file:$line: the JSON library belongs to src/io" ;;
        Eigen/*) [[ $module == fit ]] || complain "$file:$line: the numeric library belongs to src/fit" ;;
        apps/* | tests/* | bench/* | CLI/*) complain "$file:$line: the library must not use $header" ;;
        mpi.h) [[ $file == src/runtime/mpi/* ]] || complain "$file:$line: $header belongs to src/runtime/mpi" ;;
        cuda* | vector_types.h) [[ $file == src/runtime/cuda/* || $file == src/runtime/nccl/* ]] || complain "$file:$line: $header belongs to src/runtime/cuda" ;;
        nccl.h) [[ $file == src/runtime/nccl/* ]] || complain "$file:$line: $header belongs to src/runtime/nccl" ;;
        hwy/*) [[ $file == src/runtime/kernels/* ]] || complain "$file:$line: $header belongs to the kernels" ;;
        format | ranges | source_location) complain "$file:$line: <$header> is not for the core" ;;
        */*.hpp)
          other=${header%%/*}
          if [[ -d src/$other ]] && ! has_word "${modules[$module]:-}" "$other"; then
            complain "$file:$line: $module must not use $header"
          fi
          ;;
      esac
      ;;
    include/gar/*)
      case "$header" in
        gar/*) ;;
        mpi.h) [[ $file == include/gar/*mpi.h* ]] || complain "$file:$line: a public header must not use $header" ;;
        */* | cuda* | nccl*) complain "$file:$line: a public header must not use $header" ;;
      esac
      ;;
    examples/*)
      case "$header" in
        gar/*.hpp | gar/*.h | sys/*) ;;
        */*) complain "$file:$line: an example uses the public headers only, not $header" ;;
      esac
      ;;
  esac
done < <(grep -rnE '^ *# *include' src include examples --include='*.cpp' --include='*.hpp' --include='*.h' --include='*.c')

# A public header compiles on its own, in the order of the arrows; and every module is known here.
for directory in src/*/; do
  module=$(basename "$directory")
  [[ -n ${public[$module]:-} ]] || complain "src/$module has no arrows; add them to tests/unit/include_check.sh"
done
exit $status
