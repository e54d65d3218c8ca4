#!/usr/bin/env bash
# The pages of `make docs`, build/docs/index.html: the documents, the reference of the C++ and C interface (Doxygen), and where they
# can be made from what is built, the explorer page and reports of our own measurements. Fails where a link leads nowhere.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/docs
gar=build/release/bin/gar
GAR_VERSION=$(sed -n 's/^  VERSION //p' CMakeLists.txt)
export GAR_VERSION

# Reports stay as long as neither the program nor the measurements have changed.
mkdir -p "$out/reports"
find "$out" -mindepth 1 -maxdepth 1 ! -name reports -exec rm -rf {} +

doxygen docs/Doxyfile

notes=()
if [[ ! -x $gar ]]; then
  notes+=("the explorer page and the reports: $gar is not built (make build)")
  rm -f "$out"/reports/*
else
  if [[ ! -f build/web/gar.html ]]; then
    notes+=("the explorer page: build/web/gar.html is not built (make web)")
  elif ! "$gar" explore -p data/profiles/june.json --page build/web/gar.html -o "$out/gar.html" >/dev/null 2>"$out/errors"; then
    notes+=("the explorer page: $(tr '\n' ' ' <"$out/errors")")
  fi
  for file in data/measurements/*.json data/profiles/*.json; do
    grep -qE '"schema": *"gar\.(measurements|profile)/' "$file" || continue
    name=$(basename "$file" .json)
    page=$out/reports/$name.html
    [[ $page -nt $gar && $page -nt $file ]] && continue
    rm -f "$page"
    "$gar" report "$file" -o "$page" --title "What was measured: $name" >/dev/null 2>"$out/errors" ||
      notes+=("the report of $file: $(tr '\n' ' ' <"$out/errors")")
  done
fi
rm -f "$out/errors"
rmdir "$out/reports" 2>/dev/null || true

scripts/docs_pages.py "$out" "$GAR_VERSION" "${notes[@]}"
for note in "${notes[@]}"; do echo "docs: left out: $note" >&2; done
echo "$out/index.html"
