#!/usr/bin/env bash
# Installs the package, builds programs against it with CMake and with pkg-config, and runs them:
# run.sh BUILD_DIR CXX CMAKE CC
set -euo pipefail
build=$1 cxx=$2 cmake=$3 cc=$4
here=$(realpath "$(dirname "$0")")
examples=$(realpath "$here/../../examples")
command -v pkg-config >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/usr" # the package can be moved

"$work/usr/bin/gar" --version
# The tarball holds the same files.
"$(dirname "$cmake")/cpack" --config "$build/CPackConfig.cmake" -B "$work/package" >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
mkdir "$work/unpacked"
tar -xzf "$work"/package/gar-*.tar.gz --strip-components=1 -C "$work/unpacked"
"$work/unpacked/bin/gar" --version
files_in() { (cd "$1" && find . -type f -o -type l) | sort; }
diff <(files_in "$work/usr") <(files_in "$work/unpacked")
for file in share/man/man1/gar.1 share/man/man1/gar-predict.1 share/man/man1/gar-bench.1 share/man/man1/gar-explore.1 share/man/man1/gar-nccl.1 share/bash-completion/completions/gar share/zsh/site-functions/_gar \
  share/fish/vendor_completions.d/gar.fish include/gar/topology.hpp include/gar/gar.h include/gar/gar_mpi.h include/gar/gar_cuda.h include/gar/cuda.hpp \
  share/gar/gar.spdx.json share/gar/topologies/mixed-fleet.json share/gar/testbed/cluster share/doc/gar/LICENSE share/doc/gar/README.md \
  share/doc/gar/docs/quickstart.md share/doc/gar/docs/img/networks.svg share/doc/gar/examples/04_threads.cpp include/gar/gar.hpp; do
  [[ -s $work/usr/$file ]] || {
    echo "not installed: $file"
    exit 1
  }
done

# What the installed documents link to is installed, too.
python3 - "$work/usr/share/doc/gar" <<'END'
import pathlib, re, sys
folder = pathlib.Path(sys.argv[1])
links = [(page, link) for page in sorted(folder.rglob("*.md"))
         for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()) if "://" not in link]
broken = [f"{page.relative_to(folder)} links to {link}, which is not installed" for page, link in links
          if not (page.parent / link).exists()]
if len(links) < 100 or broken:
    sys.exit("\n".join(broken) or f"only {len(links)} links in {folder}")
END

# The topologies are known by name, wherever one stands.
(cd / && "$work/usr/bin/gar" topo check mixed-fleet) >/dev/null
# The installed virtual cluster is found by gar demo; it says what it is.
"$work/usr/share/gar/testbed/cluster" --help >/dev/null

# The explorer page, where it was built; elsewhere it is said what is missing, and a page that comes later is found.
page=$work/usr/share/gar/gar.html
if [[ -f $page ]]; then
  (cd "$work" && "$work/usr/bin/gar" explore -t tree:4x6 -o explorer.html) >/dev/null
  grep -q '"topology":"tree:4x6"' "$work/explorer.html"
  rm "$page"
fi
status=0
(cd "$work" && "$work/usr/bin/gar" explore -t tree:4x6 -o none.html) 2>"$work/log" || status=$?
[[ $status == 4 && ! -e $work/none.html ]] && tr -s ' \n' ' ' <"$work/log" | grep -q 'share/gar/gar.html.*make web' || {
  cat "$work/log"
  exit 1
}
mkdir -p "${page%/*}"
printf '<script type="application/json" id="gar-start">{}</script>\n' >"$page"
(cd "$work" && "$work/usr/bin/gar" explore -t tree:4x6 -o found.html) >/dev/null
grep -q '"topology":"tree:4x6"' "$work/found.html"

