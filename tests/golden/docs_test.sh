#!/usr/bin/env bash
# Runs the ```console blocks of the documents and compares them with what they show: docs_test.sh [--update] GAR ROOT
#
# In such a block, "$ command" lines are commands and the lines below what they print (standard output, then standard
# error). The commands of a document run one after the other in one directory, where `data` and `examples` lead to those folders.
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
update=''
if [[ $1 == --update ]]; then
  update=1
  shift
fi
root=$(realpath "$2")
use_program "$1"

# Prints the document with the output of its commands made anew.
render() {
  local in_block='' line
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ $line == '```console' ]]; then
      in_block=1
      echo "$line"
    elif [[ -n $in_block && $line == '```' ]]; then
      in_block=''
      echo "$line"
    elif [[ -z $in_block ]]; then
      echo "$line"
    elif [[ $line == '$ '* ]]; then
      run_command "$line" || true
    fi
  done
}

failed=0
blocks=0
for document in "$root/README.md" "$root"/docs/*.md; do
  grep -q '^```console$' "$document" || continue
  blocks=$((blocks + $(grep -c '^```console$' "$document")))
  rm -rf "$work/run"
  mkdir "$work/run"
  ln -s "$root/data" "$work/run/data"
  ln -s "$root/examples" "$work/run/examples"
  (cd "$work/run" && render <"$document" >"$work/actual")
  accept_or_compare "$update" "$document" "$work/actual" "${document#"$root"/}" || failed=1
done
((blocks)) || fail "no document has a console block: the documents or this test are broken"
exit $failed
