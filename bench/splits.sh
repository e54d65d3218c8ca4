#!/usr/bin/env bash
# What the preload library adds to communicators that a program makes and frees: milliseconds of MPI_Comm_split and MPI_Comm_free, alone
# and with an MPI_Allreduce on each, without the library and with it, in turns: bench/splits.sh [BUILD_DIR [ROUNDS [RANKS]]]
set -euo pipefail
build=$(realpath "${1:-build/release}") rounds=${2:-500} ranks=${3:-2}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl=self,vader OMPI_MCA_oob_tcp_if_include=lo UCX_NET_DEVICES=lo

# each FLAVOUR LIBRARY ARGUMENT...: ms of a round; no library when the word is empty
each() {
  local settings=()
  if [[ -n $2 ]]; then settings=(-x "LD_PRELOAD=$2"); fi
  if [[ -n $2 && $1 == mpich ]]; then settings=(-genv LD_PRELOAD "$2"); fi
  mpirun."$1" "${settings[@]}" -n "$ranks" "$build/tests/preload/preload_$1_splits" "${@:3}" | sed -n 's/ ms each$//p'
}
median() { sort -g | sed -n 2p; }

printf '%-8s %5s %-28s %12s %12s %7s\n' MPI ranks round 'alone, ms' 'with gar, ms' ratio
for flavour in openmpi mpich; do
  library=$build/lib/gar/libgar-preload-$flavour.so
  if [[ ! -e $library ]] || ! command -v "mpirun.$flavour" >/dev/null; then continue; fi
  for count in 0 10 1000; do
    alone=() with=()
    for _ in 1 2 3; do
      alone+=("$(each "$flavour" '' "$rounds" "$count")")
      with+=("$(each "$flavour" "$library" "$rounds" "$count")")
    done
    a=$(printf '%s\n' "${alone[@]}" | median) w=$(printf '%s\n' "${with[@]}" | median)
    what='split, free'
    ((count == 0)) || what="split, $count doubles, free"
    printf '%-8s %5s %-28s %12s %12s %7.2f\n' "$flavour" "$ranks" "$what" "$a" "$w" "$(awk "BEGIN { print $w / $a }")"
  done
done
