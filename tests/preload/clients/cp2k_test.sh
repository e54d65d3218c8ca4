#!/usr/bin/env bash
# CP2K (Fortran), energy and forces of a molecule by density functional theory: cp2k_test.sh GAR SOURCE_DIR
set -euo pipefail
# shellcheck source=tests/preload/clients/client.sh
source "$(dirname "$0")/client.sh"
needs mpirun.openmpi openmpi-bin
needs cp2k.psmp cp2k
export CP2K_DATA_DIR=/usr/share/cp2k
[[ -e $CP2K_DATA_DIR/BASIS_MOLOPT ]] || skip "there is no $CP2K_DATA_DIR/BASIS_MOLOPT (Debian: cp2k-data)"
cp "$source_dir/tests/preload/clients/ammonia.inp" "$work/input"

for name in without with checked; do
  CLIENT_CALLS=4000 runs $name cp2k.psmp -i ammonia.inp
  # The energy of every iteration and the total forces.
  grep -E '^ +[0-9]+ OT |ENERGY\| Total|SUM OF ATOMIC FORCES' "$work/$name.out" |
    awk '/OT /{ print $1, $2, $3, $(NF - 1); next } { print }' >"$work/$name.energies"
done
cmp "$work/without.energies" "$work/checked.energies" || fail "the energies differ while calls are compared"
same 1e-7 "$work/without.energies" "$work/with.energies"
