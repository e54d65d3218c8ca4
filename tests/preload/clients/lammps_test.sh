#!/usr/bin/env bash
# LAMMPS, its example in.peptide: lammps_test.sh GAR SOURCE_DIR
set -euo pipefail
# shellcheck source=tests/preload/clients/client.sh
source "$(dirname "$0")/client.sh"
needs mpirun.openmpi openmpi-bin
needs lmp lammps
example=/usr/share/lammps/examples/peptide
[[ -e $example/in.peptide ]] || skip "there is no $example/in.peptide (Debian: lammps-examples)"
cp "$example/data.peptide" "$work/input"
# 100 steps instead of 300: two seconds.
sed -E 's/^run[[:space:]].*/run 100/' "$example/in.peptide" >"$work/input/in.peptide"

for name in without with checked; do
  CLIENT_CALLS=400 runs $name lmp -in in.peptide -log none
  # Energies, temperature and pressure every 50 steps, with four decimals.
  grep -E '^ *(TotEng|PotEng|E_dihed|E_coul) ' "$work/$name.out" >"$work/$name.thermo"
done
# What is handed to the program while we compare is the MPI library's: to the last digit. Ours may round otherwise, which
# 100 steps of molecular dynamics make larger, but not much.
cmp "$work/without.thermo" "$work/checked.thermo" || fail "the thermodynamic output differs while calls are compared"
same 1e-6 "$work/without.thermo" "$work/with.thermo"
