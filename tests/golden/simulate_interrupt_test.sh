#!/usr/bin/env bash
# Ctrl-C ends a simulation with partial results and a valid trace: simulate_interrupt_test.sh GAR SOURCE_DIR
set -euo pipefail
set -m # jobs of a script without job control ignore Ctrl-C
gar=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() {
  echo "simulate_interrupt_test: $*"
  exit 1
}

# interrupt ARGUMENTS...: interrupts a long simulation once its trace has begun
interrupt() {
  rm -f trace.json
  "$gar" simulate -t star:600 --algo ring --count 1e8 --jitter 0.3 --engine flows --trace trace.json "$@" >out 2>err &
  local pid=$! code=0
  for ((i = 0; i < 600; i++)); do
    for part in trace.json.*.part; do
      [[ -s $part ]] && break 2
    done
    kill -0 $pid 2>/dev/null || fail "it ended before it could be interrupted: $(cat out err)"
    sleep 0.1
  done
  kill -INT $pid
  wait $pid || code=$?
  ((code == 4)) || fail "exit code $code instead of 4: $(cat err)"
  [[ $(tail -c 20 trace.json) == *'}' ]] || fail "the trace is cut off"
  grep -q '"complete":false' trace.json || fail "the trace does not say that it is partial"
  [[ -z $(compgen -G 'trace.json.*.part') ]] || fail "a temporary file is left"
}
interrupt
grep -q '^partial: interrupted at simulated .* messages had arrived$' out || fail "not marked as partial: $(head -3 out)"
interrupt --json
grep -q '"complete": false' out || fail "the document is not marked as partial"
