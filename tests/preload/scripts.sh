# For the test scripts beside it, called with GAR SOURCE_DIR BUILD_DIR.
# shellcheck shell=bash
gar=$(realpath "$1")
# shellcheck disable=SC2034
source_dir=$(realpath "$2")
build=$(realpath "$3")
libraries=$(dirname "$gar")/../lib/gar
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 UCX_LOG_LEVEL=error
export OMPI_MCA_btl=self,vader OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1 UCX_NET_DEVICES=lo
is_full=${GAR_TEST_FULL:-}
for name in "${!GAR_@}" LD_PRELOAD; do unset "$name"; done
cd "$work" || exit 1
# Standard input that is open and silent. MPICH's mpirun tells the first rank when its own input ends, and dies of SIGPIPE when a program
# that is no MPI program, such as true, is over before that.
mkfifo stdin
exec 0<>stdin

fail() {
  echo "$(basename "$0"): $*"
  head -n 30 out err 2>/dev/null || true
  exit 1
}
# The MPIs with everything that is needed.
flavours=()
for flavour in openmpi mpich; do
  [[ -e $libraries/libgar-preload-$flavour.so && -x $build/tests/preload/preload_${flavour}_life ]] || continue
  if command -v "mpirun.$flavour" >/dev/null; then flavours+=("$flavour"); fi
done
((${#flavours[@]})) || {
  echo "skipped: no preload library, or no mpirun"
  exit 77
}
# for_this FLAVOUR: whether the next case is for this MPI. Much of a case is the start of mpirun, and what it shows depends little
# on the MPI: with two of them each has every other case, and all only with GAR_TEST_FULL=1 (make test-full).
declare -A num_cases=()
for_this() {
  local first=0
  [[ $1 == "${flavours[0]}" ]] || first=1
  num_cases[$1]=$((${num_cases[$1]:-0} + 1))
  [[ -n $is_full ]] || (((num_cases[$1] + first) % ${#flavours[@]} == 0))
}
# program FLAVOUR STEM
program() { echo "$build/tests/preload/preload_$1_$2"; }

# runs CODE COMMAND...: the exit code is CODE (or not 0, when that is "error")
runs() {
  local expected=$1 code=0
  shift
  timeout -k 10 300 "$@" >out 2>err || code=$?
  case $expected in
    error) ((code != 0 && code != 124 && code != 137)) || fail "$*: exit code $code, not an error" ;;
    *) ((code == expected)) || fail "$*: exit code $code, not $expected" ;;
  esac
}
# says 'regular expression': exactly one line of ours, and it is this
says() {
  [[ $(grep -c '^gar: ' err) == 1 ]] || fail "not one line of gar's"
  grep -Eq -- "^gar: .*$1" err || fail "gar does not say '$1'"
}
results_are_right() { ! grep -q FAILED out err || fail "wrong results"; }
