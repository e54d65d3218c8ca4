#!/usr/bin/env bash
# gar bench, fit and reproduce on a GPU: cli_test.sh GAR. Where there is none, it says why and is skipped (77).
set -euo pipefail
gar=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export NO_COLOR=1
fail() {
  echo "cli_test: $*"
  exit 1
}
limited() { timeout -k 10 600 "$@"; }
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }

code=0
limited "$gar" reproduce fig:calc --device cuda --count 1e6 --json >calc.json 2>err.txt || code=$?
if ((code == 4)) && grep -q 'there is no GPU' err.txt; then
  echo "skipped: $(cat err.txt)"
  exit 77
fi
((code == 0)) || fail "reproduce fig:calc: exit code $code: $(cat err.txt)"
python3 - <<'PY' || fail "reproduce fig:calc: not as promised: $(head -c 2000 calc.json)"
import json
calc = json.load(open("calc.json"))["reproductions"][0]
assert calc["name"] == "fig:calc" and calc["device"] == "cuda" and calc["gpu"] and calc["count"] == 1000000
assert [c["x"] for c in calc["cells"]] == list(range(2, 17))
for c in calc["cells"]:
    assert c["gpu"]["seconds"] > 0 and c["chained"]["seconds"] > 0 and c["share_of_copy"] > 0
    assert abs(c["gpu"]["seconds_per_add"] * (c["x"] - 1) - c["gpu"]["seconds"]) <= 1e-9 * c["gpu"]["seconds"]
assert abs(calc["cells"][0]["paper"]["seconds"] - 8e-3) < 1e-9 and calc["copy"]["bytes_per_s"] > 1e9
assert set(calc["fits"]) == {"paper", "gpu"} and calc["judged"] is False
PY
limited "$gar" reproduce fig:calc --device cuda --count 1e6 >out.txt || fail "reproduce fig:calc: $(cat out.txt)"
grep -q 'nothing is demanded of fewer than 1e7 floats' out.txt || fail "reproduce fig:calc: $(cat out.txt)"
echo "reproduce fig:calc: $(python3 -c 'import json; print(json.load(open("calc.json"))["reproductions"][0]["gpu"])')"

# benched NAME RANKS TRANSPORT WORDS...: every result is right and has what it must have.
benched() {
  local name=$1 ranks=$2 transport=$3
  shift 3
  limited "$gar" bench --device cuda --local "$ranks" --transport "$transport" -n 3 -w 1 "$@" --json >out.json 2>err.txt ||
    fail "$name: exit code $?: $(cat err.txt) $(tail -c 1500 out.json)"
  RANKS=$ranks TRANSPORT=$transport python3 - <<'PY' || fail "$name: not as promised: $(head -c 3000 out.json)"
import json, os
document = json.load(open("out.json"))
ranks, transport = int(os.environ["RANKS"]), os.environ["TRANSPORT"]
assert document["device"] == "cuda" and document["complete"] is True and document["wrong"] == 0
assert document["ranks"] == ranks and document["copy_bytes_per_s"] > 1e9 and document["results"]
shared = "on one GPU" in document["world"]
uses_nccl = transport == "nccl" or any(r["algorithm"] == "native" for r in document["results"])
assert any("NCCL goes over sockets" in n for n in document["notes"]) == (shared and uses_nccl), document["notes"]
for r in document["results"]:
    assert r["wrong"] == 0 and r["seconds"] > 0, r
    native = r["algorithm"] == "native"
    assert r["transport"] == ("nccl" if native else transport), r
    if native or transport == "nccl":
        assert r["bound_seconds"] is None, r
    if r["algorithm"] in ("cps", "ring") and transport == "cuda-ipc" and shared and document["collective"] == "allreduce":
        moved = (3 * ranks - 1 if r["algorithm"] == "cps" else 5 * (ranks - 1)) * r["bytes"]
        assert abs(r["bound_seconds"] * document["copy_bytes_per_s"] - moved) <= 1e-6 * moved, r
PY
  echo "bench: $name"
}

for ranks in 2 4; do
  benched "all algorithms, $ranks ranks, cuda-ipc" $ranks cuda-ipc --algo all,gentree+,auto -b 1000 -e 10MB -f 100
  benched "NCCL's own, $ranks ranks" $ranks cuda-ipc --algo cps,native -b 4KiB -e 1MiB -f 256
  benched "plans, $ranks ranks, nccl" $ranks nccl --algo ring,cps,gentree+,native -b 4KiB -e 1MiB -f 256
done
benched "hcps:2x2, cuda-ipc" 4 cuda-ipc --algo hcps:2x2 -b 100 -e 1MB -f 100
benched "hcps:2x2, nccl" 4 nccl --algo hcps:2x2 -b 4KB -e 4MB -f 1000
benched "all types and operators" 2 cuda-ipc -d all -o all -b 5000 -e 5000 --algo cps
for collective in allreduce reduce-scatter allgather; do
  benched "$collective in place" 4 cuda-ipc --collective $collective --in-place -b 1000 -e 1MB -f 1000 --algo cps,ring,native
  benched "$collective" 4 cuda-ipc --collective $collective -b 1000 -e 1MB -f 1000 --algo cps,ring
done

# One table, for people.
limited "$gar" bench --device cuda --local 2 -b 1MiB -e 1MiB -n 3 -w 1 --algo cps,ring,native >out.txt || fail "table: $(cat out.txt)"
[[ $(grep -vc '^#' out.txt) == 3 ]] || fail "not 3 lines: $(cat out.txt)"
grep -q '^# bound: ' out.txt || fail "no word about the bound: $(cat out.txt)"
code=0
limited "$gar" bench --device cuda --local 2 -d int16 -b 4KB -e 4KB >out.txt 2>err.txt || code=$?
if ((code != 2)) || ! grep -q 'cannot be combined with --device cuda' err.txt; then fail "int16: exit code $code: $(cat err.txt)"; fi

# The memory alone, and with the transport; profiles can be read again and laid over networks.
limited "$gar" fit --device cuda --budget 5s -o alone.json >out.txt 2>err.txt || fail "fit, alone: $? $(cat out.txt err.txt)"
grep -q 'gamma' out.txt || fail "fit, alone: $(cat out.txt)"
limited "$gar" predict -p alone.json -t star:4 --size 4MB >out.txt 2>err.txt || fail "predict: $(cat out.txt err.txt)"
code=0
limited "$gar" fit --device cuda --local 2 --budget 15s --save measured.json -o pair.json >out.txt 2>err.txt || code=$?
# A GPU that others use, too, may make the fit refuse what it measured, in these words.
if ((code == 3)) && grep -q '^gar: the measurements contradict the model' err.txt; then
  echo "fit: $(cat err.txt)"
else
  ((code == 0)) || fail "fit: exit code $code: $(cat out.txt err.txt)"
  limited "$gar" predict -p pair.json --size 4MB >out.txt || fail "predict: $(cat out.txt)"
  limited "$gar" bench --device cuda --local 2 -p pair.json -b 1MiB -e 16MiB -f 16 -n 3 --algo auto,cps >out.txt ||
    fail "bench -p: $(cat out.txt)"
  limited "$gar" profile show pair.json | grep -q '^device ' || fail "the profile does not say whose memory it is"
fi
python3 - <<'PY' || fail "measured.json is not as promised"
import json
document = json.load(open("measured.json"))
assert document["provenance"]["transport"] == "cuda-ipc" and document["provenance"]["device"]
assert {o["kind"] for o in document["observations"]} == {"collective", "reduction"}
PY
echo "fit: done"
