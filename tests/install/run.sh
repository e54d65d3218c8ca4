#!/usr/bin/env bash
# Installs the package, builds a program against it with CMake and with pkg-config, and runs both:
# run.sh BUILD_DIR CXX CMAKE
set -euo pipefail
build=$1 cxx=$2 cmake=$3
consumer=$(realpath "$(dirname "$0")/consumer")
command -v pkg-config >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/usr" # the package can be moved

"$work/usr/bin/gar" --version
for file in share/man/man1/gar.1 share/bash-completion/completions/gar share/zsh/site-functions/_gar \
  share/fish/vendor_completions.d/gar.fish include/gar/topology.hpp; do
  [[ -s $work/usr/$file ]] || {
    echo "not installed: $file"
    exit 1
  }
done

"$cmake" -S "$consumer" -B "$work/with_cmake" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$work/usr" \
  >"$work/log" || {
  cat "$work/log"
  exit 1
}
"$cmake" --build "$work/with_cmake"
"$work/with_cmake/consumer" >"$work/cmake_output"

PKG_CONFIG_PATH=$(dirname "$(find "$work/usr" -name gar.pc)")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs gar)"
"$cxx" -std=c++20 "$consumer/main.cpp" -o "$work/with_pkg_config" "${flags[@]}"
"$work/with_pkg_config" >"$work/pkg_config_output"

cmp "$work/cmake_output" "$work/pkg_config_output"
cat "$work/cmake_output"
