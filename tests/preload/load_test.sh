#!/usr/bin/env bash
# Where the preload library takes its second part from: load_test.sh GAR SOURCE_DIR BUILD_DIR
set -euo pipefail
# shellcheck source=tests/preload/scripts.sh
source "$(dirname "$0")/scripts.sh"
planted=$build/tests/preload/preload_planted.so
chmod 755 .

# preloaded FLAVOUR PATH PROGRAM...: on 2 ranks
preloaded() {
  local options=(-x "LD_PRELOAD=$2" -x GAR_CHECK=1)
  [[ $1 == openmpi ]] || options=(-genv LD_PRELOAD "$2" -genv GAR_CHECK 1)
  runs 0 mpirun."$1" "${options[@]}" -n 2 "${@:3}"
  results_are_right
  ! grep -q PLANTED out err || fail "$2: foreign code was loaded"
}

for flavour in "${flavours[@]}"; do
  life=$(program "$flavour" life)
  name=libgar-preload-$flavour.so rest=libgar-preload-$flavour-rest.so
  own='the program runs on its own library'
  # fresh: a folder "lib" with both parts
  fresh() {
    rm -rf lib
    mkdir -m 755 lib
    cp "$libraries/$name" "$libraries/$rest" lib
    chmod 644 lib/*
  }

  # A relative path means the folder of the start, where the program does not stay.
  fresh
  mkdir -p elsewhere/lib
  cp "$planted" "elsewhere/lib/$rest"
  preloaded "$flavour" "lib/$name" "$life" elsewhere "$work/elsewhere"
  says ' 0 differences'
  preloaded "$flavour" "$work/lib/$name" "$life" elsewhere "$work/elsewhere"
  says ' 0 differences'
  # A link to the library leads to its own folder.
  ln -sf "../lib/$name" elsewhere/link.so
  cp "$planted" "elsewhere/$rest"
  preloaded "$flavour" elsewhere/link.so "$life" single
  says ' 0 differences'
  rm -r elsewhere

  # Others could have written it.
  chmod o+w "lib/$rest"
  preloaded "$flavour" "$work/lib/$name" "$life" single
  says "$work/lib/$rest can be written by everybody.*$own"
  fresh
  chmod o+w lib
  preloaded "$flavour" "$work/lib/$name" "$life" single
  says "$work/lib can be written by everybody.*$own"
  # The second part is a link into such a folder.
  fresh
  mkdir -m 777 open
  chmod 777 open
  mv "lib/$rest" open
  ln -s "../open/$rest" "lib/$rest"
  preloaded "$flavour" "$work/lib/$name" "$life" single
  says "$work/open can be written by everybody.*$own"
  rm -r open
  if ((EUID == 0)); then
    fresh
    chown 65534 "lib/$rest"
    preloaded "$flavour" "$work/lib/$name" "$life" single
    says "$rest belongs to user 65534; expected root and user 0.*$own"
  fi
  # One rank alone does not have it: no rank uses it, the program gets to its end, and that rank says why.
  fresh
  mkdir -m 755 good
  cp lib/* good
  chmod o+w "lib/$rest"
  for refusing in 0 1; do
    # shellcheck disable=SC2016
    runs 0 mpirun."$flavour" -n 3 sh -c \
      'if [ "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" = "$1" ]; then export LD_PRELOAD="$2"; else export LD_PRELOAD="$3"; fi
       shift 3; exec "$@"' sh "$refusing" "$work/lib/$name" "$work/good/$name" "$life" single
    results_are_right
    says "$work/lib/$rest can be written by everybody.*$own"
    ((refusing == 0)) || says 'rank 1 \(on .*\): the preload library does not load its second part'
  done
  rm -r good
  # What a terminal would obey is not printed.
  folder=$'lib\e[2J\x9b'
  fresh
  chmod o+w "lib/$rest"
  rm -rf "$folder"
  mv lib "$folder"
  preloaded "$flavour" "$work/$folder/$name" "$life" single
  says 'lib\\x1b\[2J\\x9b/.* can be written by everybody'
  ! LC_ALL=C grep -q $'[\e\x9b]' err || fail "$flavour: control characters are printed"
  rm -r "$folder"
  fresh
  rm "lib/$rest"
  preloaded "$flavour" "$work/lib/$name" "$life" single
  says "not complete: .*$rest.*$own"
  # Something else that has its name.
  cp "$build/tests/preload/preload_${flavour}_spoil.so" "lib/$rest"
  preloaded "$flavour" "$work/lib/$name" "$life" single
  says "is not the second part.*$own"
done
