#!/usr/bin/env bash
# Runs every fuzzer of a clang build for some seconds each, as many at a time as there are cores:
# fuzz.sh BUILD_DIR SECONDS. What a fuzzer finds is left in BUILD_DIR/found.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
seconds=$2

run_one() {
  local fuzzer=$1 name=${1##*/fuzz_}
  mkdir -p "$build/corpus/$name" "$build/found"
  echo "fuzz: $name for $seconds s"
  if ! "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$build/found/$name-" "$build/corpus/$name" "$root/tests/fuzz/corpus/$name" \
    >"$build/fuzz_$name.log" 2>&1; then
    tail -n 40 "$build/fuzz_$name.log"
    echo "fuzz: $name found something; the input is in $build/found"
    return 1
  fi
  grep -E 'stat::number_of_executed_units|stat::new_units_added' "$build/fuzz_$name.log" | sed "s/^/fuzz: $name /"
  echo "fuzz: $name found nothing"
}
export -f run_one
export build root seconds
find "$build/tests" -maxdepth 1 -type f -name 'fuzz_*' -executable -print0 | sort -z |
  xargs -0 -n 1 -P "$(nproc)" bash -c 'run_one "$1" || exit 255' _
