#!/usr/bin/env bash
# gar mpirun with launchers and libraries that are made up here, so that no MPI is needed: mpirun_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
root=$(realpath "$2")
fail() {
  echo "mpirun_test: $*"
  [[ ! -e $work/err ]] || cat "$work/err"
  exit 1
}

# An installation: bin/gar, and libraries that are never loaded.
mkdir -p "$work/usr/bin" "$work/usr/lib/gar" "$work/bin" "$work/run"
cp "$1" "$work/usr/bin/gar"
touch "$work/usr/lib/gar/libgar-preload-openmpi.so" "$work/usr/lib/gar/libgar-preload-mpich.so"
gar=$work/usr/bin/gar

# Launchers: what their --version says, and with which words and settings they were started.
launcher() {
  cat >"$work/bin/$1" <<END
#!/bin/bash
if [[ \$1 == --version ]]; then
  $2
  exit 0
fi
env -i A=b printf '%s\n' "\$@"
printenv LD_PRELOAD GAR_CHECK GAR_MIN_BYTES >&2
exit 7
END
  chmod +x "$work/bin/$1"
}
launcher ompirun "echo 'mpirun (OpenRTE) 4.1.4'"
launcher ompirun5 "echo 'mpirun (Open MPI) 5.0.3'"
launcher hydra "echo 'HYDRA build details:'"
launcher srun "echo 'slurm 22.05.8'"
launcher silent "exec sleep 600"
export PATH=$work/bin:$PATH
cd "$work/run"
ours_o=$work/usr/lib/gar/libgar-preload-openmpi.so ours_m=$work/usr/lib/gar/libgar-preload-mpich.so

# expect CODE 'standard output' 'in standard error' WORDS...
expect() {
  local code=0 out
  out=$(limited "$gar" mpirun "${@:4}" 2>"$work/err" </dev/null) || code=$?
  [[ $code == "$1" ]] || fail "gar mpirun ${*:4}: exit code $code, not $1"
  [[ $out == "$2" ]] || fail "gar mpirun ${*:4} prints '$out', not '$2'"
  [[ -z $3 ]] || grep -qF -- "$3" "$work/err" || fail "gar mpirun ${*:4} does not say '$3'"
}
b=$work/bin

# The command.
expect 0 "$b/ompirun -x LD_PRELOAD=$ours_o -n 8 ./program 'two words' --check" '' \
  --dry-run -- ompirun -n 8 ./program 'two words' --check
expect 0 "$b/hydra -genv LD_PRELOAD $ours_m -n 8 ./program" '' --dry-run -- hydra -n 8 ./program
expect 0 "$b/ompirun5 -x GAR_CHECK=1 -x GAR_DEBUG=INFO -x GAR_MIN_BYTES=4096 -x LD_PRELOAD=$ours_o ./p" '' \
  --dry-run --check --debug --min-bytes 4KiB -- ompirun5 ./p
expect 0 "env GAR_ALGO=ring LD_PRELOAD=$ours_m $b/srun -n 4 ./p" '' --dry-run --algo ring --mpi mpich -- srun -n 4 ./p
expect 0 "$b/ompirun -x LD_PRELOAD=$ours_o -n 1 ./a : -x LD_PRELOAD=$ours_o -n 2 ./b" '' \
  --dry-run -- ompirun -n 1 ./a : -n 2 ./b
expect 0 "$b/hydra -genv LD_PRELOAD $ours_m -n 1 ./a : -n 2 ./b" '' --dry-run -- hydra -n 1 ./a : -n 2 ./b
# What stands behind the second -- is the program's.
expect 0 "$b/ompirun -x LD_PRELOAD=$ours_o ./p -- --algo x" '' --dry-run -- ompirun ./p -- --algo x
# A path, and a file for the network; ranks get absolute paths.
cp "$root/data/topologies/six-servers.json" net.json
cp "$root/data/profiles/star6.json" profile.json
for flag in -p --profile -t --topology; do
  file=net.json
  [[ $flag == -t* || $flag == --t* ]] || file=profile.json
  expect 0 "$b/ompirun -x GAR_TOPOLOGY=$work/run/$file -x LD_PRELOAD=$ours_o ./p" '' --dry-run $flag ./$file -- "$b/ompirun" ./p
