#!/usr/bin/env bash
# GROMACS, molecular dynamics of a box of water: gromacs_test.sh GAR SOURCE_DIR
set -euo pipefail
# shellcheck source=tests/preload/clients/client.sh
source "$(dirname "$0")/client.sh"
needs mpirun.openmpi openmpi-bin
needs gmx gromacs
needs gmx_mpi gromacs
cp "$source_dir"/tests/preload/clients/water.{top,mdp} "$work/input"
cd "$work/input"
{
  gmx solvate -cs spc216.gro -box 3 3 3 -p water.top -o water.gro
  gmx grompp -f water.mdp -c water.gro -p water.top -o water.tpr
} >"$work/log" 2>&1 </dev/null || {
  tail -n 20 "$work/log"
  fail "gmx could not make its input"
}

for name in without with checked; do
  CLIENT_CALLS=400 runs $name gmx_mpi mdrun -s water.tpr -ntomp 1 -reprod -notunepme -dlb no -noconfout -g md.log
  # The energies at the first step; later ones follow the order of sums.
  grep -A 4 -m 1 'Energies (kJ/mol)' "$work/$name/md.log" >"$work/$name.energies"
done
cmp "$work/without.energies" "$work/checked.energies" || fail "the energies differ while calls are compared"
same 1e-5 "$work/without.energies" "$work/with.energies"
