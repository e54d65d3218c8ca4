#!/usr/bin/env bash
# A plain MPI program with the preload library:
#   run.sh openmpi|mpich MPIRUN LIBRARY plain|check|hosts|explore|same RANKS PROGRAM [ARGUMENTS]
# plain: as users run it; the library says nothing. check: every call that it can take over is compared with the MPI
# library's, as many as the program says that there are. hosts: check, on two pretended hosts. explore: check,
# while calls are made in several ways in turns. same: the program writes
# the same into a file with and without the library.
set -euo pipefail
ulimit -c 0 # some cases end a program
flavour=$1 mpirun=$2 library=$3 mode=$4 ranks=$5
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_LOG_LEVEL=error
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo UCX_NET_DEVICES=lo
fail() {
  echo "run.sh: $*"
  cat "$work/out" "$work/err"
  exit 1
}

# run SETTING... -- PROGRAM...
run() {
  local options=() set=(-x)
  if [[ $flavour == openmpi ]]; then
    options=(--oversubscribe --mca btl "self,vader,tcp" --mca mpi_yield_when_idle 1)
  else
    set=(-genv)
  fi
  while [[ $1 != -- ]]; do
    if [[ $flavour == openmpi ]]; then options+=("${set[@]}" "$1"); else options+=("${set[@]}" "${1%%=*}" "${1#*=}"); fi
    shift
  done
  shift
  timeout -k 10 300 "$mpirun" "${options[@]}" -n "$ranks" "$@" >"$work/out" 2>"$work/err" </dev/null
}

# The program's "calls N" are the least that the library has to have compared.
check_compared() {
  local calls line compared
  calls=$(sed -n 's/^calls //p' "$work/out")
  [[ -n $calls ]] || fail "the program does not say how many calls it made"
  line=$(grep -h '^gar: GAR_CHECK: .* calls* compared' "$work/err" || true)
  if ((calls == 0)) && [[ -z $line ]]; then return; fi
  [[ $(wc -l <<<"$line") == 1 && -n $line ]] || fail "not one line about the comparison, but: '$line'"
  compared=$(sed -E 's/^gar: GAR_CHECK: ([0-9,]+) calls* compared on .*/\1/; s/,//g' <<<"$line")
  [[ $line == *"on $ranks rank"* && $line == *" 0 differences"* ]] || fail "differences: $line"
  ((compared >= calls)) || fail "$compared calls were taken over, the program made $calls that could be"
  echo "$compared calls compared, $calls expected at least"
}

case $mode in
  plain)
    run "LD_PRELOAD=$library" -- "$@" || fail "exit code $?"
    ! grep -q 'gar' "$work/err" || fail "the library speaks without being asked"
    ;;
  check | hosts | explore)
    settings=("LD_PRELOAD=$library" GAR_CHECK=1 GAR_MIN_BYTES=0)
    # Requests are taken over with several threads only; without, all else is as users run it.
    [[ $mode == explore && $1 == *_@(communicators|fallbacks) ]] || settings+=(GAR_THREADS=1)
    [[ $mode != hosts ]] || settings+=(GAR_FAKE_HOSTS=2)
    [[ $mode != explore ]] || settings+=(GAR_EXPLORE=1 "GAR_DECISIONS=$work/decisions")
    run "${settings[@]}" -- "$@" || fail "exit code $?"
    check_compared
    ;;
  same)
    # Not every MPI checks every argument: what it does not survive is tried alone, and must not succeed with the library.
    skipped=,
    until run GAR_DISABLE=1 -- "$@" "$work/without" "$skipped"; do
      number=$(tail -n 1 "$work/without" | sed -nE 's/^([0-9]+) [^:]*: $/\1/p')
      [[ -n $number && $skipped != *",$number,"* ]] || fail "the program fails without the library"
      skipped+=$number,
    done
    # With its own limits, and with everything taken over that can be.
    for setting in GAR_DEBUG=0 GAR_MIN_BYTES=0 "GAR_MIN_BYTES=0 GAR_THREADS=1"; do
      # shellcheck disable=SC2086
      run "LD_PRELOAD=$library" $setting -- "$@" "$work/with" "$skipped" || fail "$setting: exit code $?"
      diff -u --label without "$work/without" --label with "$work/with" || fail "$setting: the program prints something else"
    done
    for number in ${skipped//,/ }; do
      if run "LD_PRELOAD=$library" GAR_MIN_BYTES=0 -- "$@" "$work/with" only "$number" || grep -q 'no error' "$work/with"; then
        cat "$work/with"
        fail "case $number ends the program without the library, but not with it"
      fi
    done
    echo "$(wc -l <"$work/without") lines are the same; without a check by this MPI: ${skipped//,/ }"
    ;;
  *)
    echo "run.sh: unknown mode '$mode'" >&2
    exit 2
    ;;
esac
! grep -h 'FAILED' "$work/out" "$work/err" || fail "the program found failures"
