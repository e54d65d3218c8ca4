#!/usr/bin/env bash
# Runs what draws its cases at random, round after round with new seeds, for hours, until a test fails:
#   soak.sh [--hours H] [--rounds N] [--seed S] [--only REGEX] [--build DIR]
# A round is every test of DIR (build/release) with the label runtime (random sequences and matrices of collectives, ranks that are
# killed, that hang or never come), fuzz (mutated files for every reader) or mpi (the same with both MPI libraries), one after the
# other, with GAR_TEST_SEED=S, then S + 1, ... The first seed is random unless it is given. It ends after H hours (1; fractions are
# fine), after N rounds when that is sooner, or at the first failure, and then prints the command that repeats it. --only takes the
# tests whose names match. The output of a failure is kept in DIR/soak. Ends with 0 when nothing has failed, 1 when something
# has, 2 when it was not started as above.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "soak.sh: $1" >&2
  echo "usage: scripts/soak.sh [--hours H] [--rounds N] [--seed S] [--only REGEX] [--build DIR]" >&2
  exit 2
}

hours=1 rounds=1000000000 seed= only=. build=build/release
while (($#)); do
  case $1 in
    --hours | --rounds | --seed | --only | --build)
      (($# >= 2)) || usage "$1 needs a value"
      ;;&
    --hours)
      [[ $2 =~ ^[0-9]{1,4}(\.[0-9]{1,6})?$ ]] || usage "--hours '$2': expected a number of hours, such as 8 or 0.5"
      hours=$2
      ;;
    --rounds)
      [[ $2 =~ ^[1-9][0-9]{0,8}$ ]] || usage "--rounds '$2': expected a whole number from 1 to 999999999"
      rounds=$2
      ;;
    --seed)
      [[ $2 =~ ^[0-9]{1,18}$ ]] || usage "--seed '$2': expected a whole number of at most 18 digits"
      seed=$((10#$2))
      ;;
    --only) only=$2 ;;
    --build) build=$2 ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
      exit 0
      ;;
    *) usage "unknown argument '$1'" ;;
  esac
  shift 2
done
[[ -e $build/CTestTestfile.cmake ]] || usage "--build $build: there are no tests in it; 'make build' makes build/release"
mapfile -t tests < <(ctest --test-dir "$build" -N -L '^(runtime|fuzz|mpi)$' | sed -n 's/^ *Test *#[0-9]*: //p' | grep -E -- "$only" || true)
((${#tests[@]})) || usage "--only '$only': no test has such a name; ctest --test-dir $build -N lists them"
seconds=$(awk -v hours="$hours" 'BEGIN { printf "%d", hours * 3600 }')
[[ -n $seed ]] || seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')

first_seed=$seed round=0 passed=0 skipped=0 begin=$SECONDS
totals() {
  echo "soak: $passed tests passed, $skipped skipped, in $round rounds with the seeds $first_seed to $seed, $((SECONDS - begin)) s"
}
trap 'totals; exit 130' INT
trap 'totals; exit 143' TERM

log=$build/soak
mkdir -p "$log"
# run NAME
run() {
  local file=$log/run.txt
  if ! GAR_TEST_SEED=$seed ctest --test-dir "$build" -R "^$1\$" --output-on-failure --no-tests=error >"$file" 2>&1 </dev/null; then
    mv "$file" "$log/failed.txt"
    tail -n 40 "$log/failed.txt"
    echo "soak: $1 failed with seed $seed; all of its output: $log/failed.txt"
    echo "soak: to repeat it: GAR_TEST_SEED=$seed ctest --test-dir $build -R '^$1\$' --output-on-failure"
    totals
    exit 1
  fi
  if grep -qE '\*\*\*Skipped' "$file"; then skipped=$((skipped + 1)); else passed=$((passed + 1)); fi
}
echo "soak: ${#tests[@]} tests in a round, for $hours hours, first seed $first_seed"
for ((; round < rounds && SECONDS - begin < seconds; seed++)); do
  start=$SECONDS
  round=$((round + 1))
  for test in "${tests[@]}"; do
    ((SECONDS - begin < seconds)) || break
    run "$test"
  done
  echo "round $round, seed $seed: $passed passed so far, $((SECONDS - start)) s"
done
seed=$((seed - 1))
totals
