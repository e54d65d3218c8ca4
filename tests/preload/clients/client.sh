# For the scripts beside it: programs that other people wrote, on 4 ranks of Open MPI, with and without the preload library.
# shellcheck shell=bash
# A script is called with GAR SOURCE_DIR, sources this, asks for what it `needs`, and `runs` its program three times:
#   runs without PROGRAM...     on the MPI library alone
#   runs with PROGRAM...        with every call that can be taken over
#   runs checked PROGRAM...     the same, each call compared with the MPI library's own
# The output is in $work/NAME.out and $work/NAME.err; $work/NAME is the directory in which it ran, a copy of $work/input.
gar=$(realpath "$1")
# shellcheck disable=SC2034
source_dir=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/input"
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl=self,vader OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
for name in "${!GAR_@}" LD_PRELOAD; do unset "$name"; done

fail() {
  echo "$(basename "$0"): $*"
  for name in without with checked; do
    [[ -e $work/$name.err ]] || continue
    echo "--- $name: the last lines"
    tail -n 5 "$work/$name.out" "$work/$name.err"
  done
  exit 1
}
skip() {
  echo "$(basename "$0"): skipped: $*"
  exit 77
}
# needs COMMAND PACKAGE
needs() { command -v "$1" >/dev/null || skip "there is no $1 (Debian: $2)"; }

runs() {
  local name=$1 launcher=(mpirun.openmpi -n 4)
  shift
  case $name in
    with) launcher=("$gar" mpirun --min-bytes 0 -- "${launcher[@]}") ;;
    checked) launcher=("$gar" mpirun --check --min-bytes 0 -- "${launcher[@]}") ;;
  esac
  cp -r "$work/input" "$work/$name"
  (cd "$work/$name" && timeout -k 10 300 "${launcher[@]}" "$@" >"$work/$name.out" 2>"$work/$name.err" \
    </dev/null) || fail "$1 $name: exit code $?"
  case $name in
    with)
      [[ $(grep -c '^gar: ' "$work/$name.err") == 1 ]] || fail "not one line of gar's"
      grep -Eq '^gar: [1-9][0-9]* of [0-9]+ calls taken over' "$work/$name.err" || fail "nothing was taken over"
      ;;
    checked) check_compared "$1" ;;
  esac
}

check_compared() {
  local line number
  # It may also say which calls it leaves to an MPI library that is wrong.
  line=$(grep -h '^gar: ' "$work/checked.err" | grep -Ev 'all such calls are left to it|calls taken over' || true)
  [[ $line == 'gar: GAR_CHECK: '*' compared on 4 ranks, 0 differences' ]] || fail "the comparison says: '$line'"
  number=$(sed -E 's/^gar: GAR_CHECK: ([0-9,]+) .*/\1/; s/,//g' <<<"$line")
  ((number >= ${CLIENT_CALLS:-1})) || fail "$number calls were taken over, at least ${CLIENT_CALLS:-1} are expected"
  echo "$(basename "$1"): ${line#gar: GAR_CHECK: }"
}

# same TOLERANCE FILE FILE: the same words, numbers within a relative tolerance of each other
same() {
  awk -v tolerance="$1" '
    function is_number(x) { return x ~ /^[-+]?[0-9]*\.?[0-9]+([eEdD][-+]?[0-9]+)?$/ }
    function size(x) { return x < 0 ? -x : x }
    NR == FNR { expected[FNR] = $0; lines = FNR; next }
    {
      count = split(expected[FNR], e, " ")
      bad = count != NF
      for (i = 1; i <= NF && !bad; ++i) {
        if ($i == e[i]) continue
        bad = !is_number($i) || !is_number(e[i]) || size($i - e[i]) > tolerance * (size(e[i]) + size($i))
      }
      if (bad) { print "without: " expected[FNR]; print "with:    " $0; failed = 1; exit 1 }
      seen = FNR
    }
    END { if (failed) exit 1; if (seen != lines || lines == 0) { print lines " lines without, " seen " with"; exit 1 } }
  ' "$2" "$3" || fail "the results differ"
}
