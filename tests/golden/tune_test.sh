#!/usr/bin/env bash
# gar tune: what it prints and keeps, between threads and with every MPI that is installed: tune_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
gar=$(realpath "$1")
cd "$work"
use_mpi

# the_file FOLDER: the only one in it
the_file() {
  local files=("$1"/decisions-*.json)
  [[ ${#files[@]} == 1 && -f ${files[0]} ]] || fail "not one file in $1: $(ls -A "$1" 2>&1)"
  echo "${files[0]}"
}

# Threads: three sizes, a line for each, and a file that profile show prints in the same lines.
export GAR_DECISIONS=$work/kept
limited "$gar" tune --local 2 --transport threads --sizes 1KiB,8,256KiB >out.txt 2>err.txt ||
  fail "exit code $?: $(cat out.txt err.txt)"
[[ $(grep -Ec '^ +(8|1024|262144) ' out.txt) == 3 ]] || fail "not three lines: $(cat out.txt)"
file=$(the_file "$work/kept")
grep -qF "# kept in $file" out.txt || fail "it is not said where the decisions are: $(cat out.txt)"
limited "$gar" profile show "$file" >shown.txt || fail "profile show: exit code $?"
for line in 8 1024 262144; do
  diff <(grep -E "^ +$line " out.txt) <(grep -E "^ +$line " shown.txt) || fail "profile show says something else of $line bytes"
done
limited "$gar" profile show --json "$file" >shown.json || fail "profile show --json: exit code $?"
cmp "$file" shown.json || fail "profile show --json prints another document"

# Once more, another size: the old ones stay. A document on standard output.
limited "$gar" tune --local 2 --transport threads --count 16384 --json >out.json || fail "--json: exit code $?"
grep -q '"schema": "gar.decisions/1"' out.json || fail "no document: $(cat out.json)"
[[ $(grep -c '"from_bytes"' "$file") == 4 ]] || fail "not four size classes: $(cat "$file")"

# Garbage is replaced; a folder that cannot be is an error, and nothing is lost of what was printed.
echo garbage >"$file"
limited "$gar" tune --local 2 --transport threads --sizes 8 >out.txt 2>err.txt || fail "garbage: $(cat out.txt err.txt)"
"$gar" profile show "$file" >shown.txt || fail "the garbage is still there"
touch plain
code=0
GAR_DECISIONS=$work/plain/gar limited "$gar" tune --local 2 --transport threads --sizes 8 >out.txt 2>err.txt || code=$?
[[ $code == 4 ]] || fail "exit code $code, not 4"
grep -q 'the decisions are not kept: .*plain' <(in_one_line err.txt) || fail "it is not said why: $(cat err.txt)"
grep -Eq '^ +8 ' out.txt || fail "no line: $(cat out.txt)"
GAR_DECISIONS=0 limited "$gar" tune --local 2 --transport threads --sizes 8 >out.txt || fail "GAR_DECISIONS=0: exit code $?"
grep -q '^# not kept' out.txt || fail "it is not said that nothing is kept: $(cat out.txt)"

# The command line.
for arguments in "--local 1" "--sizes 0" "--sizes x" "--sizes ," "--count x" "--count 0" "--count 8 --size 8" "--local 0" "--local 2000" \
  "--calls 0" "--transport nccl" "--mpi lam"; do
  code=0
  # shellcheck disable=SC2086
  "$gar" tune --transport threads $arguments >out.txt 2>err.txt || code=$?
  [[ $code == 2 ]] || fail "$arguments: exit code $code, not 2: $(cat out.txt err.txt)"
done

# What cannot be tuned is refused once, before any rank is started.
for command in "env GAR_ALGO=ring $gar tune --local 2" "$gar tune --local 1"; do
  code=0
  # shellcheck disable=SC2086
  limited $command >out.txt 2>err.txt || code=$?
  [[ $code == 2 && ! -s out.txt && $(grep -c '^gar: ' err.txt) == 1 ]] || fail "$command: exit code $code: $(cat out.txt err.txt)"
done

# With MPI its own AllReduce takes part, and a job that explores starts with what was found.
mapfile -t mpis < <(installed_mpis "$gar")
for mpi in "${mpis[@]}"; do
  export GAR_DECISIONS=$work/$mpi
  limited "$gar" tune --local 2 --mpi "$mpi" --sizes 1KiB,128KiB >out.txt 2>err.txt || fail "$mpi: $(cat out.txt err.txt)"
  [[ $(grep -Ec '^ +(1024|131072) ' out.txt) == 2 && $(grep -Ec '^ {12}[a-z].* native [0-9]|^ {12}native [0-9]' out.txt) -ge 1 ]] || fail "$mpi: native takes no part: $(cat out.txt)"
  file=$(the_file "$work/$mpi")
  winner=$(sed -nE 's/.*"winner": "(.*)",/\1/p' "$file" | head -n 1)
  GAR_EXPLORE=1 GAR_DEBUG=INFO limited "mpirun.$mpi" -n 2 "$gar" bench --algo auto --sizes 1KiB -n 5 -w 5 >out.txt 2>err.txt ||
    fail "$mpi: bench: $(cat out.txt err.txt)"
  # Later it may have found that times have changed.
  grep -E '^gar: all_reduce of 1024\.\.2047 bytes, .* by measurement; .* in 1 calls$' err.txt | grep -qF ": $winner by measurement" ||
    fail "$mpi: a job does not start with $winner: $(cat out.txt err.txt)"
done
