#!/usr/bin/env bash
# What `make test` does: test.sh [JOBS]
# Builds and runs the tests of whole programs and the property tests (build/release), then those of parts, programs and the runtime
# under the address and undefined behaviour sanitizers (build/asan), then those of threads under the thread sanitizer (build/tsan).
# Nothing is built beside tests, not even with idle processor time: ranks that wait for each other give their core away when they
# yield, and take several times as long. At the end it says how long everything took. Ends with 0 when all tests have passed.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}

# took WORDS: remembers how long it took since the last call.
begin=$SECONDS since=$SECONDS times=
took() {
  times+="${times:+, }$1 $((SECONDS - since)) s"
  since=$SECONDS
}

# build PRESET [CMAKE_ARGUMENTS...]
build() {
  cmake --preset "$1" | { grep -E '^-- (CUDA|MPI|Python):' || true; }
  cmake --build --preset "$1" -j "$jobs" "${@:2}"
}
# run_tests PRESET [CTEST_ARGUMENTS...]: they count quarters of cores (tests/CMakeLists.txt).
run_tests() { ctest --preset "$1" -j $((4 * jobs)) "${@:2}"; }

# The release build has the tests of whole programs, and the property tests, which compute for minutes with sanitizers (make
# test-full does that); those of single parts (unit, fuzz) are compiled once, with the sanitizers.
build release
took "release build"
run_tests release
took "its tests"

# Tests that need a GPU pass where there is none, without having done anything: say so.
gpu_test=build/release/tests/cuda/cuda_ipc_test
if [[ ! -x $gpu_test ]]; then
  echo "GPU tests: not built (no nvcc)"
elif why=$("$gpu_test" --gtest_brief=1 --gtest_filter=CudaIpc.OneRank | grep -m1 'needs a GPU'); then
  echo "GPU tests: skipped: $why"
fi

if [[ -x build/release/bin/gar ]] && ! /usr/bin/python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' 2>/dev/null; then
  echo "PyTorch tests: left out (no torch for /usr/bin/python3; Debian: scripts/setup.sh torch)"
fi

# What gar reproduce and the documents print, and how wide lines are, takes long with sanitizers and shows nothing new.
build asan
took "address and undefined behaviour build"
GAR_TEST_SMALL=1 run_tests asan -L '^(unit|fuzz|golden|runtime)$' -E '^golden_(docs_test|reproduce|width_test|width_runs_test)$'
took "its tests"

# What several processes share is invisible to the thread sanitizer; threads share the same code.
build tsan --target thread_tests
took "thread build"
GAR_TEST_SMALL=1 GTEST_FILTER='-*shm*' run_tests tsan -L '^threads$'
took "its tests"

seconds=$((SECONDS - begin))
echo "make test: all passed, in $((seconds / 60)) min $((seconds % 60)) s: $times"
