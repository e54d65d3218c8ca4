#!/usr/bin/env bash
# Reads programs and libraries with readelf and demands what cmake/GarHardening.cmake promises:
#   hardening.sh FOLDER PROBE_OBJECT FORTIFY CONTROL_FLOW
# FOLDER is an installed tree or a build directory; PROBE_OBJECT is hardening_probe.c, compiled like everything else; FORTIFY is 1
# for an optimised build, CONTROL_FLOW is 1 where the processor is an x86.
set -euo pipefail
folder=$1 probe=$2 fortify=$3 control_flow=$4
command -v readelf >/dev/null || exit 77
export LC_ALL=C
failures=0 checked=0

# expect FILE WHAT TEXT PATTERN: TEXT has a line with PATTERN. refuse: it has none.
expect() {
  grep -qE -- "$4" <<<"$3" && return
  echo "$1: $2"
  failures=$((failures + 1))
}
refuse() {
  grep -qE -- "$4" <<<"$3" || return 0
  echo "$1: $2"
  failures=$((failures + 1))
}
check_linked() {
  local file=$1 header segments dynamic symbols
  header=$(readelf -hW "$file")
  segments=$(readelf -lW "$file")
  dynamic=$(readelf -dW "$file")
  symbols=$(readelf --dyn-syms -W "$file")
  expect "$file" "not independent of its position" "$header" 'Type: +DYN'
  expect "$file" "no read-only relocations (-z relro)" "$segments" GNU_RELRO
  expect "$file" "not bound at once (-z now)" "$dynamic" '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW'
  refuse "$file" "the stack is executable" "$segments" 'GNU_STACK.* RWE '
  expect "$file" "no word about the stack" "$segments" GNU_STACK
  refuse "$file" "code that is changed when it is loaded" "$dynamic" TEXTREL
  expect "$file" "no stack protector" "$symbols" ' UND __stack_chk_fail'
  refuse "$file" "exports what is not public" "$symbols" ' (GLOBAL|WEAK) +(DEFAULT|PROTECTED) +[0-9]+ _ZN?[A-Z]*3gar'
  checked=$((checked + 1))
}

shopt -s nullglob
for file in "$folder"/bin/gar*; do
  check_linked "$file"
  expect "$file" "no independent program (-pie)" "$(readelf -dW "$file")" '\(FLAGS_1\).*PIE'
  if ((fortify)); then expect "$file" "no _FORTIFY_SOURCE" "$(readelf --dyn-syms -W "$file")" ' UND __[a-z]+_chk(@|$)'; fi
done
# Modules are loaded by their path; what programs link with needs a name that says which version it is.
while IFS= read -r file; do
  check_linked "$file"
  [[ $file == */gar/* ]] || expect "$file" "no soname" "$(readelf -dW "$file")" SONAME
done < <(find "$folder"/lib* -name '*.so*' -type f | sort)
while IFS= read -r file; do
  checked=$((checked + 1))
  # What nvcc has compiled is not hardened.
  [[ $file != *cuda* ]] || continue
  refuse "$file" "names that a shared library made of it would export" "$(readelf -sW "$file")" \
    '(FUNC|OBJECT) +GLOBAL +DEFAULT +[0-9]+ _Z.*3gar'
  # The C interface is public.
  [[ $file != */libgar_runtime.a ]] ||
    expect "$file" "the C interface is hidden" "$(readelf -sW "$file")" 'FUNC +GLOBAL +DEFAULT +[0-9]+ gar_all_reduce$'
  if ((control_flow)); then
    members=$(ar t "$file" | wc -l)
    [[ $(readelf -nW "$file" | grep -c 'IBT, SHSTK') == "$members" ]] ||
      expect "$file" "some of its $members objects have no -fcf-protection" "" .
  fi
done < <(find "$folder" -maxdepth 3 -name 'libgar*.a' -type f | sort)

symbols=$(readelf -sW "$probe")
expect "$probe" "no stack protector (-fstack-protector-strong)" "$symbols" ' UND __stack_chk_fail'
expect "$probe" "visible outside (-fvisibility=hidden)" "$symbols" ' HIDDEN +[0-9]+ gar_probe_copy$'
if ((fortify)); then expect "$probe" "no _FORTIFY_SOURCE" "$symbols" ' UND __strcpy_chk'; fi
if ((control_flow)); then
  expect "$probe" "no -fcf-protection" "$(readelf -nW "$probe")" 'IBT, SHSTK'
  if command -v objdump >/dev/null; then
    expect "$probe" "no -fstack-clash-protection" "$(objdump -d "$probe")" 'orq +\$0x0,(0x[0-9a-f]+)?\(%rsp\)'
  fi
fi
((checked >= 2)) || {
  echo "nothing to check in $folder"
  exit 1
}
echo "$checked files and the probe, $failures failures"
((failures == 0))
