# For the scripts that measure with gar fit; source lib.sh before it.
# shellcheck shell=bash

# measures SECONDS CHECK FILE COMMAND...: runs the command with --save FILE and a --budget that starts with SECONDS and
# doubles until CHECK, a function of this script, finds in FILE all that it asks for. How much a machine can measure in a
# time is no promise of the program; what it says about a budget that is too short, and about times that are too disturbed
# to be fitted, is.
measures() {
  local budget=$1 check=$2 file=$3 attempt code
  shift 3
  for ((attempt = 0; attempt < 6; attempt++, budget *= 2)); do
    code=0
    rm -f "$file"
    limited "$@" --budget "${budget}s" --save "$file" >out.txt 2>err.txt || code=$?
    case $code in
      0) ;;
      2)
        grep -Eq "gar: --budget ${budget}s is too short to measure what a fit needs; about [0-9]+s would do\$" <(in_one_line err.txt) ||
          fail "$*: exit code 2: $(cat out.txt err.txt)"
        continue
        ;;
      3)
        grep -q 'gar: the measurements contradict the model' <(in_one_line err.txt) ||
          fail "$*: exit code 3: $(cat out.txt err.txt)"
        ;;
      *) fail "$*: exit code $code: $(cat out.txt err.txt)" ;;
    esac
    if "$check" "$file" >check.txt 2>&1; then return 0; fi
  done
  fail "$*: $file is not as promised, with any budget: $(cat check.txt err.txt)"
}
