# The head of every golden script: source it first, then use what is below. Sets $work, a folder that goes away with the
# script, and an environment in which the program's output depends on nothing but its arguments.
# shellcheck shell=bash
set -euo pipefail
script=$(basename "$0" .sh)
export NO_COLOR=1 LC_ALL=C.UTF-8
# What make test-full asks for.
is_full=${GAR_TEST_FULL:-}
for name in "${!GAR_@}" LD_PRELOAD; do unset "$name"; done
work=$(mktemp -d)
clean_up() {
  local job
  for job in $(jobs -p); do kill -KILL "$job" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT

fail() {
  echo "$script: $*"
  exit 1
}
skip() {
  echo "$script: skipped: $*"
  exit 77
}

# in_one_line FILE: messages that were broken to fit 80 columns.
in_one_line() { sed -z 's/\n     / /g' "$1"; }

# limited COMMAND...: ends what hangs. The limit is no statement about speed: a busy machine may need most of it.
limited() { timeout -k 10 300 "$@"; }

# wait_until COMMAND...: asks again and again until the command succeeds; gives up when a machine cannot be that slow.
wait_until() {
  local i
  for ((i = 0; i < 6000; i++)); do
    if "$@"; then return 0; fi
    sleep 0.05
  done
  return 1
}

# The environment for mpirun in a container: as root, on the loopback interface, with more ranks than cores.
use_mpi() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo UCX_NET_DEVICES=lo
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
}

# installed_mpis GAR: the MPIs whose mpirun is installed and for which the program was built.
installed_mpis() {
  local mpi
  for mpi in openmpi mpich; do
    if [[ -x $(dirname "$1")/gar-$mpi ]] && command -v "mpirun.$mpi" >/dev/null; then echo $mpi; fi
  done
}

# complains_once MPI RANKS COMMAND...: a wrong command line ends the job with code 2 and one line of ours in err.txt.
# Open MPI ends a job with the first rank that fails, which may be before rank 0 has said why. So it is asked twice: for
# the code, and, with the ranks left alone, for the line.
complains_once() {
  local mpi=$1 ranks=$2 code=0 lines
  shift 2
  limited "mpirun.$mpi" -n "$ranks" "$@" >out.txt 2>err.txt || code=$?
  lines=$(grep -c '^gar: ' err.txt || true)
  ((code == 2)) || fail "$mpi: $*: exit code $code, not 2: $(cat err.txt)"
  if [[ $mpi == openmpi ]]; then
    ((lines <= 1)) || fail "$mpi: $*: $lines complaints: $(cat err.txt)"
    limited mpirun.openmpi --mca orte_abort_on_non_zero_status 0 -n "$ranks" "$@" >out.txt 2>err.txt || true
    lines=$(grep -c '^gar: ' err.txt || true)
  fi
  ((lines == 1)) || fail "$mpi: $*: $lines complaints, not one: $(cat err.txt)"
}

# run_command LINE: for transcripts and documents. The line is "$ " and a command for bash; it is printed, and below it
# what the command prints: standard output, then standard error. Ends with the code of the command.
run_command() {
  local code=0
  echo "$1"
  bash -c "${1#'$ '}" >"$work/out" 2>"$work/err" </dev/null || code=$?
  cat "$work/out" "$work/err"
  return $code
}

# use_program GAR: commands find the program as `gar`.
use_program() {
  mkdir "$work/bin"
  ln -s "$(realpath "$1")" "$work/bin/gar"
  export PATH="$work/bin:$PATH"
}

# accept_or_compare UPDATE EXPECTED ACTUAL NAME: replaces the expectation when UPDATE is not empty, or shows how it
# differs and fails.
accept_or_compare() {
  if cmp -s "$2" "$3"; then
    return 0
  elif [[ -n $1 ]]; then
    cp "$3" "$2"
    echo "updated $4"
  else
    diff -u --label "$4" --label actual "$2" "$3" || true
    echo "The program's output differs from $4; when the new one is right: make golden"
    return 1
  fi
}
