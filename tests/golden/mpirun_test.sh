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
launcher mpirun.o "echo 'mpirun (OpenRTE) 4.1.4'"
launcher orterun "echo 'mpirun (Open MPI) 5.0.3'"
launcher hydra "echo 'HYDRA build details:'"
launcher srun "echo 'slurm 22.05.8'"
launcher mpiexec.silent "exec sleep 600"
export PATH=$work/bin:$PATH
cd "$work/run"
ours_o=$work/usr/lib/gar/libgar-preload-openmpi.so ours_m=$work/usr/lib/gar/libgar-preload-mpich.so

# What a run adds: where its ranks leave a sign.
without_sign() { sed -E 's/^(GAR_MPIRUN=)?[0-9]+\.[0-9]+\.[0-9a-f]{32}$/\1SIGN/'; }
# expect CODE 'standard output' 'in standard error' WORDS...
expect() {
  local code=0 out
  out=$(limited "$gar" mpirun "${@:4}" 2>"$work/err" </dev/null | without_sign) || code=$?
  [[ $code == "$1" ]] || fail "gar mpirun ${*:4}: exit code $code, not $1"
  [[ $out == "$2" ]] || fail "gar mpirun ${*:4} prints '$out', not '$2'"
  [[ -z $3 ]] || grep -qF -- "$3" <(in_one_line "$work/err") || fail "gar mpirun ${*:4} does not say '$3'"
}
b=$work/bin

# The command.
expect 0 "$b/mpirun.o -x GAR_MPIRUN=1 -x LD_PRELOAD=$ours_o -n 8 ./program 'two words' --check" '' \
  --dry-run -- mpirun.o -n 8 ./program 'two words' --check
expect 0 "$b/hydra -genv GAR_MPIRUN 1 -genv LD_PRELOAD $ours_m -n 8 ./program" '' --dry-run -- hydra -n 8 ./program
expect 0 "$b/orterun -x GAR_CHECK=1 -x GAR_DEBUG=INFO -x GAR_MIN_BYTES=4096 -x GAR_MPIRUN=1 -x LD_PRELOAD=$ours_o ./p" '' \
  --dry-run --check --debug --min-bytes 4KiB -- orterun ./p
expect 0 "env GAR_ALGO=ring GAR_MPIRUN=1 LD_PRELOAD=$ours_m $b/srun -n 4 ./p" '' --dry-run --algo ring --mpi mpich -- srun -n 4 ./p
expect 0 "$b/mpirun.o -x GAR_MPIRUN=1 -x LD_PRELOAD=$ours_o -n 1 ./a : -x GAR_MPIRUN=1 -x LD_PRELOAD=$ours_o -n 2 ./b" '' \
  --dry-run -- mpirun.o -n 1 ./a : -n 2 ./b
expect 0 "$b/hydra -genv GAR_MPIRUN 1 -genv LD_PRELOAD $ours_m -n 1 ./a : -n 2 ./b" '' --dry-run -- hydra -n 1 ./a : -n 2 ./b
# What stands behind the second -- is the program's.
expect 0 "$b/mpirun.o -x GAR_MPIRUN=1 -x LD_PRELOAD=$ours_o ./p -- --algo x" '' --dry-run -- mpirun.o ./p -- --algo x
# A path, and a file for the network; ranks get absolute paths.
cp "$root/data/topologies/six-servers.json" net.json
cp "$root/data/profiles/star6.json" profile.json
for flag in -p --profile -t --topology; do
  file=net.json
  [[ $flag == -t* || $flag == --t* ]] || file=profile.json
  expect 0 "$b/mpirun.o -x GAR_MPIRUN=1 -x GAR_TOPOLOGY=$work/run/$file -x LD_PRELOAD=$ours_o ./p" '' --dry-run $flag ./$file -- "$b/mpirun.o" ./p
done
# A profile is a network, too; a network is no profile.
expect 0 "$b/mpirun.o -x GAR_MPIRUN=1 -x GAR_TOPOLOGY=$work/run/profile.json -x LD_PRELOAD=$ours_o ./p" '' --dry-run -t profile.json -- mpirun.o ./p
expect 3 '' 'net.json: schema: is "gar.topology/1"; expected "gar.profile/2" or "gar.profile/1"' -p net.json -- mpirun.o ./p
expect 0 "$b/mpirun.o -x GAR_MPIRUN=1 -x GAR_TOPOLOGY=star:4 -x LD_PRELOAD=$ours_o ./p" '' --dry-run -t star:4 -- mpirun.o ./p
# The caller's settings are handed on, flags win; a library that the caller preloads comes behind ours.
GAR_TIMEOUT=5 GAR_DECISIONS='x y' GAR_CHECK=0 LD_PRELOAD='' \
  expect 0 "$b/mpirun.o -x GAR_CHECK=1 -x 'GAR_DECISIONS=x y' -x GAR_MPIRUN=1 -x GAR_TIMEOUT=5 -x LD_PRELOAD=$ours_o ./p" '' \
  --dry-run --check -- mpirun.o ./p
