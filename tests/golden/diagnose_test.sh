#!/usr/bin/env bash
# gar diagnose on what gar bench really prints, and on results that are made slower: diagnose_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "no python3"
gar=$(realpath "$1")
data=$(realpath "$2")/tests/golden/data
cd "$work"

# Table and document of one real run; how long it took here is nobody's business.
limited "$gar" bench --local 2 -b 4KiB -e 1MiB -f 16 --algo auto,ring,cps -n 2 -w 1 -J out.json >out.txt ||
  fail "gar bench ends with $?"
for results in out.txt out.json; do
  code=0
  limited "$gar" diagnose -p "$data/profile.json" --results $results --json >$results.diagnosis || code=$?
  ((code <= 1)) || fail "$results: exit code $code"
  python3 - $results.diagnosis $code <<'PY' || fail "$results: the document is not as promised"
import json, sys
document = json.load(open(sys.argv[1]))
assert document["schema"] == "gar.diagnose/1" and document["gar_version"]
assert document["format"] == "gar bench" and document["ranks"] == 2 and document["words"]
assert document["is_normal"] is (sys.argv[2] == "0")
measured = json.load(open("out.json"))["results"]
rows = document["rows"]
assert len(rows) == len(measured) == 9, rows
for row, result in zip(rows, measured):
    assert row["bytes"] == result["bytes"]
    # The table has four digits.
    assert abs(row["measured_seconds"] / result["seconds"] - 1) < 1e-3
    assert abs(row["ratio"] - row["measured_seconds"] / row["expected_seconds"]) <= 1e-9 * row["ratio"]
    assert row["verdict"] == ("slow" if row["ratio"] > 1.1 else "fast" if row["ratio"] < 1 / 1.1 else "normal"), row
    if result["algorithm"] == "ring":
        assert row["algorithm"] == "ring" and not row["is_assumed"]
PY
done

# Results that are what is expected are normal; three times as long is not; the latency alone is found.
python3 - <<'PY'
import json
diagnosis = json.load(open("out.json.diagnosis"))
results = json.load(open("out.json"))
def write(name, seconds):
    for result, row in zip(results["results"], diagnosis["rows"]):
        result["seconds"] = seconds(row)
    json.dump(results, open(name, "w"))
write("normal.json", lambda row: row["expected_seconds"])
write("slow.json", lambda row: 3 * row["expected_seconds"])
write("fast.json", lambda row: row["expected_seconds"] / 3)
PY
"$gar" diagnose -p "$data/profile.json" --results normal.json >normal.txt || fail "not normal: $(cat normal.txt)"
for name in slow fast; do
  code=0
  "$gar" diagnose -p "$data/profile.json" --results $name.json >$name.txt || code=$?
  ((code == 1)) || fail "$name: exit code $code"
  [[ $(grep -c " $name " $name.txt) == 9 ]] || fail "not 9 rows are $name: $(cat $name.txt)"
done

# One parameter that has changed is named: a profile whose alpha, or beta, was a third.
for parameter in alpha beta; do
  python3 - "$data/profile.json" $parameter <<'PY'
import json, sys
profile = json.load(open(sys.argv[1]))
for estimate in (profile["levels"][0][sys.argv[2]], ):
    for end in ("value", "low", "high"):
        estimate[end] /= 3
host = profile["topology"]["tree"]["children"][0]
host[sys.argv[2]] /= 3
json.dump(profile, open("before.json", "w"))
PY
  code=0
  "$gar" diagnose -p before.json --results normal.json --json >changed.json || code=$?
  ((code == 1)) || fail "$parameter three times as large: exit code $code"
  python3 - $parameter <<'PY' || fail "$parameter is not blamed: $(cat changed.json)"
import json, sys
document = json.load(open("changed.json"))
assert document["culprit"] == sys.argv[1], document["culprit"]
assert 2.7 < document["factor"] < 3.3 and document["explained"] > 0.95, document
PY
done

# A profile whose collectives are exact and whose reductions are far off is good enough to see that 40% of the bandwidth is
# gone; one in which a fifth of the collectives took twice as long judges nothing.
judge() {
  python3 "$data/cached_reductions.py" "$1"
  limited "$gar" fit --from measured.json -o network.json >fit.txt || fail "gar fit ends with $?"
  [[ $(tail -n 1 fit.txt) == 'written to network.json; use it with: gar predict -p network.json --size 4MB' ]] ||
    fail "gar fit -o says nothing about it: $(cat fit.txt)"
  code=0
  limited "$gar" diagnose -p network.json --results slow.txt --json >slow.json || code=$?
  limited "$gar" diagnose -p network.json --results slow.txt >slow.out || true
}
judge 0
((code == 1)) || fail "40% of the bandwidth is gone: exit code $code: $(cat slow.out)"
grep -q '^NOT normal for this network$' slow.out || fail "called normal: $(cat slow.out)"
python3 - <<'PY' || fail "beta is not blamed, or the profile is not what the test is about: $(cat slow.json)"
import json
residuals = json.load(open("network.json"))["residuals"]
errors = sorted(r["measured_s"] / r["fitted_s"] - 1 for r in residuals if r["what"].startswith("reduction"))
assert len(errors) == 35 and errors[20] < 0.1 and 0.4 < errors[21] < 0.7 and 2.4 < errors[28] < 2.9, errors
words = open("fit.txt").read()
assert "residuals of the network, 24 fitted medians: median 0.0%, p95 0" in words, words
assert "residuals of reductions in memory, 35 fitted medians: median " in words, words
document = json.load(open("slow.json"))
assert document["is_judged"] and document["tolerance"] == 0.1 and document["culprit"] == "beta", document
assert abs(document["factor"] * 0.6 - 1) < 0.05, document
assert all(1.5 < row["ratio"] < 1.7 and row["verdict"] == "slow" for row in document["rows"]), document["rows"]
PY
judge 1
((code == 3)) || fail "a rough profile: exit code $code: $(cat slow.out)"
grep -q '^NOT judged: this profile is too rough$' slow.out || fail "a rough profile: $(cat slow.out)"
python3 - <<'PY' || fail "a rough profile: $(cat slow.json)"
import json
document = json.load(open("slow.json"))
assert not document["is_judged"] and not document["is_normal"] and document["tolerance"] > 0.3, document
assert all(row["verdict"] == "unknown" for row in document["rows"]) and not document["culprit"], document
PY
