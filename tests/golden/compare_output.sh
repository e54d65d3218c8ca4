#!/usr/bin/env bash
# Compares the output of a command with a file: compare_output.sh EXPECTED COMMAND...
set -euo pipefail
expected=$1
shift
diff -u --label "$expected" --label actual "$expected" <("$@")
