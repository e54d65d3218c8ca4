#!/usr/bin/env bash
# A mpirun that hangs after its ranks have ended, as Open MPI's sometimes does when a rank was killed, is ended with words:
# hanging_mpirun_test.sh GAR SOURCE_DIRECTORY
set -euo pipefail
gar=$(realpath "$1")
if [[ ! -x $(dirname "$gar")/gar-openmpi ]] || ! real=$(command -v mpirun.openmpi); then
  echo "skipped: needs Open MPI"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/mpirun.openmpi" <<FAKE
#!/usr/bin/env bash
case " \$* " in *" --version "*) exec "$real" "\$@" ;; esac
sleep 0.5 & # a rank, which nobody waits for
exec sleep 600
FAKE
chmod +x "$work/mpirun.openmpi"
code=0
PATH=$work:$PATH "$gar" bench --local 2 --transport mpi --mpi openmpi --sizes 8 -n 1 -w 0 >"$work/out" 2>&1 || code=$?
cat "$work/out"
[[ $code == 4 ]] || { echo "expected exit code 4, not $code"; exit 1; }
grep -q "hangs although all of its ranks have ended" "$work/out"
