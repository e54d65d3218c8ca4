#!/usr/bin/env bash
# Runs the ```console blocks of the documents and compares them with what they show: docs_test.sh [--update] GAR ROOT
#
# In such a block, "$ command" lines are commands and the lines below what they print (standard output, then standard
# error). The commands of a document run one after the other in one directory, where `data` leads to data/.
set -euo pipefail
update=''
if [[ $1 == --update ]]; then
  update=1
  shift
fi
gar=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$gar" "$work/bin/gar"
export PATH="$work/bin:$PATH" NO_COLOR=1 LC_ALL=C COLUMNS=120

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
      echo "$line"
      bash -c "${line#'$ '}" >"$work/out" 2>"$work/err" </dev/null || true
      cat "$work/out" "$work/err"
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
  (cd "$work/run" && render <"$document" >"$work/actual")
  if cmp -s "$document" "$work/actual"; then
    continue
  elif [[ -n $update ]]; then
    cp "$work/actual" "$document"
    echo "updated ${document#"$root"/}"
  else
    diff -u --label "${document#"$root"/}" --label actual "$document" "$work/actual" || true
    echo "${document#"$root"/} shows other output than the program; when the new one is right: make golden"
    failed=1
  fi
done
if ((blocks == 0)); then
  echo "no document has a console block: the documents or this test are broken"
  exit 1
fi
exit $failed
