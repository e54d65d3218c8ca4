#!/usr/bin/env bash
# Compares the output of a command with a file: compare_output.sh EXPECTED COMMAND...
set -euo pipefail
expected=$1
shift
actual=$(mktemp)
trap 'rm -f "$actual"' EXIT
status=0
"$@" >"$actual" || status=$?
[[ $status -ne 77 ]] || exit 77
diff -u --label "$expected" --label actual "$expected" "$actual"
exit $status
