#!/usr/bin/env bash
# What a user of the preload library gains or loses at every size: microseconds of MPI_Allreduce without the library and with it, the median
# of three launches in turns: bench/calls.sh [-f FLAVOUR] [BUILD_DIR [RANKS [WARM_CALLS [BATCHES [BYTES...]]]]]
# Words in LAUNCH stand before mpirun (testbed/cluster run --), those in OPTIONS behind it.
set -euo pipefail
flavour=openmpi
if [[ ${1:-} == -f ]]; then flavour=$2 && shift 2; fi
build=$(realpath "${1:-build/release}") ranks=${2:-2} warm=${3:-3000} batches=${4:-21}
sizes=("${@:5}")
if ((${#sizes[@]} == 0)); then sizes=(8 64 256 1024 4096 16384 65536 262144 1048576); fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export UCX_LOG_LEVEL=error GAR_DECISIONS=0
library=$build/lib/gar/libgar-preload-$flavour.so
program=$build/bench-calls-$flavour
read -r -a launch <<<"${LAUNCH:-mpirun.$flavour -n $ranks}"
read -r -a options <<<"${OPTIONS:-}"
"mpicc.$flavour" -O2 -o "$program" "$(dirname "$0")/calls.c"
# each [SETTING]: lines "BYTES US"
each() {
  local settings=()
  if (($# > 0)) && [[ $flavour == openmpi ]]; then settings=(-x "$1"); fi
  if (($# > 0)) && [[ $flavour == mpich ]]; then settings=(-genv "${1%%=*}" "${1#*=}"); fi
  "${launch[@]}" "${options[@]}" "${settings[@]}" "$program" "$warm" "$batches" "${sizes[@]}"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for _ in 1 2 3; do
  each >>"$work/alone"
  each "LD_PRELOAD=$library" >>"$work/with"
done
printf '%-8s %5s %10s %12s %12s %7s\n' MPI ranks bytes 'alone, us' 'with gar, us' gain
for size in "${sizes[@]}"; do
  a=$(awk -v s="$size" '$1 == s { print $2 }' "$work/alone" | sort -g | sed -n 2p)
  w=$(awk -v s="$size" '$1 == s { print $2 }' "$work/with" | sort -g | sed -n 2p)
  printf '%-8s %5s %10s %12s %12s %7.2f\n' "$flavour" "$ranks" "$size" "$a" "$w" "$(awk "BEGIN { print $a / $w }")"
done
