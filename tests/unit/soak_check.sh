#!/usr/bin/env bash
# scripts/soak.sh on tests that only look at their seed: soak_check.sh SOURCE_DIR
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset GAR_TEST_SEED
mkdir "$work/build"
cat >"$work/build/CTestTestfile.cmake" <<'TESTS'
add_test(draws sh -c "echo drew $GAR_TEST_SEED; test $GAR_TEST_SEED -ne 7")
add_test(skips sh -c "exit 77")
add_test(replays true)
add_test(other false)
set_tests_properties(draws PROPERTIES LABELS runtime)
set_tests_properties(skips PROPERTIES LABELS mpi SKIP_RETURN_CODE 77)
set_tests_properties(replays PROPERTIES LABELS fuzz)
set_tests_properties(other PROPERTIES LABELS unit)
TESTS

# expect CODE TEXT... -- ARGUMENTS...: how it ends, and what it says.
expect() {
  local code=$1 actual=0 texts=() text
  shift
  while [[ $1 != -- ]]; do
    texts+=("$1")
    shift
  done
  shift
  "$source/scripts/soak.sh" "$@" >"$work/out" 2>&1 || actual=$?
  for text in "exit $code" "${texts[@]}"; do
    [[ $text == "exit $actual" ]] || grep -qF -- "$text" "$work/out" || {
      echo "soak.sh $*: exit $actual; expected: $text"
      cat "$work/out"
      exit 1
    }
  done
}
build=(--build "$work/build")
expect 0 "3 tests in a round" "first seed 3" "round 2, seed 4: 4 passed" \
  "soak: 4 tests passed, 2 skipped, in 2 rounds with the seeds 3 to 4" -- --seed 3 --rounds 2 "${build[@]}"
expect 0 "0 tests passed, 0 skipped, in 0 rounds" -- --hours 0 --seed 3 "${build[@]}"
expect 0 "1 tests in a round" -- --rounds 1 --only replays "${build[@]}"
# It stops at the first failure, and what it says repeats it.
expect 1 "drew 7" "draws failed with seed 7" "in 3 rounds with the seeds 5 to 7" -- --seed 5 "${build[@]}"
command=$(sed -n 's/^soak: to repeat it: //p' "$work/out")
for expected in 1 0; do
  actual=0
  bash -c "$command" >"$work/again" 2>&1 || actual=1
  [[ $actual == "$expected" ]] || {
    echo "$command: $actual, expected $expected"
    cat "$work/again"
    exit 1
  }
  command=${command/GAR_TEST_SEED=7/GAR_TEST_SEED=8}
done
expect 2 "--hours 'long': expected a number of hours" -- --hours long "${build[@]}"
expect 2 "--seed '-1': expected a whole number" -- --seed -1 "${build[@]}"
expect 2 "there are no tests in it" -- --build "$work"
expect 2 "no test has such a name" -- --only nosuch "${build[@]}"
expect 2 "unknown argument '--fast'" -- --fast
expect 2 "--hours needs a value" -- --hours
echo "soak.sh does what it says"
