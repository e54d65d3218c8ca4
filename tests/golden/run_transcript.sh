#!/usr/bin/env bash
# Compares the program with a transcript: run_transcript.sh [--update] GAR TRANSCRIPT
#
# A transcript is what a terminal would show. Lines that start with "$ " are commands for bash, the lines below are what
# they print (standard output, then standard error); "[exit N]" follows when a command ends with another code than 0.
# Lines that start with "#" before the first command are comments. Commands run in an empty directory where `gar` is
# the program and `data` and `golden` lead to data/ and tests/golden/.
set -euo pipefail
update=''
if [[ $1 == --update ]]; then
  update=1
  shift
fi
gar=$(realpath "$1")
transcript=$(realpath "$2")
root=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/run"
ln -s "$gar" "$work/bin/gar"
ln -s "$root/data" "$work/run/data"
ln -s "$root/tests/golden" "$work/run/golden"
export PATH="$work/bin:$PATH" NO_COLOR=1 LC_ALL=C COLUMNS=120
cd "$work/run"

in_header=1
while IFS= read -r line || [[ -n $line ]]; do
  if [[ $line == '$ '* ]]; then
    in_header=''
    echo "$line"
    code=0
    bash -c "${line#'$ '}" >"$work/out" 2>"$work/err" </dev/null || code=$?
    cat "$work/out" "$work/err"
    ((code == 0)) || echo "[exit $code]"
  elif [[ -n $in_header ]]; then
    echo "$line"
  fi
done <"$transcript" >"$work/actual"

if cmp -s "$transcript" "$work/actual"; then
  exit 0
elif [[ -n $update ]]; then
  cp "$work/actual" "$transcript"
  echo "updated $(basename "$transcript")"
else
  diff -u --label expected --label actual "$transcript" "$work/actual" || true
  echo "The output differs from tests/golden/$(basename "$transcript"); when the new one is right: make golden"
  exit 1
fi
