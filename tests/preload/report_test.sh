#!/usr/bin/env bash
# What the preload library says when it is asked, and that its check finds a wrong result: report_test.sh GAR SOURCE_DIR BUILD_DIR
set -euo pipefail
# shellcheck source=tests/preload/scripts.sh
source "$(dirname "$0")/scripts.sh"

# hand_on FLAVOUR NAME=VALUE: how this mpirun is told about a variable
hand_on() { if [[ $1 == openmpi ]]; then echo "-x $2"; else echo "-genv ${2%%=*} ${2#*=}"; fi; }

for flavour in "${flavours[@]}"; do
  life=$(program "$flavour" life) mpirun=(mpirun."$flavour" -n 3)

  # MPI adds a wrong number: the check says where, on every rank, the program still gets what the MPI library says, the job fails.
  spoil="$build/tests/preload/preload_${flavour}_spoil.so"
  # shellcheck disable=SC2046
  LD_PRELOAD=$spoil runs error "$gar" mpirun --check -- "${mpirun[@]}" $(hand_on "$flavour" SPOIL_COUNT=20000) "$life" single
  grep -Eq '^gar: GAR_CHECK: MPI_Allreduce of 20000 float64, sum, 3 ranks, rank 0 of the job: 1 elements? differs?; the first is 0: 6, but (Open MPI|MPICH) [0-9.]+ says 5$' err ||
    fail "$flavour: the difference is not described"
  grep -q '^gar: GAR_CHECK: 3 calls compared on 3 ranks, 3 differences' err || fail "$flavour: no summary"
  grep -q 'FAILED on rank 0 of 3: single: element 0 is wrong' err || fail "$flavour: the program did not get what MPI says"
  # Also in a request, in the middle of others.
  # shellcheck disable=SC2046
  GAR_THREADS=1 LD_PRELOAD=$spoil runs error "$gar" mpirun --check --min-bytes 0 -- "${mpirun[@]}" $(hand_on "$flavour" SPOIL_COUNT=40000) \
    "$(program "$flavour" nonblocking)"
  [[ $(grep -c '^gar: GAR_CHECK: MPI_Iallreduce of 40000 ' err) == 3 ]] || fail "$flavour: not one difference on every rank"
  # What users install has no aid that spoils a result.
  if for_this "$flavour"; then
    GAR_TEST_CORRUPT=1 runs 0 "$gar" mpirun --check -- "${mpirun[@]}" "$life" single
    results_are_right
    grep -q '^gar: GAR_CHECK: .* 0 differences' err || fail "$flavour: no summary of the check"
    [[ $(grep -c '^gar: ' err) == 2 ]] || fail "$flavour: more than the summary of the check and the closing line"
  fi
  for library in "$libraries"/*.so; do
    ! grep -q 'GAR_TEST_' "$library" || fail "$library knows a variable GAR_TEST_*"
  done

  # Switched off, nothing is taken over or said.
  if for_this "$flavour"; then
    GAR_DISABLE=1 runs 0 "$gar" mpirun --debug -- "${mpirun[@]}" "$life" single
    results_are_right
    ! grep -q '^gar: ' err || fail "$flavour: GAR_DISABLE=1 does not switch off"
  fi

  # The table: one, of rank 0, with what was taken over and what was not, and why.
  GAR_THREADS=1 GAR_EXPLORE=0 runs 0 "$gar" mpirun --debug --min-bytes 0 -- "${mpirun[@]}" "$(program "$flavour" fallbacks)"
  results_are_right
  [[ $(grep -c '^gar: rank 0 of 3: [0-9]* calls taken over' err) == 1 ]] || fail "$flavour: not one table"
  grep -Eq '^gar: MPI_Allreduce .* 3 .* over shm' err || fail "$flavour: no row for MPI_Allreduce"
  grep -Eq '^gar: MPI_Allgather ' err || fail "$flavour: no row for MPI_Allgather"
  grep -q '^gar: expected: by parameters measured in MPI_Init, rough' err || fail "$flavour: it is not said what the expected times are by"
  for function in MPI_Allreduce MPI_Iallreduce MPI_Reduce_scatter_block; do
    grep -Eq "^gar: left to .*: [0-9]+ x $function, .*operator" err || fail "$flavour: no reason for $function"
  done
  grep -Eq '^gar: left to .*(between|inter)' err || fail "$flavour: intercommunicators are not named"
  # Minima and maxima of floating-point numbers are the MPI library's, at every length, and the table says so.
  runs 0 "$gar" mpirun --debug --min-bytes 0 -- "${mpirun[@]}" "$(program "$flavour" lengths)" lines
  grep -Eq '^gar: MPI_Allreduce: the min of MPI_FLOAT: .* makes .* of .*nan.*, where gar makes nan; all such calls are left' err ||
    fail "$flavour: a minimum of NaN is not reported"
  grep -Eq '^gar: left to .*: [0-9]+ x MPI_Allreduce, .*in a way of its own' err || fail "$flavour: no reason for deviations"
  # A communicator that is not used, or hardly, is not set up; one that is used is.
  for arguments in 40 "20 1000" "3 1000 15"; do
    for_this "$flavour" || continue
    # shellcheck disable=SC2086
    runs 0 "$gar" mpirun --debug -- mpirun."$flavour" -n 2 "$(program "$flavour" splits)" $arguments
    results_are_right
    grep -q '^gar: 1 communicators set up' err || fail "$flavour: splits $arguments: communicators are set up"
  done
  for arguments in "2 1000 16" "2 600000"; do
    for_this "$flavour" || continue
    # shellcheck disable=SC2086
    runs 0 "$gar" mpirun --debug -- mpirun."$flavour" -n 2 "$(program "$flavour" splits)" $arguments
    results_are_right
    grep -q '^gar: 3 communicators set up' err || fail "$flavour: splits $arguments: communicators are not set up"
  done
  # A program that ends soon runs on the MPI library's own, and nothing is measured.
  GAR_DECISIONS="$PWD/decisions" runs 0 "$gar" mpirun --debug -- mpirun."$flavour" -n 2 "$(program "$flavour" splits)" 1 1000 200
  results_are_right
  grep -Eq '^gar: MPI_Allreduce .* native over mpi$' err || fail "$flavour: the MPI library's own does not lead at first"
  ! grep -q '^gar: measured' err || fail "$flavour: a short program is measured"
  # What was measured: a line for each size class, with what was tried.
  GAR_EXPLORE=1 GAR_DECISIONS="$PWD/decisions" runs 0 "$gar" mpirun --debug -- mpirun."$flavour" -n 2 \
    "$(program "$flavour" splits)" 1 1000 200
  results_are_right
  grep -Eq '^gar: measured: .* 2 ranks: .* (wins|leads).*the model.s choice.*native .*looking has cost [0-9.]+% of the time in [0-9]+ calls$' err ||
    fail "$flavour: it is not said what was measured"
  # Nothing is long enough.
  if for_this "$flavour"; then
    runs 0 "$gar" mpirun --debug --min-bytes 1GB -- "${mpirun[@]}" "$life" single
    grep -q '^gar: rank 0 of 3: 0 calls taken over' err || fail "$flavour: --min-bytes 1GB leaves something to take over"
    grep -Eq '^gar: left to .*: 1 x MPI_Allreduce' err || fail "$flavour: the call that was too short is not named"
  fi

  # A network, one server per rank, and one per host: both are used.
  if for_this "$flavour"; then
    runs 0 "$gar" mpirun --check --debug -t star:3 --algo ring -- "${mpirun[@]}" "$life" single
    results_are_right
    grep -Eq '^gar: MPI_Allreduce .* ring over ' err || fail "$flavour: --algo ring is not used"
  fi
  if for_this "$flavour"; then
    GAR_FAKE_HOSTS=2 runs 0 "$gar" mpirun --check --debug -t star:2 -- mpirun."$flavour" -n 4 "$life" single
    results_are_right
    grep -Eq '^gar: GAR_CHECK: 4 calls compared on 4 ranks, 0 differences' err || fail "$flavour: one server per host is refused"
  fi
  # A line at the end, always; by hand there is none.
  runs 0 "$gar" mpirun "${mpirun[@]}" "$life" single
  results_are_right
  says '[1-9][0-9]* of [0-9]+ calls taken over, [0-9.]+ [mu]?s on rank 0 \(more: gar mpirun --debug or --compare\)$'
  runs 0 "$gar" mpirun --min-bytes 1GB "${mpirun[@]}" "$life" single
  says 'warning: no call was taken over; [0-9]+ (was|were) left to (Open MPI|MPICH) [0-9.]+ \(why: gar mpirun --debug\)$'
  runs 0 "$gar" mpirun mpirun."$flavour" -n 1 "$life" single
  says 'warning: one rank alone'
  # Nothing is reached.
  runs 0 "$gar" mpirun mpirun."$flavour" -n 2 true
  says 'warning: no rank on this host was reached'
  # Where nothing was compared, a check is none.
  runs 1 "$gar" mpirun --check mpirun."$flavour" -n 2 true
  says 'warning: no rank on this host was reached.* so nothing was compared'
  nothing="^gar: warning: nothing was compared with (Open MPI|MPICH)'s own"
  runs 1 "$gar" mpirun --check --min-bytes 1GB "${mpirun[@]}" "$life" single
  results_are_right
  grep -q '^gar: warning: GAR_CHECK: nothing was compared on 3 ranks$' err || fail "$flavour: the library does not say that it has compared nothing"
  grep -Eq "$nothing, so the exit code is 1; " err || fail "$flavour: a check of nothing passes in silence"
  runs 0 "$gar" mpirun --compare --min-bytes 1GB "${mpirun[@]}" "$life" single
  grep -Eq "$nothing; " err || fail "$flavour: a comparison of nothing passes in silence"
  if for_this "$flavour"; then
    runs 1 "$gar" mpirun --check mpirun."$flavour" -n 1 "$life" single
    grep -Eq "$nothing" err || fail "$flavour: a check of one rank passes"
    runs 1 "$gar" mpirun --check -t star:7 "${mpirun[@]}" "$life" single
    results_are_right
    grep -Eq "$nothing" err || fail "$flavour: a check of a program that runs on its own library passes"
  fi
  # Every call here and in the MPI library, in turns: the program gets the library's results, both times are printed.
  runs 0 "$gar" mpirun --compare mpirun."$flavour" -n 2 "$(program "$flavour" splits)" 1 1000 20
  results_are_right
  grep -Eq '^gar: MPI_Allreduce +2 +< 8 KiB +[1-9][0-9]* +[0-9.]+ [mu]?s +[0-9.]+ [mu]?s +[0-9.]+x$' err ||
    fail "$flavour: no times of both"
  grep -Eq '^gar: all [1-9][0-9]* calls: [0-9.]+ [mu]?s here, [0-9.]+ [mu]?s with (Open MPI|MPICH) [0-9.]+: [0-9.]+ times as fast$' err ||
    fail "$flavour: no sum of both"
  grep -Eq '^gar: GAR_CHECK: [1-9][0-9]* calls compared on 2 ranks, 0 differences$' err || fail "$flavour: no check"
  # It finds what is wrong.
  # shellcheck disable=SC2046
  LD_PRELOAD=$spoil runs error "$gar" mpirun --compare "${mpirun[@]}" $(hand_on "$flavour" SPOIL_BLOCKING_COUNT=20000) "$life" single
  grep -q '^gar: GAR_CHECK: 3 calls compared on 3 ranks, 3 differences' err || fail "$flavour: --compare finds no difference"
  grep -q 'FAILED on rank 0 of 3: single: element 0 is wrong' err || fail "$flavour: the program did not get what MPI says"
  # In front of the program, inside of the job.
  runs 0 "${mpirun[@]}" "$gar" mpirun --check --min-bytes 0 -- "$life" single
  results_are_right
  grep -Eq '^gar: GAR_CHECK: 3 calls compared on 3 ranks, 0 differences' err || fail "$flavour: nothing is taken over inside of a job"
  grep -Eq '^gar: [1-9][0-9]* of [0-9]+ calls taken over' err || fail "$flavour: no closing line inside of a job"
  # The program's own exit code.
  runs 5 "$gar" mpirun -- mpirun."$flavour" -n 1 sh -c 'exit 5'
done