# How we compile and link ourselves is nothing that our users must do.
! grep -rnE 'FORTIFY|fstack|fcf-protection|fvisibility|relro|[^a-z]-pie|fPIE' "$work"/usr/lib*/cmake/gar "$work"/usr/lib*/*/cmake/gar \
  "$work"/usr/lib*/pkgconfig "$work"/usr/lib*/*/pkgconfig 2>/dev/null || exit 1
"$here/../unit/runpath_check.sh" "$work/usr"

# With CMake: consumer uses C++, consumer_c C and the static library, consumer_shared C alone and the shared one.
for project in consumer consumer_c consumer_shared; do
  "$cmake" -S "$here/$project" -B "$work/$project" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$work/usr" --no-warn-unused-cli >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
  "$cmake" --build "$work/$project"
done
"$work/consumer/consumer" >"$work/cmake_output"
"$work/consumer/runtime_consumer" >>"$work/cmake_output"
"$work/consumer_c/consumer_c" >>"$work/cmake_output"
"$work/consumer_shared/consumer_shared" >>"$work/cmake_output"

# A component that is not there: the message says which are.
mkdir "$work/missing"
echo 'cmake_minimum_required(VERSION 3.25)
project(missing LANGUAGES C)
find_package(gar 0.1 REQUIRED COMPONENTS mpi)' >"$work/missing/CMakeLists.txt"
if "$cmake" -S "$work/missing" -B "$work/missing/build" -DCMAKE_PREFIX_PATH="$work/usr" -DCMAKE_C_COMPILER="$cc" >"$work/log" 2>&1; then
  echo "find_package(gar COMPONENTS mpi) finds something"
  exit 1
fi
tr -s ' \n' ' ' <"$work/log" | grep -q "no component 'mpi'; this build of GenAllReduce has: runtime c measure" || {
  cat "$work/log"
  exit 1
}
# An older language is named as the reason, first.
echo '#include "gar/gar.hpp"' >"$work/old.cpp"
if "$cxx" -std=c++17 -I "$work/usr/include" -fsyntax-only "$work/old.cpp" 2>"$work/log"; then exit 1; fi
grep -m 1 error "$work/log" | grep -q 'GenAllReduce needs C++20'

# With pkg-config. A C program needs the C++ library, too: --static.
PKG_CONFIG_PATH=$(dirname "$(find "$work/usr" -name gar.pc)")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs gar)"
"$cxx" -std=c++20 "$here/consumer/main.cpp" -o "$work/with_pkg_config" "${flags[@]}"
"$work/with_pkg_config" >"$work/pkg_config_output"
read -ra flags <<<"$(pkg-config --cflags --libs gar-runtime)"
"$cxx" -std=c++20 "$here/consumer/runtime.cpp" -o "$work/with_pkg_config" "${flags[@]}"
"$work/with_pkg_config" >>"$work/pkg_config_output"
read -ra flags <<<"$(pkg-config --static --cflags --libs gar-runtime)"
"$cc" -std=c99 -Wall -Wextra -Wpedantic -Werror "$here/consumer_c/main.c" -o "$work/with_pkg_config" "${flags[@]}"
"$work/with_pkg_config" >>"$work/pkg_config_output"
read -ra flags <<<"$(pkg-config --cflags --libs gar-c)"
"$cc" -std=c99 "$here/consumer_c/main.c" -o "$work/with_pkg_config" "${flags[@]}"
library=$(dirname "$(find "$work/usr" -name libgar_c.so)")
LD_LIBRARY_PATH=$library "$work/with_pkg_config" >>"$work/pkg_config_output"
# It has a name with a version, and shows the C interface alone.
readelf -d "$library/libgar_c.so" | grep -q 'SONAME.*libgar_c\.so\.[0-9]'
! nm -D --defined-only "$library/libgar_c.so" | awk '{print $3}' | grep -v '^gar_' || exit 1
nm -D --defined-only "$library/libgar_c.so" | grep -q ' gar_all_reduce$'
cmp "$work/cmake_output" "$work/pkg_config_output"
cat "$work/cmake_output"

# GPUs: the example is built by itself; it ends with 77 where there is none.
if pkg-config --exists gar-cuda; then
  cuda=$(sed -n 's/^CMAKE_CUDA_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")
  read -ra flags <<<"$(pkg-config --cflags --libs gar-cuda)"
  "$cxx" -std=c++20 -isystem "$(dirname "$cuda")/../include" "$examples/11_cuda.cpp" -o "$work/with_cuda" "${flags[@]}"
  status=0
  "$work/with_cuda" || status=$?
  [[ $status == 0 || $status == 77 ]] || exit 1
  [[ -x $work/usr/bin/gar-cuda ]] || exit 1
fi

# With the compiler wrapper of every MPI that the package was built for.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for flavour in openmpi mpich; do
  pkg-config --exists "gar-mpi-$flavour" || continue
  command -v "mpicc.$flavour" >/dev/null || continue
  read -ra flags <<<"$(pkg-config --static --cflags --libs "gar-mpi-$flavour")"
  "mpicc.$flavour" -std=c99 "$examples/10_mpi.c" -o "$work/with_$flavour" "${flags[@]}"
  options=(-np 2)
  [[ $flavour == mpich ]] || options+=(--oversubscribe --mca btl "self,vader")
  timeout -k 10 300 "mpirun.$flavour" "${options[@]}" "$work/with_$flavour" | tee "$work/mpi_output"
  grep -q '^2 ranks: largest 1 0, sums 1 10 100$' "$work/mpi_output"
  # gar finds the preload library where it was installed, and a program that knows nothing of it runs.
  cat >"$work/plain.c" <<'END'
#include <mpi.h>
int main(int argc, char** argv) {
  int one = 1, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum == 2 ? 0 : 1;
}
END
  "mpicc.$flavour" "$work/plain.c" -o "$work/plain_$flavour"
  timeout -k 10 300 "$work/usr/bin/gar" mpirun --check --min-bytes 0 -- "mpirun.$flavour" "${options[@]}" "$work/plain_$flavour" 2>"$work/mpi_errors"
  grep -q '^gar: GAR_CHECK: 2 calls compared on 2 ranks, 0 differences$' "$work/mpi_errors"
done
