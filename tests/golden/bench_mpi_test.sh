#!/usr/bin/env bash
# gar bench with MPI, for every one that is installed: bench_mpi_test.sh GAR SOURCE_DIR
set -euo pipefail
gar=$(realpath "$1")
programs=$(dirname "$gar")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export NO_COLOR=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo UCX_NET_DEVICES=lo
fail() {
  echo "bench_mpi_test: $*"
  exit 1
}
limited() { timeout -k 5 60 "$@"; }
tried=0
for mpi in openmpi mpich; do
  [[ -x $programs/gar-$mpi ]] && command -v mpirun.$mpi >/dev/null || continue
  tried=1
  # Started by gar itself: ours and the library's own in the same processes.
  limited "$gar" bench --local 3 --mpi $mpi --algo auto,native -b 64 -e 256KiB -f 64 -n 2 -w 1 -d float32,bfloat16 \
    >out.txt 2>err.txt || fail "$mpi: exit code $?: $(cat out.txt err.txt)"
  [[ $(grep -vc '^#' out.txt) == 9 ]] || fail "$mpi: not 9 lines: $(cat out.txt)"
  awk '!/^#/ && $9 != "0" { exit 1 }' out.txt || fail "$mpi: #wrong is not 0 everywhere: $(cat out.txt)"
  grep -q '^# native has no bfloat16$' out.txt || fail "$mpi: it is not said what native lacks"
  grep -q '^# auto is .* times as fast as native' out.txt || fail "$mpi: no ratio: $(cat out.txt)"
  # Started by mpirun.
  extra=()
  [[ $mpi == openmpi ]] && extra=(--oversubscribe)
  for collective in allreduce reduce-scatter allgather; do
    limited mpirun.$mpi "${extra[@]}" -n 3 "$gar" bench --collective $collective --algo gentree+,native -b 100KB -e 100KB \
      --transport mpi -n 1 -w 0 -d int16 -o max --in-place >out.txt 2>err.txt ||
      fail "$mpi $collective: exit code $?: $(cat out.txt err.txt)"
    [[ $(grep -vc '^#' out.txt) == 2 ]] || fail "$mpi $collective: not 2 lines: $(cat out.txt err.txt)"
  done
  # A wrong command line is complained about once.
  code=0
  limited mpirun.$mpi "${extra[@]}" -n 3 "$gar" bench --local 3 >out.txt 2>err.txt || code=$?
  [[ $code == 2 && $(grep -c '^gar: ' err.txt) == 1 ]] || fail "$mpi: exit code $code: $(cat err.txt)"
done
((tried)) || exit 77
