#!/usr/bin/env bash
# --device cuda where there is no CUDA, or no GPU: one clear line and exit code 4: device_test.sh GAR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
gar=$(realpath "$1")
verbs=("bench --device cuda --local 2" "fit --device cuda" "fit --device cuda --local 2"
  "reproduce fig:calc --device cuda --count 1000")

# refused GAR WORDS PATTERN: exit code 4, nothing on standard output, and one line that matches.
refused() {
  local code=0
  # shellcheck disable=SC2086
  limited "$1" $2 >"$work/out.txt" 2>"$work/err.txt" || code=$?
  ((code == 4)) || fail "gar $2: exit code $code: $(cat "$work/out.txt" "$work/err.txt")"
  [[ ! -s $work/out.txt ]] || fail "gar $2 prints: $(cat "$work/out.txt")"
  [[ $(in_one_line "$work/err.txt" | wc -l) == 1 ]] || fail "gar $2: not one message: $(cat "$work/err.txt")"
  grep -Eq "$3" <(in_one_line "$work/err.txt") || fail "gar $2: $(cat "$work/err.txt")"
}

# A program with nothing beside it.
cp "$gar" "$work/gar"
for verb in "${verbs[@]}"; do
  refused "$work/gar" "$verb" '^gar: --device cuda: built without CUDA; build with -DGAR_WITH_CUDA=ON where nvcc is'
done

# gar-cuda without a GPU. Where there is one, tests/cuda/cli_test.sh runs for real.
[[ -x $(dirname "$gar")/gar-cuda ]] || exit 0
CUDA_VISIBLE_DEVICES='' limited "$(dirname "$gar")/gar-cuda" --version >/dev/null || fail "gar-cuda does not start"
export CUDA_VISIBLE_DEVICES=''
for verb in "${verbs[@]}"; do
  refused "$gar" "$verb" '^gar: --device cuda: there is no GPU: .+'
done
