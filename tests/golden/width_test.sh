#!/usr/bin/env bash
# Where standard output is no terminal, no line that gar prints for people is longer than 80 columns: width_test.sh GAR ROOT
set -euo pipefail
gar=$(realpath "$1")
cd "$2"
plan=$(mktemp)
trap 'rm -f "$plan"' EXIT
failures=0
check() {
  local long
  long=$("$gar" "$@" | python3 -c '
import sys
for line in sys.stdin.buffer.read().decode().splitlines():
    if len(line) > 80: print(f"{len(line)} columns: {line}")')
  if [[ -n $long ]]; then
    echo "gar $*"
    echo "$long"
    failures=$((failures + 1))
  fi
}
for network in ss24 sym384 asy384 cdc384 fattree:8 star:12@100Gbit/s,2us tree:4x12@100Gbit/s+400Gbit/s \
  data/topologies/mixed-fleet.json; do
  check topo show "$network"
  check topo check "$network"
  check predict -t "$network" --count 1e8
  check predict -t "$network" --size 1kB..1GB -f 1000 --algo ring,cps,gentree+
  check plan -t "$network" --count 1e8
  check plan -t "$network" --size 1MB,1GB
  check plan -t "$network" --count 1e8 --explain
done
for network in ss24 sym384 data/topologies/mixed-fleet.json; do
  check simulate -t "$network" --count 1e6 --algo ring
  check simulate -t "$network" --count 1e6 --algo gentree+,hcps,ring
  check compare -t "$network" --count 1e6 --algo gentree+,hcps,ring
done
check topo show
check topo classes
"$gar" plan -t sym384 --count 1e6 -o "$plan" >/dev/null
check verify "$plan"
[[ $failures == 0 ]]
