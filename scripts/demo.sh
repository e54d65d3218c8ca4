#!/usr/bin/env bash
# From a network to a proven plan, in six commands: demo.sh PATH_TO_GAR
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
  printf '$ gar'
  printf ' %q' "$@"
  printf '\n'
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
