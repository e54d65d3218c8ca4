#!/usr/bin/env bash
# gar bench for real: results, JSON, a killed rank, Ctrl-C, and nothing left behind: bench_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
set -m # jobs of a script without job control ignore Ctrl-C
command -v python3 >/dev/null || skip "no python3"
gar=$(realpath "$1")
cd "$work"

# Every algorithm and size gives a result, and all of them are right.
limited "$gar" bench --local 3 -b 8 -e 1MiB -f 8 --algo auto,ring,cps -c 1 -n 3 -w 1 --json >out.json || fail "exit code $?"
python3 - <<'PY' || fail "the document is not as promised"
import json
document = json.load(open("out.json"))
assert document["schema"] == "gar.bench/2" and document["gar_version"]
assert document["complete"] is True and document["wrong"] == 0
results = document["results"]
sizes = [8 * 8**i for i in range(6)]
assert [(r["algorithm"], r["bytes"]) for r in results] == [(a, s) for s in sizes for a in ("auto", "ring", "cps")], results
for r in results:
    assert r["wrong"] == 0 and r["ranks"] == 3 and r["transport"] == "shm" and r["iterations"] == 3
    assert 0 < r["min"] <= r["p10"] <= r["median"] <= r["p90"] <= r["max"] and r["seconds"] == r["median"]
    assert abs(r["algbw"] - r["bytes"] / r["seconds"]) <= 1e-9 * r["algbw"]
    assert abs(r["busbw"] - r["algbw"] * 4 / 3) <= 1e-9 * r["busbw"]
    assert r["predicted_seconds"] is None or r["predicted_seconds"] > 0
    assert r["count"] == r["bytes"] // 4 and r["dtype"] == "float32" and r["op"] == "sum" and r["reason"]
PY

# The table has one line per result; what is no result begins with #.
limited "$gar" bench --local 2 -b 4KiB -e 64KiB -f 16 --algo auto,rhd -n 2 -w 0 >out.txt || fail "exit code $?"
[[ $(grep -vc '^#' out.txt) == 4 ]] || fail "not 4 lines: $(cat out.txt)"
awk '!/^#/ && $9 != "0" { exit 1 }' out.txt || fail "#wrong is not 0 everywhere: $(cat out.txt)"

# The other collectives, in place and not, threads, all types and operators.
for collective in allreduce reduce-scatter allgather; do
  for place in '' --in-place; do
    for transport in shm threads; do
      # shellcheck disable=SC2086
      limited "$gar" bench --local 3 --transport $transport --collective $collective $place -b 100 -e 100KB -f 1000 \
        -n 1 -w 0 -d int8,bfloat16,float64 -o sum,max >out.txt || fail "$collective $place $transport: $(cat out.txt)"
    done
  done
done
limited "$gar" bench --local 2 --transport threads -d all -o all -b 5000 -e 5000 -n 1 -w 0 >out.txt ||
  fail "all types and operators: $(cat out.txt)"

# The shared memory of a run has the parent's process id in its name.
nothing_left() {
  [[ -z $(find /dev/shm -name "*gar-$1-*" 2>/dev/null) ]] || fail "something is left in /dev/shm: $(ls /dev/shm)"
}

# is_computing PID: the process has used the processor for 0.3 s, so that it is past its start whatever else runs here.
is_computing() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -ra stat <<<"${stat##*) }"
  ((stat[11] + stat[12] >= 30))
}
# ranks_compute PID NUMBER: as many ranks of that parent are in the middle of their work; they are $children then.
ranks_compute() {
  local child
  kill -0 "$1" 2>/dev/null || fail "it ended by itself: $(cat err.txt)"
  mapfile -t children < <(pgrep -P "$1" || true)
  ((${#children[@]} == $2)) || return 1
  for child in "${children[@]}"; do is_computing "$child" || return 1; done
}
none_left() {
  local child
  for child in "${children[@]}"; do
    if kill -0 "$child" 2>/dev/null; then return 1; fi
  done
}

# A rank that is killed: exit code 4, its name, and nothing is left. The time limit is so long that only its death can be
# what the others notice.
"$gar" bench --local 4 -b 1MiB -e 1MiB -n 1000000 -w 0 -c 0 --timeout 600 >out.txt 2>err.txt &
pid=$!
wait_until ranks_compute $pid 4 || fail "the ranks did not start: $(cat err.txt)"
kill -KILL "${children[2]}"
code=0
wait $pid || code=$?
((code == 4)) || fail "a killed rank: exit code $code instead of 4: $(cat err.txt)"
grep -q '^gar: rank [0-3]: killed by signal 9 (Killed)$' err.txt || fail "it is not said who was killed: $(cat err.txt)"
((10 >= $(wc -l <err.txt))) || fail "too many messages: $(cat err.txt)"
none_left || fail "a rank is left: ${children[*]}"
nothing_left $pid

# The parent is killed: the ranks end with it.
"$gar" bench --local 3 -b 1MiB -e 1MiB -n 1000000 -w 0 -c 0 --timeout 600 >out.txt 2>err.txt &
pid=$!
wait_until ranks_compute $pid 3 || fail "the ranks did not start: $(cat err.txt)"
kill -KILL $pid
wait $pid 2>/dev/null || true
wait_until none_left || fail "ranks are left after their parent"
nothing_left $pid

# Ctrl-C: what has been measured is printed, the document is whole.
"$gar" bench --local 2 -b 1MiB -e 1MiB -n 1000000 -w 0 -c 0 --json >out.json 2>err.txt &
pid=$!
wait_until ranks_compute $pid 2 || fail "the ranks did not start: $(cat err.txt)"
kill -INT $pid
code=0
wait $pid || code=$?
((code == 4)) || fail "Ctrl-C: exit code $code instead of 4: $(cat err.txt)"
python3 -c 'import json; assert json.load(open("out.json"))["complete"] is False' || fail "Ctrl-C: $(cat out.json err.txt)"
nothing_left $pid
