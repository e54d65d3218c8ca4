#!/usr/bin/env bash
# gar demo: at most 25 lines of at most 80 columns, the last one with one number: demo_test.sh GAR SOURCE_DIRECTORY
# The virtual cluster is that of tests/testbed.
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
use_program "$1"
cd "$work"
mkdir tmp
export TMPDIR=$work/tmp
fail() {
  echo "demo_test: $*"
  cat out err 2>/dev/null
  exit 1
}
# shows PLACE 'last line'
shows() {
  limited gar demo --on "$1" >out 2>err || fail "--on $1: exit code $?"
  (($(wc -l <out) <= 25)) || fail "--on $1: more than 25 lines"
  ! grep -Eq '.{81}' out || fail "--on $1: a line is longer than 80 columns"
  tail -n 1 out | grep -Eq "$2" || fail "--on $1: the last line is not like '$2'"
  grep -q 'proved correct' out || fail "--on $1: no proof"
}
shows simulator '^[0-9]+\.[0-9]+ times as fast as ring$'
gar demo --on simulator --json | grep -q '"schema": "gar.demo/1"' || fail "no document"
if [[ -z $(installed_mpis "$1") ]]; then
  shows processes '^[0-9.]+ [mnu]?s with gar; there is no MPI to compare with$'
elif [[ $(id -u) != 0 ]]; then
  shows processes '^[0-9]+\.[0-9]+ times as fast as (Open MPI|MPICH).s own AllReduce$'
else
  # A copy of the program has no testbed/cluster beside it: it says so, and goes on without.
  mkdir copy
  cp "$(realpath "$1")"* copy
  PATH=$work/copy:$PATH
  shows auto '^[0-9]+\.[0-9]+ times as fast as (Open MPI|MPICH).s own AllReduce$'
  tr '\n' ' ' <out | grep -Eq '\(no virtual cluster: (there is no testbed/cluster .*|.* needs Open MPI)\)' ||
    fail "it does not say that there is no virtual cluster"
fi
grep -q '^  \$ gar fit --local 4 ' out || fail "nothing is fitted"
grep -Eq '^  gar \(.*\) +[0-9.]+ [mnu]?s$' out || fail "nothing runs"
# Nothing is left.
[[ -z $(find "$TMPDIR" -maxdepth 1 -name 'gar-demo-*') ]] || fail "a folder is left"
