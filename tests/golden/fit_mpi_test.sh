#!/usr/bin/env bash
# gar fit with MPI, for every one that is installed: fit_mpi_test.sh GAR SOURCE_DIR
set -euo pipefail
gar=$(realpath "$1")
check=$(realpath "$2")/tests/golden/fit_check.py
programs=$(dirname "$gar")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export NO_COLOR=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo UCX_NET_DEVICES=lo
export OMPI_MCA_mpi_yield_when_idle=1
fail() {
  echo "fit_mpi_test: $*"
  exit 1
}
limited() { timeout -k 5 60 "$@"; }
command -v python3 >/dev/null || exit 77

# A busy machine may make the fit refuse what was measured, in these words.
measured() {
  local code=0
  limited "$@" >out.txt 2>err.txt || code=$?
  ((code == 0)) || { ((code == 3)) && grep -q 'gar: the measurements contradict the model' err.txt; } ||
    fail "$mpi: exit code $code: $(cat out.txt err.txt)"
}
tried=0
for mpi in openmpi mpich; do
  [[ -x $programs/gar-$mpi ]] && command -v mpirun.$mpi >/dev/null || continue
  tried=1
  extra=()
  [[ $mpi == openmpi ]] && extra=(--oversubscribe)
  # Started by mpirun, through messages; the library's own AllReduce is among what is held out.
  measured mpirun.$mpi "${extra[@]}" -n 3 "$gar" fit --budget 8s --transport mpi --sizes 4kB,100kB --validate \
    --save messages.json
  python3 "$check" messages.json 3 validated messages || fail "$mpi: messages.json is not as promised"
  python3 -c '
import json
cells = json.load(open("messages.json"))["observations"]
assert any(c.get("native") or c.get("is_native") for c in cells), "nothing native"' || fail "$mpi: no native"
  # Started by gar, through shared memory, on two pretended hosts of two ranks.
  GAR_FAKE_HOSTS=2 measured "$gar" fit --local 4 --mpi $mpi --budget 6s --sizes 4kB,100kB --save tree.json
  python3 -c '
import json
document = json.load(open("tree.json"))
assert document["provenance"]["transport"] == "shm+mpi" and document["provenance"]["mpi"], document["provenance"]
sets = {tuple(c["servers"]) if isinstance(c["servers"], list) else tuple(range(c["servers"])) for c in document["observations"]}
assert {(0, 1), (0, 2), (0, 1, 2, 3)} <= sets, sets' || fail "$mpi: tree.json is not as promised"
  # Wrong use is complained about once.
  code=0
  limited mpirun.$mpi "${extra[@]}" -n 2 "$gar" fit --local 2 >out.txt 2>err.txt || code=$?
  [[ $code == 2 && $(grep -c '^gar: ' err.txt) == 1 ]] || fail "$mpi: exit code $code: $(cat err.txt)"
  code=0
  limited mpirun.$mpi -n 1 "$gar" fit >out.txt 2>err.txt || code=$?
  [[ $code == 2 ]] && grep -q '^gar: gar fit needs at least two ranks' err.txt || fail "$mpi: one rank: $code: $(cat err.txt)"
done
((tried)) || exit 77
