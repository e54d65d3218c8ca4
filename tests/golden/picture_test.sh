#!/usr/bin/env bash
# The picture of the README is the one that its measurements make: picture_test.sh GAR SOURCE_DIRECTORY
command -v python3 >/dev/null || exit 77
"$2/bench/network/picture" | cmp - "$2/docs/img/networks.svg" || {
  echo "picture_test: docs/img/networks.svg is not what bench/network/picture draws; make picture draws it"
  exit 1
}