done
# A profile is a network, too; a network is no profile.
expect 0 "$b/ompirun -x GAR_TOPOLOGY=$work/run/profile.json -x LD_PRELOAD=$ours_o ./p" '' --dry-run -t profile.json -- ompirun ./p
expect 3 '' 'net.json: schema: is "gar.topology/1"; accepted: "gar.profile/2" or "gar.profile/1"' -p net.json -- ompirun ./p
expect 0 "$b/ompirun -x GAR_TOPOLOGY=star:4 -x LD_PRELOAD=$ours_o ./p" '' --dry-run -t star:4 -- ompirun ./p
# The caller's settings are handed on, flags win; a library that the caller preloads comes behind ours.
GAR_TIMEOUT=5 GAR_ALGO='x y' GAR_CHECK=0 LD_PRELOAD='' \
  expect 0 "$b/ompirun -x 'GAR_ALGO=x y' -x GAR_CHECK=1 -x GAR_TIMEOUT=5 -x LD_PRELOAD=$ours_o ./p" '' \
  --dry-run --check -- ompirun ./p
code=0
out=$(env LD_PRELOAD=/nowhere/theirs.so "$gar" mpirun --dry-run -- ompirun ./p 2>/dev/null) || code=$?
[[ $code == 0 && $out == "$b/ompirun -x LD_PRELOAD=$ours_o:/nowhere/theirs.so ./p" ]] || fail "LD_PRELOAD of the user: $out"

# The run: the launcher's words, environment and exit code.
expect 7 "-x
GAR_CHECK=1
-x
LD_PRELOAD=$ours_o
-n
2
./p
a b" '' --check -- ompirun -n 2 ./p 'a b'
! grep -q preload "$work/err" || fail "the launcher itself was preloaded"
expect 7 "-n
2" "$ours_o" --min-bytes 0 --mpi openmpi -- srun -n 2
grep -qx 0 "$work/err" || fail "srun did not get GAR_MIN_BYTES=0"

# What is refused.
expect 2 '' 'nothing to run' --check
expect 2 '' 'nothing to run' --check --
expect 2 '' 'come behind --' ompirun ./p
expect 2 '' 'not expected here: -n' ompirun -n 2 ./p
expect 2 '' 'which MPI does srun start?' -- srun ./p
expect 2 '' '--mpi mpich does not go with ompirun, which starts Open MPI' --mpi mpich -- ompirun ./p
expect 2 '' '--mpi' --mpi lam -- ompirun ./p
expect 2 '' 'only one of --profile and --topology' -p star:4 -t star:4 -- ompirun ./p
expect 2 '' "--min-bytes 'few'" --min-bytes few -- ompirun ./p
expect 3 '' 'nowhere.json: there is no such file' -p nowhere.json -- ompirun ./p
echo '{"schema": "gar.topology/1", "root": ' >broken.json
expect 3 '' 'broken.json' -p broken.json -- ompirun ./p
expect 3 '' "unknown algorithm 'rign'" --algo rign -- ompirun ./p
expect 4 '' 'there is no such program on the PATH' -- no_such_mpirun ./p
expect 4 '' './no_such_mpirun: there is no such program' -- ./no_such_mpirun ./p
# A launcher that does not answer is not waited for.
expect 2 '' 'which MPI does silent start?' -- silent ./p

# Libraries that are not there, or where they cannot be preloaded from.
rm "$ours_m"
expect 4 '' "there is no libgar-preload-mpich.so in $work/usr/lib/gar" -- hydra ./p
cp -r "$work/usr" "$work/my usr"
gar="$work/my usr/bin/gar"
expect 4 '' 'cannot be preloaded' -- ompirun ./p