code=0
out=$(env LD_PRELOAD=/nowhere/theirs.so "$gar" mpirun --dry-run -- mpirun.o ./p 2>/dev/null) || code=$?
[[ $code == 0 && $out == "$b/mpirun.o -x GAR_MPIRUN=1 -x LD_PRELOAD=$ours_o:/nowhere/theirs.so ./p" ]] || fail "LD_PRELOAD of the user: $out"

# The run: the launcher's words, environment and exit code.
expect 7 "-x
GAR_CHECK=1
-x
GAR_MPIRUN=SIGN
-x
LD_PRELOAD=$ours_o
-n
2
./p
a b" '' --check -- mpirun.o -n 2 ./p 'a b'
! grep -q preload "$work/err" || fail "the launcher itself was preloaded"
# The same without --: everything behind the first word that is not ours is the command.
expect 7 "-x
GAR_CHECK=1
-x
GAR_MPIRUN=SIGN
-x
LD_PRELOAD=$ours_o
-n
2
./p
--check
--
-x" '' --check mpirun.o -n 2 ./p --check -- -x
expect 0 "$b/mpirun.o -x GAR_ALGO=ring -x GAR_MPIRUN=1 -x LD_PRELOAD=$ours_o -n 2 ./p" '' --algo ring --dry-run "$b/mpirun.o" -n 2 ./p
expect 0 "$b/hydra -genv GAR_CHECK 1 -genv GAR_COMPARE 1 -genv GAR_MPIRUN 1 -genv LD_PRELOAD $ours_m ./p" '' \
  --dry-run --compare --check hydra ./p
expect 7 "-n
2" "$ours_o" --min-bytes 0 --mpi openmpi -- srun -n 2
grep -qx 0 "$work/err" || fail "srun did not get GAR_MIN_BYTES=0"

# What is refused.
expect 2 '' 'nothing to run' --check
expect 2 '' 'nothing to run' --check --
expect 2 '' 'unknown option or argument: --quiet' --quiet mpirun.o ./p
expect 2 '' 'which MPI does srun start?' -- srun ./p
# Programs are told from launchers by their names, and never asked for their version.
cat >"$work/bin/program" <<END
#!/bin/bash
echo ran >>$work/program.ran
printenv LD_PRELOAD GAR_MPIRUN GAR_CHECK
printf '%s\n' "\$@"
exit 9
END
chmod +x "$work/bin/program"
expect 2 '' 'program is not the name of a launcher, and this is no MPI job; expected one of mpirun mpiexec' program in.txt
[[ ! -e $work/program.ran ]] || fail "the program was executed"
# A script around a launcher gets everything in its environment.
expect 0 "env GAR_MPIRUN=1 LD_PRELOAD=$ours_m $b/program ./p" '' --dry-run --mpi mpich program ./p
# Inside of a job the program is what runs, in the place of gar; the MPI is that of the job.
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 expect 9 "$ours_o
1
1
in.txt
--version" '' --check -- program in.txt --version
PMI_RANK=0 PMI_SIZE=2 expect 9 "$ours_m
SIGN
1" '' --check program
# Rank 0 looks whether its program was reached; what is wrong is said by one rank, not by all.
printf '#!/bin/sh\n' >"$work/bin/nothing"
chmod +x "$work/bin/nothing"
PMI_RANK=0 PMI_SIZE=2 expect 0 '' 'warning: rank 0 was not reached' nothing
PMI_RANK=1 PMI_SIZE=2 expect 3 '' '' -p nowhere.json program
[[ ! -s $work/err ]] || fail "rank 1 speaks"
PMI_RANK=0 PMI_SIZE=2 expect 3 '' 'nowhere.json: there is no such file' -p nowhere.json program
SLURM_PROCID=0 expect 2 '' 'which MPI does program start?' program
SLURM_PROCID=0 expect 0 "env GAR_MPIRUN=1 LD_PRELOAD=$ours_o $b/program" '' --dry-run --mpi openmpi program
# A launcher is one there, too.
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 expect 0 "$b/mpirun.o -x GAR_MPIRUN=1 -x LD_PRELOAD=$ours_o ./p" '' --dry-run mpirun.o ./p
expect 2 '' '--mpi mpich cannot be combined with mpirun.o, which starts Open MPI' --mpi mpich -- mpirun.o ./p
expect 2 '' '--mpi' --mpi lam -- mpirun.o ./p
expect 2 '' '--profile and --topology cannot be used together' -p star:4 -t star:4 -- mpirun.o ./p
expect 2 '' "--min-bytes 'few'" --min-bytes few -- mpirun.o ./p
expect 3 '' 'nowhere.json: there is no such file' -p nowhere.json -- mpirun.o ./p
echo '{"schema": "gar.topology/1", "root": ' >broken.json
expect 3 '' 'broken.json' -p broken.json -- mpirun.o ./p
expect 3 '' "unknown algorithm 'rign'" --algo rign -- mpirun.o ./p
expect 4 '' 'there is no such program on the PATH' -- no_such_mpirun ./p
expect 4 '' './no_such_mpirun: there is no such program' -- ./no_such_mpirun ./p
# With one library, its MPI is meant.
mv "$ours_o" "$work/kept"
expect 0 "env GAR_MPIRUN=1 LD_PRELOAD=$ours_m $b/srun ./p" '' --dry-run srun ./p
mv "$work/kept" "$ours_o"
# No rank was reached: a launcher that has started none says so, unless it has failed.
printf '#!/bin/sh\n[ "$1" != --version ] || echo "mpirun (Open MPI) 4.1.4"\n' >"$work/bin/mpirun.none"
chmod +x "$work/bin/mpirun.none"
expect 0 '' 'warning: no rank on this host was reached' mpirun.none -n 2 ./p
GAR_DISABLE=1 expect 0 '' '' mpirun.none -n 2 ./p
[[ ! -s $work/err ]] || fail "GAR_DISABLE=1 warns"
expect 7 '-n
2' '' --mpi openmpi --min-bytes 0 srun -n 2
! grep -q warning "$work/err" || fail "a failure is warned about"
# Then --check has compared nothing, and does not pass for a success; --compare warns. Ranks may be on other hosts alone.
expect 1 '' 'no rank on this host was reached' --check mpirun.none -n 2 ./p
grep -q 'so nothing was compared' <(in_one_line "$work/err") || fail "it is not said that nothing was compared"
expect 0 '' 'so nothing was compared' --compare mpirun.none -n 2 ./p
GAR_CHECK=1 expect 1 '' 'so nothing was compared' mpirun.none -n 2 ./p
GAR_DISABLE=1 expect 1 '' 'GAR_DISABLE=1 in the environment, so nothing was compared' --check mpirun.none -n 2 ./p
PMI_RANK=0 PMI_SIZE=2 expect 1 '' 'rank 0 was not reached' --check nothing
for elsewhere in '-H a,b' '--hostfile hosts' '-machinefile hosts'; do
  # shellcheck disable=SC2086
  expect 0 '' 'ranks on other hosts say for themselves' --check mpirun.none $elsewhere -n 2 ./p
