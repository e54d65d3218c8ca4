#!/usr/bin/env bash
# gar fit for real: what is measured and written, Ctrl-C, budgets, and fits of files: fit_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/golden/fit_lib.sh
source "$(dirname "$0")/fit_lib.sh"
command -v python3 >/dev/null || skip "no python3"
gar=$(realpath "$1")
golden=$(realpath "$2")/tests/golden
cd "$work"

all_measured() { python3 "$golden/fit_check.py" "$1" 3; }
measures 4 all_measured measured.json "$gar" fit --local 3

# Over TCP ranks send messages: several to one is measured, too.
messages_measured() { python3 "$golden/fit_check.py" "$1" 3 messages && grep -q '"transport": "tcp"' "$1"; }
if limited "$gar" bench --local 2 --transport tcp --sizes 8 -n 1 -w 0 >out.txt 2>err.txt; then
  measures 4 messages_measured tcp.json "$gar" fit --local 3 --transport tcp --sizes 4kB,100kB
else
  grep -q OpenSSL err.txt || fail "gar bench over TCP: $(cat err.txt)"
fi

# A budget that is too short is refused, with one that would do.
code=0
limited "$gar" fit --local 3 --budget 20ms >out.txt 2>err.txt || code=$?
((code == 2)) || fail "a short budget: exit code $code: $(cat out.txt err.txt)"
grep -Eq '^gar: --budget 0.02s is too short to measure what a fit needs; about [0-9]+s would do$' <(in_one_line err.txt) ||
  fail "a short budget: $(cat err.txt)"
[[ ! -s out.txt ]] || fail "something was fitted from nothing: $(cat out.txt)"

# Ctrl-C, once it measures the third thing: what was measured until then is kept, and the exit code says that it is not
# all.
code=0
limited python3 "$golden/interrupt.py" ' left: (.+?) \(Ctrl-C' 3 \
  "$gar" fit --local 2 --budget 10min --sizes 400kB,4MB --save stopped.json >out.txt 2>err.txt || code=$?
((code == 4)) || fail "Ctrl-C: exit code $code: $(cat err.txt)"
python3 -c 'import json; assert json.load(open("stopped.json"))["observations"]' || fail "Ctrl-C: nothing is kept"

# Times that follow the model exactly are found again: 2 beta + gamma and so on, from one file and from two.
python3 - <<'PY'
import json
alpha, beta, gamma, delta = 20e-6, 4e-9, 6e-10, 2e-10
for name, factor in (("one.json", 1.0), ("two.json", 1.001)):
    document = json.load(open("measured.json"))
    document["cores"] = 0
    for cell in document["observations"]:
        servers = cell["servers"]
        n = servers if isinstance(servers, int) else len(servers)
        size = cell["size_floats"]
        if cell["kind"] == "reduction":
            seconds = size * ((cell["fan_in"] - 1) * gamma + (cell["fan_in"] + 1) * delta)
        elif cell["collective"] == "allgather":
            steps = n - 1 if cell["algorithm"] == "ring" else 1
            seconds = steps * alpha + (n - 1) / n * size * beta
        else:
            seconds = 2 * alpha + size * (2 * (n - 1) / n * beta + (n - 1) / n * gamma + (n + 1) / n * delta)
        cell["seconds"] = [factor * seconds * f for f in (1, 1.01, 0.99, 1.005, 0.995)]
    json.dump(document, open(name, "w"))
PY
limited "$gar" fit --from one.json --from two.json -o profile.json --json >out.json 2>err.txt || fail "exit code $?: $(cat err.txt)"
python3 - <<'PY' || fail "the fit of exact times is not as promised"
import json
document = json.load(open("out.json"))
assert document["schema"] == "gar.fit/1" and document["gar_version"]
profile = json.load(open("profile.json"))
assert document["profile"] == profile and profile["schema"] == "gar.profile/2"
level = profile["levels"][0]
for what, found, true in (("beta", level["beta"], 4e-9), ("gamma", profile["gamma"], 6e-10), ("delta", profile["delta"], 2e-10)):
    assert abs(found["value"] / true - 1) < 0.1, (what, found)
assert level["incast"] in ("none", "unknown"), level
curve = document["incast_curve"]
assert [p["ranks"] for p in curve] == [2, 3], curve
assert all(p["mesh_seconds"] > 0 for p in curve) and curve[0]["shift_seconds"] is None and curve[1]["shift_seconds"] > 0
assert document["validation_cells"] == []
short, reductions = document["residuals"], [r for r in profile["residuals"] if r["what"].startswith("reduction ")]
assert short["count"] == len(profile["residuals"]) and short["reductions"]["count"] == len(reductions), short
assert short["network"]["count"] == short["count"] - len(reductions) and 0 <= short["network"]["p95_error"] < 0.1, short
PY
limited "$gar" fit --from one.json >out.txt 2>err.txt || fail "exit code $?: $(cat err.txt)"
if grep -q '^written to ' out.txt; then fail "nothing was written: $(cat out.txt)"; fi
for words in '^parameter ' '^beta ' '^incast: ' '^residuals of the network, ' 'all ms'; do
  grep -q "$words" out.txt || fail "no '$words' in: $(cat out.txt)"
done

# Files of different networks are not put together.
sed 's/"name": "rank"/"name": "gpu"/' one.json >other.json
cmp -s one.json other.json && fail "the test changes nothing"
code=0
limited "$gar" fit --from one.json --from other.json >out.txt 2>err.txt || code=$?
((code == 3)) || fail "different networks: exit code $code"
grep -q '^gar: --from other.json, after one.json: the network .* expected measurements of one network$' <(in_one_line err.txt) ||
  fail "different networks: $(cat err.txt)"
