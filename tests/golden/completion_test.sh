#!/usr/bin/env bash
# The completion scripts load, and complete: completion_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
gar=$(realpath "$1")
cd "$work"
touch plan.json 'my net.json'

"$gar" completion bash >gar.bash
bash -n gar.bash || fail "bash does not accept the script"
# shellcheck disable=SC1091
source gar.bash

# check 'words so far' 'what must be offered'...; the last word is the one at the cursor
check() {
  read -ra COMP_WORDS <<<"$1"
  [[ $1 == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _gar
  local offered=" ${COMPREPLY[*]} " word
  for word in "${@:2}"; do
    [[ $offered == *" $word "* ]] || fail "'$1' offers '${COMPREPLY[*]}', not '$word'"
  done
}
check 'gar comp' completion
check 'gar completion ' bash zsh fish
check 'gar completion z' zsh
check 'gar --col' --color
check 'gar --color al' always
check 'gar pre' predict
check 'gar predict --top' --topology
check 'gar predict -t sym' sym384 sym512
check 'gar predict -t tr' tree:
check 'gar predict --topology my' 'my net.json'
check 'gar predict -t ss24 --algo cps,ri' cps,ring
check 'gar predict --dtype bf' bfloat16
check 'gar predict --model ' genmodel abc
check 'gar topo ' show check
check 'gar topo show asy' asy384
check 'gar plan -o pl' plan.json
check 'gar topo import pl' plan.json
check 'gar verify pl' plan.json
check 'gar sim' simulate
check 'gar simulate --plan pl' plan.json
check 'gar simulate --engine ' auto flows classes
check 'gar simulate --de' --degrade
check 'gar compare -t ss24 --algo gentree,ri' gentree,ring
check 'gar mpi' mpirun
check 'gar mpirun --mpi ' openmpi mpich
check 'gar mpirun --profile pl' plan.json
check 'gar mpirun --min' --min-bytes
check 'gar profile ' show diff
check 'gar profile show pl' plan.json
check 'gar profile diff pl' plan.json
check 'gar predict -p pl' plan.json
check 'gar reproduce ta' table:gtplan table:gentreesimu
check 'gar reproduce planners fig' fig:hcps
# For bash a word ends at a colon.
COMP_WORDS=(gar reproduce table : gt)
COMP_CWORD=4
_gar
[[ ${COMPREPLY[*]} == gtplan ]] || fail "'gar reproduce table:gt' offers '${COMPREPLY[*]}', not 'gtplan'"

for shell in zsh fish; do
  "$gar" completion $shell >"gar.$shell"
  if command -v $shell >/dev/null; then
    $shell -n "gar.$shell" || fail "$shell does not accept the script"
  fi
done
