#!/usr/bin/env bash
# Where programs and libraries look for others: absolute folders, or folders relative to the file itself. An empty or a relative
# element would be the current directory, in which anybody may have put a library: runpath_check.sh FOLDER
set -euo pipefail
command -v readelf >/dev/null || {
  echo "skipped: no readelf"
  exit 77
}
num_files=0
bad=()
while IFS= read -r -d '' file; do
  [[ $(head -c 4 "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
  num_files=$((num_files + 1))
  while IFS= read -r path; do
    # An end of line is lost where read splits, an empty last element is not.
    IFS=: read -ra elements <<<"$path:end"
    for element in "${elements[@]:0:${#elements[@]}-1}"; do
      # shellcheck disable=SC2016
      [[ $element == /* || $element == '$ORIGIN' || $element == '$ORIGIN/'* ]] || bad+=("$file: '$element' in '$path'")
    done
  done < <(readelf -d "$file" 2>/dev/null | sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]$/\2/p')
done < <(find "$1" -type f \( -perm -u+x -o -name '*.so' -o -name '*.so.*' \) -not -path '*/CMakeFiles/*' -print0)
((num_files)) || {
  echo "runpath_check.sh: there are no programs in $1"
  exit 1
}
if ((${#bad[@]})); then
  printf '%s\n' "${bad[@]}"
  exit 1
fi
echo "$num_files files"
