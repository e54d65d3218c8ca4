#!/usr/bin/env bash
# A program that runs with another user's rights does not let its caller's environment decide: rights_test.sh GAR SOURCE_DIR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
gar=$(realpath "$1")
if ((EUID != 0)) || ! command -v setpriv >/dev/null; then skip "takes root and setpriv"; fi
chmod 755 "$work"
cp "$gar" "$work/plain"
cp "$gar" "$work/raised"
chmod 755 "$work/plain"
chmod 4755 "$work/raised"
# as_nobody VARIABLE=VALUE... PROGRAM: the exit code of a small benchmark
as_nobody() {
  local code=0
  (cd "$work" && env "${@:1:$#-1}" setpriv --reuid=65534 --regid=65534 --clear-groups "$work/${!#}" bench --local 2 -b 1KiB -e 1KiB \
    -n 1 -w 0) >"$work/out" 2>"$work/err" </dev/null || code=$?
  echo "$code"
}
[[ $(as_nobody plain) == 0 ]] || fail "gar bench does not run: $(cat "$work/err")"
[[ $(as_nobody raised) == 0 ]] || skip "a program cannot be set-user-id here: $(cat "$work/err")"
echo secret >"$work/private"
chmod 600 "$work/private"
for setting in GAR_TOPOLOGY="$work/private" GAR_TOPOLOGY="$work/nowhere.json" GAR_ALGO=none GAR_TIMEOUT=never; do
  [[ $(as_nobody "$setting" plain) == 3 ]] || fail "$setting is not read"
  [[ $(as_nobody "$setting" raised) == 0 ]] || fail "$setting is read by a program with more rights: $(cat "$work/err")"
done
