#!/usr/bin/env bash
# Where standard output is no terminal, no line that gar prints for people is longer than 80 columns: answers, help, errors and
# the source of manual pages. width_test.sh GAR ROOT
set -euo pipefail
gar=$(realpath "$1")
cd "$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
plan=$work/plan.json
for name in "${!GAR_@}"; do unset "$name"; done
export GAR_DECISIONS=0

# run ARGUMENT...: both streams of gar go to the file that is looked at below, behind the command; words that no blank can break,
# such as the path of a file, may be longer.
run() {
  printf '\x01%s\n' "gar $*"
  "$gar" "$@" 2>&1 </dev/null || true
} >>"$work/all"

for network in ss24 sym384 asy384 cdc384 fattree:8 star:12@100Gbit/s,2us tree:4x12@100Gbit/s+400Gbit/s mixed-fleet; do
  run topo show "$network"
  run topo show --greek "$network"
  run topo check "$network"
  run predict -t "$network" --count 1e8
  run predict -t "$network" --size 1kB..1GB -f 1000 --algo ring,cps,gentree+
  run plan -t "$network" --count 1e8
  run plan -t "$network" --size 1MB,1GB
  run plan -t "$network" --count 1e8 --explain
done
for network in ss24 sym384 mixed-fleet; do
  run simulate -t "$network" --count 1e6 --algo ring --verbose
  run simulate -t "$network" --count 1e6 --algo gentree+,hcps,ring
  run compare -t "$network" --count 1e6 --algo gentree+,hcps,ring
done
run predict -t sym384 --size 1kB..1GB -f 1000 --plot=always
run predict -t sym384 --size 1MB --plot=always
run nccl explain data/nccl/two-hosts.log
run nccl explain tests/golden/data/nccl_mixed.txt
run plan -t star:12@100GbE --size 1kB..1GB
run predict -t ss24 --count 1e8 --greek
run topo show
run topo classes
"$gar" plan -t sym384 --count 1e6 -o "$plan" >/dev/null
run verify "$plan"
run verify --seed 1f "$plan"
run simulate -t sym384 --plan "$plan" --path
run mpirun --dry-run mpirun -n 2 true
run completion

# Help and manual pages of every verb, and what those print that are called with nothing, or with a flag that there is not.
run
run --help
run manual
# shellcheck disable=SC2207
verbs=($("$gar" completion bash | sed -n "s/^ *'') values='\([^']*\)'.*/\1/p"))
((${#verbs[@]} > 10))
for verb in "${verbs[@]}"; do
  [[ $verb != help ]] || continue
  run "$verb" --help
  run manual "$verb"
  run "$verb" --no-such-flag
done
for verb in 'topo show' 'topo check' 'topo classes' 'topo import' 'topo convert' 'profile show' 'profile diff'; do
  read -ra words <<<"$verb"
  run "${words[@]}" --help
done
# Errors.
run nothing
run predict -t ss24
run predict -t star:12@fast --size 1MB
run predict -t nothing.json --size 1MB
run predict -t ss24 --size 1MB --algo nothing
run plan -t ss24 --count x
run plan -t ss24 --counts 1e3..1e6 --explain
run simulate -t ss24 --count 1e6 --algo ring --slow x=3
run topo convert ss24 -o drawing.png
run verify tests/golden/data/nothing.json
run bench --local 0
run fit --budget x
run reproduce nothing

python3 - "$work/all" <<'END'
import sys
failed = False
command = ""
for line in open(sys.argv[1], encoding="utf-8").read().splitlines():
    if line.startswith("\x01"):
        command = line[1:]
    elif len(line) > 80 and len(line.split()) > 1 and not any(len(word) > 60 for word in line.split()):
        print(f"{command}\n{len(line)} columns: {line}")
        failed = True
sys.exit(failed)
END
