#!/usr/bin/env bash
# gar fit with MPI, for every one that is installed: fit_mpi_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/golden/fit_lib.sh
source "$(dirname "$0")/fit_lib.sh"
command -v python3 >/dev/null || skip "no python3"
gar=$(realpath "$1")
golden=$(realpath "$2")/tests/golden
cd "$work"
use_mpi
mapfile -t mpis < <(installed_mpis "$gar")
((${#mpis[@]})) || skip "no MPI"

# Started by mpirun, through messages, with what is held out, the MPI library's own AllReduce among it.
messages_measured() {
  python3 "$golden/fit_check.py" "$1" 3 validated messages && python3 - "$1" <<'PY'
import json, sys
cells = json.load(open(sys.argv[1]))["observations"]
assert any(c.get("native") or c.get("is_native") for c in cells), "nothing native"
PY
}
# Started by gar, through shared memory, on two pretended hosts of two ranks.
tree_measured() {
  python3 - "$1" <<'PY'
import json, sys
document = json.load(open(sys.argv[1]))
assert document["provenance"]["transport"] == "shm+mpi" and document["provenance"]["mpi"], document["provenance"]
sets = {tuple(c["servers"]) if isinstance(c["servers"], list) else tuple(range(c["servers"])) for c in document["observations"]}
assert {(0, 1), (0, 2), (0, 1, 2, 3)} <= sets, sets
PY
}
measures_messages() {
  measures 4 messages_measured messages.json "mpirun.$1" -n 3 "$gar" fit --transport mpi --sizes 4kB,100kB --validate
}
measures_tree() {
  GAR_FAKE_HOSTS=2 measures 3 tree_measured tree.json "$gar" fit --local 4 --mpi "$1" --sizes 4kB,100kB
}
# Each way once; with GAR_TEST_FULL=1 (make test-full) both with every MPI.
if [[ -n $is_full ]]; then
  for mpi in "${mpis[@]}"; do
    measures_messages "$mpi"
    measures_tree "$mpi"
  done
else
  measures_messages "${mpis[0]}"
  measures_tree "${mpis[-1]}"
fi
for mpi in "${mpis[@]}"; do
  # Wrong use is complained about once.
  complains_once "$mpi" 2 "$gar" fit --local 2
  complains_once "$mpi" 1 "$gar" fit
  grep -q '^gar: gar fit needs at least two ranks' err.txt || fail "$mpi: one rank: $(cat err.txt)"
done
