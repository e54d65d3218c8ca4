#!/usr/bin/env bash
# Code in the documents comes from the examples: snippets_test.sh GAR ROOT
#
# The lines of a block that starts with "// examples/NAME", or "# examples/NAME" in Python, stand in that file, in this order; "..." stands for what is
# left out. Indentation does not count.
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
root=$(realpath "$2")
failed=0
blocks=0

# Is every line of standard input found in the file, one after the other?
check() {
  local document=$1 example=$2 at=0 line number
  mapfile -t lines < <(sed 's/^ *//' "$root/$example")
  while IFS= read -r line; do
    line=${line#"${line%%[! ]*}"}
    [[ -z $line || $line == ... ]] && continue
    for ((number = at; number < ${#lines[@]}; ++number)); do
      [[ ${lines[number]} == "$line" ]] && break
    done
    if ((number == ${#lines[@]})); then
      echo "$document: not in $example (or not after what stands before it): $line"
      return 1
    fi
    at=$((number + 1))
  done
}

for document in "$root/README.md" "$root"/docs/*.md; do
  name=${document#"$root"/}
  block='' example='' is_inside=''
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ -z $is_inside && ($line == '```cpp' || $line == '```c' || $line == '```python') ]]; then
      is_inside=1 block='' example=''
    elif [[ -n $is_inside && $line == '```' ]]; then
      is_inside=''
      [[ -n $example ]] || continue
      blocks=$((blocks + 1))
      check "$name" "$example" <<<"$block" || failed=1
    elif [[ -n $is_inside && -z $block && ($line == '// examples/'* || $line == '# examples/'*) ]]; then
      example=${line#* }
    elif [[ -n $is_inside ]]; then
      block+=$line$'\n'
    fi
  done <"$document"
done
((blocks)) || fail "no document shows a part of an example: the documents or this test are broken"
exit $failed
