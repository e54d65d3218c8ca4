#!/usr/bin/env bash
# Checks format and code: lint.sh; lint.sh --fix-format formats instead.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find apps bench examples include src testbed tests -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.c' -o -name '*.cu' -o -name '*.cuh' | sort)
if [[ ${1:-} == --fix-format ]]; then
  clang-format -i "${files[@]}"
  exit 0
fi
clang-format --dry-run -Werror "${files[@]}"

# clang-tidy reads the compile commands of a build directory of its own, so that no build is needed.
build=build/lint
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DGAR_BUILD_TESTS=OFF -DGAR_BUILD_BENCH=OFF -DGAR_BUILD_EXAMPLES=OFF >/dev/null
# What needs an MPI is checked where there is one.
sources=()
for file in "${files[@]}"; do
  [[ $file =~ ^(src|apps)/.*\.cpp$ ]] || continue
  if grep -q "/$file\"" "$build/compile_commands.json"; then
    sources+=("$file")
  else
    echo "lint: $file is not built here (no MPI?) and not checked" >&2
  fi
done
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option 2> >(
    grep -vE '^[0-9]+ warnings? generated|^Suppressed|^Use -header-filter' >&2
  )
echo "lint: ${#files[@]} files are clean"
