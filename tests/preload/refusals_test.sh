#!/usr/bin/env bash
# Settings that the preload library cannot use: it says so in one line, and the program runs on its own library:
#   refusals_test.sh GAR SOURCE_DIR BUILD_DIR
set -euo pipefail
# shellcheck source=tests/preload/scripts.sh
source "$(dirname "$0")/scripts.sh"

# preloaded FLAVOUR LIBRARY_FLAVOUR SETTING... -- PROGRAM...: on 3 ranks
preloaded() {
  local flavour=$1 options=() settings=("LD_PRELOAD=$libraries/libgar-preload-$2.so")
  shift 2
  while [[ $1 != -- ]]; do
    settings+=("$1")
    shift
  done
  shift
  for setting in "${settings[@]}"; do
    if [[ $flavour == openmpi ]]; then options+=(-x "$setting"); else options+=(-genv "${setting%%=*}" "${setting#*=}"); fi
  done
  runs 0 mpirun."$flavour" "${options[@]}" -n 3 "$@"
  results_are_right
}

echo '{"schema": "gar.topology/1", "root": {' >broken.json
echo '{"schema": "gar.topology/9"}' >other.json
for flavour in "${flavours[@]}"; do
  life=$(program "$flavour" life)
  own='the program runs on its own library'
  # refuses 'regular expression' SETTING...
  refuses() {
    for_this "$flavour" || return 0
    preloaded "$flavour" "$flavour" GAR_CHECK=1 "${@:2}" -- "$life" single
    says "$1.*$own"
  }
  refuses 'GAR_TOPOLOGY.*nowhere\.json.*there is no such file' GAR_TOPOLOGY="$work/nowhere.json"
  refuses 'GAR_TOPOLOGY.*broken\.json' GAR_TOPOLOGY="$work/broken.json"
  refuses 'GAR_TOPOLOGY.*other\.json' GAR_TOPOLOGY="$work/other.json"
  refuses 'GAR_TOPOLOGY.*7 servers' GAR_TOPOLOGY=star:7
  refuses "GAR_ALGO.*unknown algorithm 'rign'" GAR_ALGO=rign
  refuses 'GAR_ALGO.*2x2' GAR_ALGO=hcps:2x2
  refuses 'GAR_MIN_BYTES=few' GAR_MIN_BYTES=few
  refuses 'GAR_CHECK=perhaps' GAR_CHECK=perhaps
  refuses 'GAR_TIMEOUT' GAR_TIMEOUT=never
  # Rank 1 has another setting: nothing is taken over on any rank, and the program gets to its end.
  # differs 'regular expression' SETTING PROGRAM...: only on rank 1
  differs() {
    for_this "$flavour" || return 0
    # shellcheck disable=SC2016
    preloaded "$flavour" "$flavour" -- \
      sh -c 'if [ "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" = 1 ]; then export "$1"; fi; shift; exec "$@"' sh "$2" "${@:3}"
    says "$1.*$own"
  }
  for program in life nonblocking; do
    arguments=("$(program "$flavour" "$program")" single)
    # 256 is what holds without it, except for MPI_Iallreduce.
    for value in 256 1000000; do differs 'GAR_MIN_BYTES .*rank 1' GAR_MIN_BYTES=$value "${arguments[@]}"; done
    differs 'GAR_CHECK .*rank 1' GAR_CHECK=1 "${arguments[@]}"
    differs 'GAR_DISABLE .*rank 1' GAR_DISABLE=1 "${arguments[@]}"
  done
  differs 'GAR_COMPARE .*rank 1' GAR_COMPARE=1 "$life" single
  differs 'GAR_FAKE_HOSTS .*rank 1' GAR_FAKE_HOSTS=3 "$life" single
  differs 'GAR_TOPOLOGY .*rank 1' GAR_TOPOLOGY=star:3 "$life" single
  differs 'GAR_LIMIT .*rank 1' GAR_LIMIT=2 "$life" single
  differs 'GAR_TIMEOUT' GAR_TIMEOUT=never "$life" single
  # A communicator with another number of ranks than the network has servers is none of the network's business.
  preloaded "$flavour" "$flavour" GAR_CHECK=1 GAR_MIN_BYTES=0 GAR_TOPOLOGY=star:3 -- "$(program "$flavour" communicators)" 1
  says ' 0 differences'
done

# The library for the other MPI, in both directions. The program must not notice.
if ((${#flavours[@]} == 2)); then
  for flavour in openmpi mpich; do
    other=$([[ $flavour == openmpi ]] && echo mpich || echo openmpi)
    title=$([[ $other == openmpi ]] && echo 'Open MPI' || echo MPICH)
    for arguments in "life fork" nonblocking fallbacks "types 64" fortran_mpi.program; do
      read -r stem argument <<<"$arguments"
      [[ -x $(program "$flavour" "$stem") ]] || continue
      for_this "$flavour" || continue
      preloaded "$flavour" "$other" GAR_CHECK=1 -- "$(program "$flavour" "$stem")" ${argument:+"$argument"}
      says "built for $title.*runs on its own"
    done
    # A program that loads its MPI when it runs.
    if [[ $flavour == openmpi ]] && /usr/bin/python3 -c 'import mpi4py, numpy' 2>/dev/null; then
      preloaded openmpi mpich GAR_CHECK=1 -- /usr/bin/python3 "$source_dir/tests/preload/mpi4py_client.py" --small
      says 'built for MPICH.*runs on its own'
    fi
    # gar mpirun does not let it come to that.
    runs 2 "$gar" mpirun --mpi "$other" -- mpirun."$flavour" -n 3 "$(program "$flavour" life)"
  done
fi
