#!/bin/sh
# sanitize.sh BUILD_DIR: the kernels under compute-sanitizer, memcheck and racecheck. Exits 77 where that cannot be done.
set -u
build=${1:?usage: sanitize.sh BUILD_DIR}
test="$build/tests/cuda/cuda_kernels_test"

sanitizer=""
for place in compute-sanitizer /usr/local/cuda/bin/compute-sanitizer /usr/local/cuda/compute-sanitizer/compute-sanitizer; do
  if command -v "$place" >/dev/null 2>&1; then
    sanitizer=$place
    break
  fi
done
if [ -z "$sanitizer" ]; then
  echo "skipped: compute-sanitizer is not on the PATH or in /usr/local/cuda"
  exit 77
fi
if [ ! -x "$test" ]; then
  echo "there is no $test: build the target cuda_kernels_test" >&2
  exit 1
fi
if "$test" --gtest_filter=Kernels.NoJobsAreNothing | grep -q SKIPPED; then
  echo "skipped: no GPU that CUDA can use"
  exit 77
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
for tool in memcheck racecheck; do
  start=$(date +%s)
  options=""
  # The tests make calls that CUDA refuses, on purpose.
  [ "$tool" = memcheck ] && options="--report-api-errors no"
  # shellcheck disable=SC2086
  if GAR_TEST_SMALL=1 "$sanitizer" --tool "$tool" $options --error-exitcode 1 "$test" >"$log" 2>&1; then
    result="no errors"
  else
    result="FAILED"
    status=1
  fi
  echo "$tool: $result, $(grep -c '^\[       OK' "$log") tests in $(($(date +%s) - start)) s; $(grep 'SUMMARY' "$log" | tail -n 1)"
  [ "$result" = "no errors" ] || tail -n 40 "$log" >&2
done
exit $status
