#!/usr/bin/env bash
# docs/environment.md is what the program writes, and the manual page has the same variables: environment_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
gar=$(realpath "$1")
source_dir=$(realpath "$2")

"$gar" manual --environment >"$work/environment.md"
diff -u "$source_dir/docs/environment.md" "$work/environment.md" ||
  fail "docs/environment.md is out of date; write it with: gar manual --environment >docs/environment.md"
"$gar" manual >"$work/gar.1"
"$gar" manual mpirun >"$work/gar-mpirun.1"
grep -q '^\.B GAR_CHECK$' "$work/gar-mpirun.1" || fail "the page of gar mpirun has no GAR_CHECK"
# Every verb has a page, which gar(1) names.
for verb in $("$gar" completion bash | sed -n "s/^ *'') values='\([^']*\)'.*/\1/p"); do
  [[ $verb != help ]] || continue
  "$gar" manual "$verb" >"$work/verb.1"
  grep -q '^\.SH SYNOPSIS$' "$work/verb.1" || fail "gar manual $verb prints no page"
  grep -q "^\.BR gar.-$verb (1)$" "$work/gar.1" || fail "gar(1) does not name gar-$verb(1)"
done
grep -q '^\.B GAR_TIMEOUT$' "$work/gar.1" || fail "the manual page has no GAR_TIMEOUT"
if grep -q 'GAR_BENCH_STARTED' "$work/gar.1"; then fail "the manual page has a variable that is not for users"; fi
# Nothing reads a variable past the table.
if grep -rnE 'getenv\("GAR_' "$source_dir/src" "$source_dir/apps"; then
  fail "read it through include/gar/environment.hpp"
fi
