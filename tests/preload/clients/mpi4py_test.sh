#!/usr/bin/env bash
# mpi4py: allreduces from 1 B to 64 MB and more, checked against numpy: mpi4py_test.sh GAR SOURCE_DIR
set -euo pipefail
# shellcheck source=tests/preload/clients/client.sh
source "$(dirname "$0")/client.sh"
needs mpirun.openmpi openmpi-bin
/usr/bin/python3 -c 'import mpi4py, numpy' 2>/dev/null || skip "no mpi4py and numpy (Debian: python3-mpi4py, python3-numpy)"
script=$source_dir/tests/preload/mpi4py_client.py

# It knows by itself what must come out, so nothing has to be compared with a run without the library.
runs with /usr/bin/python3 "$script"
CLIENT_CALLS=$(sed -n 's/^calls //p' "$work/with.out")
[[ -n $CLIENT_CALLS ]] || fail "the program does not say how many calls it made"
runs checked /usr/bin/python3 "$script"
