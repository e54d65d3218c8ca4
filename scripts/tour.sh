#!/usr/bin/env bash
# From a network to a proven plan, and an AllReduce for real: tour.sh PATH_TO_GAR
set -euo pipefail
gar=$(realpath "${1:-build/release/bin/gar}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
if [[ ! -t 1 || -n ${NO_COLOR:-} ]]; then
  say() { printf '\n# %s\n' "$*"; }
fi
show() {
  echo "$ gar $*"
  "$gar" "$@"
}

say "The network: 16 racks of 24 servers"
show topo show -t sym384
say "Which AllReduce is fastest for 1e8 floats, and why?"
show predict -t sym384 --count 1e8
say "The plan of the fastest one, and what it costs"
show plan -t sym384 --count 1e8 -o plan.json
say "The proof"
show verify plan.json
say "The plan on the network, flow by flow"
show simulate -t sym384 --plan plan.json

sweep=(-b 64KiB -e 16MiB -f 16 -n 10 -w 2)
has_mpi() {
  local mpi
  for mpi in openmpi mpich; do
    if [[ -x $(dirname "$gar")/gar-$mpi ]] && command -v "mpirun.$mpi" mpirun mpiexec >/dev/null; then return 0; fi
  done
  return 1
}
say "This machine: what do latency, copies and reductions between 4 of its processes cost?"
profile=()
code=0
show fit --local 4 --budget 20s -o host.json || code=$?
if ((code == 0)); then
  profile=(-p host.json)
  say "So what should an AllReduce of 4 MiB take?"
  show predict "${profile[@]}" --size 4MiB --algo cps,ring,hcps,rhd
elif ((code != 2 && code != 3)); then  # 2: the budget was too short, 3: the times contradict the model
  exit "$code"
else
  say "This machine was too busy to be measured; predictions below come from a quick guess instead of a fit"
fi
if has_mpi; then
  say "AllReduce for real: 4 processes of this host, ours and the MPI library's own in turns, next to the predictions"
  show bench --local 4 "${profile[@]}" --algo auto,cps,ring,native "${sweep[@]}" | tee bench.txt
  mpi=$(sed -n 's/^# allreduce between .* under \(.*\), out of place.*/\1/p' bench.txt)
  ratio=$(sed -n "s/^# auto is \(.*\) as native (\(.*\))$/\1 as that of ${mpi:?} (\2)/p" bench.txt)
  say "In this run our AllReduce is ${ratio:?}"
else
  say "AllReduce for real: 4 processes of this host (no MPI to compare with: Debian has libopenmpi-dev and openmpi-bin)"
  show bench --local 4 "${profile[@]}" --algo auto,cps,ring "${sweep[@]}"
fi
