#!/usr/bin/env bash
# Ctrl-C ends a simulation with partial results and a valid trace: simulate_interrupt_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
set -m # jobs of a script without job control ignore Ctrl-C
gar=$(realpath "$1")
cd "$work"

# has_begun PID: a part of the trace is there; fails for good when the program has ended. The file may have no name yet,
# so it is found among the files of this folder that the program has open.
has_begun() {
  local file
  for file in /proc/"$1"/fd/*; do
    [[ $(readlink "$file") == "$PWD"/* && ${file##*/} -gt 2 && -s $file ]] && return 0
  done
  kill -0 "$1" 2>/dev/null || fail "it ended before it could be interrupted: $(cat out err)"
  return 1
}

# interrupt ARGUMENTS...: interrupts a long simulation once its trace has begun
interrupt() {
  rm -f trace.json
  "$gar" simulate -t star:600 --algo ring --count 1e8 --jitter 0.3 --engine flows --trace trace.json "$@" >out 2>err &
  local pid=$! code=0
  wait_until has_begun $pid || fail "there is no trace: $(cat out err)"
  kill -INT $pid
  wait $pid || code=$?
  ((code == 4)) || fail "exit code $code instead of 4: $(cat err)"
  [[ $(tail -c 20 trace.json) == *'}' ]] || fail "the trace is cut off"
  grep -q '"complete":false' trace.json || fail "the trace does not say that it is partial"
  [[ -z $(compgen -G '.gar-*.part') ]] || fail "a temporary file is left"
}
interrupt
tr -s '\n ' '  ' <out | grep -q ' partial: interrupted at simulated .* messages had arrived ' || fail "not marked as partial: $(head -3 out)"
interrupt --json
grep -q '"complete": false' out || fail "the document is not marked as partial"
