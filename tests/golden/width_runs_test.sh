#!/usr/bin/env bash
# What measuring verbs print fits 80 columns where standard output is no terminal: width_runs_test.sh GAR ROOT. One run of each, as
# short as can be, and files that are there. width_test.sh has the other verbs.
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "no python3"
gar=$(realpath "$1")
root=$(realpath "$2")
data=$root/tests/golden/data
cd "$work"
cp "$data"/* "$root"/data/profiles/june.json .
export GAR_DECISIONS=$work/d
export LINES=24 COLUMNS=200 # which are no terminal's

# run CODE ARGUMENT...: standard output goes to the file that is looked at below
run() {
  local expected=$1 code=0
  shift
  printf '\x01%s\n' "gar $*" >>all
  limited "$gar" "$@" >>all 2>err </dev/null || code=$?
  ((code == expected)) || fail "gar $*: exit code $code: $(cat err)"
}
run 0 bench --local 2 --transport threads -b 8 -e 1M -f 64 -n 1 -w 0 --algo auto,ring,cps --reproducible
run 0 bench --local 3 --transport threads --size 4kB,1MB -d all -o all -n 1 -w 0 -c 0
run 0 bench --local 2 --transport threads -b 64K -e 64K -n 1 -w 0 --collective allgather
run 0 tune --local 2 --transport threads --sizes 1KiB,64KiB --calls 50
run 0 profile show profile.json
run 0 profile show june.json
run 0 profile show d/decisions-*.json
run 0 profile diff june.json june.json --all
python3 cached_reductions.py 0
run 0 fit --from measured.json -o fitted.json
run 0 diagnose -p profile.json bench.txt
run 1 diagnose -p profile.json nccl.txt
run 1 diagnose -p fitted.json slow.txt
run 0 diagnose -t star:4@10MB/s,20us slow.txt --at-least 10%
run 1 diagnose -t star:4@25Mbit/s,200us slow.txt
run 0 diagnose -t tree:2x2@100Gbit/s+50Gbit/s osu.txt --at-least 1%
for target in fig:costmodel fig:incast fig:model_five table:gentreereal fig:hcps; do run 0 reproduce $target; done
python3 - <<'PY' || fail "lines are too long"
import sys
failed = 0
command = ""
for line in open("all", encoding="utf-8").read().splitlines():
    if line.startswith("\x01"):
        command = line[1:]
    elif len(line) > 80 and not any(len(word) > 60 for word in line.split()):  # no blank breaks the path of a file
        print(f"{command}\n{len(line)} columns: {line}")
        failed += 1
sys.exit(failed > 0)
PY
[[ $(grep -c $'^\x01' all) == 20 ]] || fail "not all ran: $(grep $'^\x01' all)"
