#!/usr/bin/env bash
# gar bench with MPI, for every one that is installed: bench_mpi_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
gar=$(realpath "$1")
cd "$work"
use_mpi
mapfile -t mpis < <(installed_mpis "$gar")
((${#mpis[@]})) || skip "no MPI"
for mpi in "${mpis[@]}"; do
  # Started by gar itself: ours and the library's own in the same processes.
  limited "$gar" bench --local 3 --mpi "$mpi" --algo auto,native -b 64 -e 256KiB -f 64 -n 2 -w 1 -d float32,bfloat16 \
    >out.txt 2>err.txt || fail "$mpi: exit code $?: $(cat out.txt err.txt)"
  [[ $(grep -vc '^#' out.txt) == 9 ]] || fail "$mpi: not 9 lines: $(cat out.txt)"
  awk '!/^#/ && $9 != "0" { exit 1 }' out.txt || fail "$mpi: #wrong is not 0 everywhere: $(cat out.txt)"
  grep -q '^# native has no bfloat16$' out.txt || fail "$mpi: it is not said what native lacks"
  grep -q '^# auto is .* times as fast as native' out.txt || fail "$mpi: no ratio: $(cat out.txt)"
  # Started by mpirun.
  for collective in allreduce reduce-scatter allgather; do
    limited "mpirun.$mpi" -n 3 "$gar" bench --collective $collective --algo gentree+,native -b 100KB -e 100KB \
      --transport mpi -n 1 -w 0 -d int16 -o max --in-place >out.txt 2>err.txt ||
      fail "$mpi $collective: exit code $?: $(cat out.txt err.txt)"
    [[ $(grep -vc '^#' out.txt) == 2 ]] || fail "$mpi $collective: not 2 lines: $(cat out.txt err.txt)"
  done
  complains_once "$mpi" 3 "$gar" bench --local 3
done
