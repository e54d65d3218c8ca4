#!/usr/bin/env bash
# What `make test` does: test.sh [JOBS]
# Builds and runs the tests of whole programs and the property tests (build/release), then those of parts, programs and the runtime
# under the address and undefined behaviour sanitizers (build/asan), then those of threads under the thread sanitizer (build/tsan).
# Tests wait a good part of the time, for processes that start or that are meant to hang: the next build goes on beside them, with
# the processor time that they leave. At the end it says how long everything took. Ends with 0 when all tests have passed.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}

beside= # the build that goes on beside tests: its process group
stop_beside() {
  [[ -z $beside ]] || kill -- "-$beside" 2>/dev/null || true
}
trap stop_beside EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# took WORDS: remembers how long it took since the last call.
begin=$SECONDS since=$SECONDS times=
took() {
  times+="${times:+, }$1 $((SECONDS - since)) s"
  since=$SECONDS
}

# build PRESET [CMAKE_ARGUMENTS...]
build() {
  cmake --preset "$1" | { grep -E '^-- (CUDA|MPI):' || true; }
  cmake --build --preset "$1" -j "$jobs" "${@:2}"
}
# build_beside PRESET [CMAKE_ARGUMENTS...]: in the background, with processor time that nobody else wants
build_beside() {
  mkdir -p build
  set -m
  (
    chrt --idle --pid 0 "$BASHPID" 2>/dev/null || renice -n 19 -p "$BASHPID" >/dev/null || true
    build "$@"
  ) >"build/$1.log" 2>&1 </dev/null &
  beside=$!
  set +m
}
# await PRESET: waits for that build.
await() {
  local code=0
  wait "$beside" || code=$?
  beside=
  if ((code)); then
    cat "build/$1.log"
    exit 1
  fi
}
# run_tests PRESET [CTEST_ARGUMENTS...]: they count half cores (tests/CMakeLists.txt).
run_tests() { ctest --preset "$1" -j $((2 * jobs)) "${@:2}"; }

# The release build has the tests of whole programs, and the property tests, which compute for minutes with sanitizers (make
# test-full does that); those of single parts (unit, fuzz) are compiled once, with the sanitizers.
build release
took "release build"
build_beside asan
run_tests release
took "its tests"

# Tests that need a GPU pass where there is none, without having done anything: say so.
gpu_test=build/release/tests/cuda/cuda_ipc_test
if [[ ! -x $gpu_test ]]; then
  echo "GPU tests: not built (no nvcc)"
elif why=$("$gpu_test" --gtest_brief=1 --gtest_filter=CudaIpc.OneRank | grep -m1 'needs a GPU'); then
  echo "GPU tests: skipped: $why"
fi

# What gar reproduce and the documents print takes long with sanitizers and shows nothing new.
await asan
took "rest of the address and undefined behaviour build"
build_beside tsan --target thread_tests
GAR_TEST_SMALL=1 run_tests asan -L '^(unit|fuzz|golden|runtime)$' -E '^golden_(docs_test|reproduce)$'
took "its tests"

# What several processes share is invisible to the thread sanitizer; threads share the same code.
await tsan
took "rest of the thread build"
GAR_TEST_SMALL=1 GTEST_FILTER='-*shm*' run_tests tsan -L '^threads$'
took "its tests"

seconds=$((SECONDS - begin))
echo "make test: all passed, in $((seconds / 60)) min $((seconds % 60)) s: $times"
