#!/usr/bin/env bash
# Checks format and code: lint.sh; lint.sh --fix-format formats instead.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find apps bench bindings examples include src testbed tests web/core -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.c' -o -name '*.cu' -o -name '*.cuh' | sort)
if [[ ${1:-} == --fix-format ]]; then
  clang-format -i "${files[@]}"
  exit 0
fi
clang-format --dry-run -Werror "${files[@]}"
# The page, where its tools are installed.
if [[ -d web/node_modules ]] && command -v node >/dev/null; then
  (cd web && npx --no-install eslint . && node --test test/unit >/dev/null)
else
  echo "lint: web/ is not checked: no web/node_modules (make web installs it)" >&2
fi

# clang-tidy reads the compile commands of a build directory of its own, so that no build is needed. The files of a folder are
# checked together, as a release build compiles them: that takes a quarter of the time, and clang-tidy sees more of who calls whom.
build=build/lint
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DGAR_UNITY=ON \
  -DGAR_BUILD_TESTS=OFF -DGAR_BUILD_BENCH=OFF -DGAR_BUILD_EXAMPLES=OFF >/dev/null
mapfile -t units < <(sed -nE 's/^ *"file": "(.*\.(cpp|cxx))",?$/\1/p' "$build/compile_commands.json" |
  grep -vE '/cmake_pch\.|/(paper|topology)_text\.cpp$' | sort -u)
# What needs an MPI is checked where there is one.
checked=$(printf '%s\n' "${units[@]}" && sed -nE 's/^#include "(.*\.cpp)"$/\1/p' "${units[@]}")
for file in "${files[@]}"; do
  [[ $file =~ ^(src|apps)/.*\.cpp$ ]] || continue
  grep -qxF "$PWD/$file" <<<"$checked" || echo "lint: $file is not built here (no MPI?) and not checked" >&2
done
# Where files stand together they include each other, and declare what another one defines.
printf '%s\0' "${units[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet --warnings-as-errors='*' \
    --checks='-bugprone-suspicious-include,-readability-redundant-declaration' \
    --header-filter='(include/gar|src|apps)/.*\.(hpp|cpp)$' --extra-arg=-Wno-unknown-warning-option 2> >(
    grep -vE '^[0-9]+ warnings? generated|^Suppressed|^Use -header-filter' >&2
  )
echo "lint: ${#files[@]} files are clean"
