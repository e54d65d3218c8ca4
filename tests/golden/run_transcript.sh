#!/usr/bin/env bash
# Compares the program with a transcript: run_transcript.sh [--update] GAR TRANSCRIPT
#
# A transcript is what a terminal would show. Lines that start with "$ " are commands for bash, the lines below are what
# they print (standard output, then standard error); "[exit N]" follows when a command ends with another code than 0.
# Lines that start with "#" before the first command are comments. Commands run in an empty directory where `gar` is
# the program and `data` and `golden` lead to data/ and tests/golden/.
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
update=''
if [[ $1 == --update ]]; then
  update=1
  shift
fi
transcript=$(realpath "$2")
root=$(realpath "$(dirname "$0")/../..")
use_program "$1"
mkdir "$work/run"
ln -s "$root/data" "$work/run/data"
ln -s "$root/tests/golden" "$work/run/golden"
cd "$work/run"

in_header=1
while IFS= read -r line || [[ -n $line ]]; do
  if [[ $line == '$ '* ]]; then
    in_header=''
    run_command "$line" || echo "[exit $?]"
  elif [[ -n $in_header ]]; then
    echo "$line"
  fi
done <"$transcript" >"$work/actual"
accept_or_compare "$update" "$transcript" "$work/actual" "tests/golden/$(basename "$transcript")"
