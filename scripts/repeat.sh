#!/usr/bin/env bash
# Runs the tests of a build again and again, on an idle and on a busy machine, until one fails:
#   repeat.sh [--idle N] [--busy M] [--build DIR] [-- CTEST_ARGUMENTS...]
# N runs (5) with nothing else, then M runs (5) next to two processes that do nothing but compute. DIR is a build directory
# with everything built (build/release). What is behind -- goes to ctest, such as -L unit or -R golden. The output of the
# run that fails is kept in DIR/repeat. Ends with 0 when all runs have passed, 1 when one has failed, 2 when it was not
# started as above.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "repeat.sh: $1" >&2
  echo "usage: scripts/repeat.sh [--idle N] [--busy M] [--build DIR] [-- CTEST_ARGUMENTS...]" >&2
  exit 2
}
# number FLAG TEXT: prints TEXT when it is a number of runs.
number() {
  [[ $2 =~ ^[0-9]{1,6}$ ]] || usage "$1 '$2': expected a whole number from 0 to 999999"
  echo "$((10#$2))"
}

idle=5 busy=5 build=build/release arguments=()
while (($#)); do
  case $1 in
    --idle | --busy | --build)
      (($# >= 2)) || usage "$1 needs a value"
      case $1 in
        --idle) idle=$(number "$1" "$2") ;;
        --busy) busy=$(number "$1" "$2") ;;
        --build) build=$2 ;;
      esac
      shift 2
      ;;
    --)
      shift
      arguments=("$@")
      break
      ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
      exit 0
      ;;
    *) usage "unknown argument '$1'" ;;
  esac
done
((idle + busy > 0)) || usage "--idle 0 --busy 0: expected at least one run"
[[ -d $build ]] || usage "--build $build: there is no such directory; 'make build' makes build/release"
[[ -e $build/CTestTestfile.cmake ]] || usage "--build $build: there are no tests in it"

hogs=()
stop_hogs() {
  local pid
  for pid in "${hogs[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  hogs=()
}
start_hogs() {
  local i
  for i in 1 2; do
    # It also ends when this script is killed and nothing can end it any more.
    bash -c 'while kill -0 "$1" 2>/dev/null; do for ((i = 0; i < 100000; i++)); do :; done; done' _ $$ &
    hogs+=($!)
  done
}
trap stop_hogs EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# count WORD FILE: how many tests ended like that.
count() { grep -cE "^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*$1" "$2" || true; }

log=$build/repeat
mkdir -p "$log"
jobs=$((4 * $(nproc))) # tests count quarters of cores (tests/CMakeLists.txt)
passed_runs=0 begin=$SECONDS
# run NUMBER idle|busy
run() {
  local file=$log/run.txt code=0 start=$SECONDS failed
  ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error "${arguments[@]}" >"$file" 2>&1 </dev/null ||
    code=$?
  failed=$(count '\*\*\*(Failed|Timeout|Exception|Not Run)' "$file")
  printf 'run %d, %s: %d passed, %d failed, %d skipped, %d s\n' "$1" "$2" "$(count ' Passed ' "$file")" "$failed" \
    "$(count '\*\*\*Skipped' "$file")" $((SECONDS - start))
  if ((code)); then
    mv "$file" "$log/failed-run-$1.txt"
    grep -E '\*\*\*(Failed|Timeout|Exception|Not Run)' "$log/failed-run-$1.txt" || tail -n 5 "$log/failed-run-$1.txt"
    echo "repeat: run $1 ($2) failed after $passed_runs that passed; its output: $log/failed-run-$1.txt"
    exit 1
  fi
  passed_runs=$((passed_runs + 1))
}
for ((i = 1; i <= idle; i++)); do run "$i" idle; done
((busy == 0)) || start_hogs
for ((i = idle + 1; i <= idle + busy; i++)); do run "$i" busy; done
echo "repeat: $passed_runs runs passed, $idle idle and $busy busy, in $((SECONDS - begin)) s"
