#!/usr/bin/env bash
# What the preload library says when it is asked, and that its check finds a wrong result: report_test.sh GAR SOURCE_DIR BUILD_DIR
set -euo pipefail
# shellcheck source=tests/preload/scripts.sh
source "$(dirname "$0")/scripts.sh"

for flavour in "${flavours[@]}"; do
  life=$(program "$flavour" life) mpirun=(mpirun."$flavour" -n 3)

  # A bit of our result is flipped: the check says where, the program still gets what the MPI library says, the job fails.
  GAR_TEST_CORRUPT=1 runs error "$gar" mpirun --check -- "${mpirun[@]}" "$life" single
  results_are_right
  grep -Eq '^gar: GAR_CHECK: MPI_Allreduce of 20000 float64, sum, 3 ranks, rank 0 of the job: 1 elements? differs?; the first is 0: [-0-9.e+]+, but (Open MPI|MPICH) [0-9.]+ says 6$' err ||
    fail "$flavour: the difference is not described"
  grep -q '^gar: GAR_CHECK: 3 calls compared on 3 ranks, 1 difference' err || fail "$flavour: no summary"
  # Also in a request, in the middle of others.
  GAR_TEST_CORRUPT=20 runs error "$gar" mpirun --check --min-bytes 0 -- "${mpirun[@]}" "$(program "$flavour" nonblocking)"
  results_are_right
  [[ $(grep -c '^gar: GAR_CHECK: MPI_Iallreduce of ' err) == 1 ]] || fail "$flavour: not one difference in MPI_Iallreduce"
  # Without the check the program sees the flipped bit: the aid does what it says.
  GAR_TEST_CORRUPT=1 runs error "$gar" mpirun -- "${mpirun[@]}" "$life" single
  grep -q 'FAILED on rank 0 of 3: single: element 0 is wrong' err || fail "$flavour: nothing was spoiled"

  # Switched off, nothing is taken over or said.
  GAR_DISABLE=1 GAR_TEST_CORRUPT=1 runs 0 "$gar" mpirun --check --debug -- "${mpirun[@]}" "$life" single
  results_are_right
  ! grep -q '^gar: ' err || fail "$flavour: GAR_DISABLE=1 does not switch off"

  # The table: one, of rank 0, with what was taken over and what was not, and why.
  runs 0 "$gar" mpirun --debug --min-bytes 0 -- "${mpirun[@]}" "$(program "$flavour" fallbacks)"
  results_are_right
  [[ $(grep -c '^gar: rank 0 of 3: [0-9]* calls taken over' err) == 1 ]] || fail "$flavour: not one table"
  grep -Eq '^gar: MPI_Allreduce .* 3 .* over shm' err || fail "$flavour: no row for MPI_Allreduce"
  grep -Eq '^gar: MPI_Allgather ' err || fail "$flavour: no row for MPI_Allgather"
  for function in MPI_Allreduce MPI_Iallreduce MPI_Reduce_scatter_block; do
    grep -Eq "^gar: left to .*: [0-9]+ x $function, .*operator" err || fail "$flavour: no reason for $function"
  done
  grep -Eq '^gar: left to .*(between|inter)' err || fail "$flavour: intercommunicators are not named"
  # Nothing is long enough.
  runs 0 "$gar" mpirun --debug --min-bytes 1GB -- "${mpirun[@]}" "$life" single
  grep -q '^gar: rank 0 of 3: 0 calls taken over' err || fail "$flavour: --min-bytes 1GB leaves something to take over"
  grep -Eq '^gar: left to .*: 1 x MPI_Allreduce' err || fail "$flavour: the call that was too short is not named"

  # A network, one server per rank, and one per host: both are used.
  runs 0 "$gar" mpirun --check --debug -t star:3 --algo ring -- "${mpirun[@]}" "$life" single
  results_are_right
  grep -Eq '^gar: MPI_Allreduce .* ring over ' err || fail "$flavour: --algo ring is not used"
  GAR_FAKE_HOSTS=2 runs 0 "$gar" mpirun --check --debug -t star:2 -- mpirun."$flavour" -n 4 "$life" single
  results_are_right
  grep -Eq '^gar: GAR_CHECK: 4 calls compared on 4 ranks, 0 differences' err || fail "$flavour: one server per host is refused"
  # The program's own exit code.
  runs 5 "$gar" mpirun -- mpirun."$flavour" -n 1 sh -c 'exit 5'
done