done
SLURM_JOB_ID=7 expect 0 '' 'ranks on other hosts say for themselves' --check mpirun.none -n 2 ./p
# A launcher whose ranks leave signs: reached, and compared or not.
cat >"$work/bin/mpirun.signs" <<'END'
#!/bin/bash
[[ $1 != --version ]] || { echo "mpirun (Open MPI) 4.1.4"; exit 0; }
for word; do [[ $word != GAR_MPIRUN=* ]] || IFS='=.' read -r _ process file _ <<<"$word"; done
printf '%s' "${*: -1}" >"/proc/$process/fd/$file"
END
chmod +x "$work/bin/mpirun.signs"
expect 0 '' '' --check mpirun.signs ++
[[ ! -s $work/err ]] || fail "a check that has compared is warned about"
expect 1 '' "nothing was compared with Open MPI's own" --check mpirun.signs +
expect 0 '' "nothing was compared with Open MPI's own" --compare mpirun.signs +
expect 0 '' '' mpirun.signs +
[[ ! -s $work/err ]] || fail "what was not asked for is warned about"
# Variables are looked at before anything is started.
GAR_TIMEOUT=soon expect 3 '' 'GAR_TIMEOUT=soon in the environment: expected a number of seconds' mpirun.none ./p
GAR_EXPLORE=yes expect 3 '' 'GAR_EXPLORE=yes in the environment: expected 0 or 1' mpirun.none ./p
GAR_ALGO=rign expect 3 '' "GAR_ALGO=rign in the environment: unknown algorithm 'rign'" mpirun.none ./p
GAR_TOPOLOGY=nowhere.json expect 3 '' 'GAR_TOPOLOGY=nowhere.json in the environment: nowhere.json: there is no such file' mpirun.none ./p
GAR_DEBUG=all expect 3 '' 'GAR_DEBUG=all in the environment: expected INFO, WARN' mpirun.none ./p
GAR_ALGO=rign GAR_CHECK=7 expect 0 "$b/mpirun.o -x GAR_ALGO=ring -x GAR_CHECK=1 -x GAR_MPIRUN=1 -x LD_PRELOAD=$ours_o ./p" '' \
  --dry-run --algo ring --check mpirun.o ./p
# A launcher that does not answer is not waited for.
expect 2 '' 'which MPI does mpiexec.silent start?' -- mpiexec.silent ./p

# Libraries that are not there, or where they cannot be preloaded from.
rm "$ours_m"
expect 4 '' "there is no libgar-preload-mpich.so in $work/usr/lib/gar" -- hydra ./p
cp -r "$work/usr" "$work/my usr"
gar="$work/my usr/bin/gar"
expect 4 '' 'cannot be preloaded' -- mpirun.o ./p
