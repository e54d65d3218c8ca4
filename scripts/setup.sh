#!/usr/bin/env bash
# Installs what is missing: setup.sh [build] [lint] [fuzz] [web] [web-test] [simgrid] [tcp] [openmpi] [mpi] [testbed] [python] [torch]
# [clients] [clients-full]
# (build when nothing is said)
# Silent when nothing is missing. Uses apt-get, through sudo when not root. Nobody has to have simgrid, tcp (OpenSSL, for jobs
# without MPI), openmpi (Open MPI, and what makes the runtime faster), mpi (that, and MPICH), testbed (the virtual cluster), python (the Python package and its tests), torch (PyTorch, for its tests) or
# clients (programs that the preload library is tried with): where they cannot be installed, that is no error.
set -euo pipefail

# package, and what proves that it is there: a command, a path, or a file below an include directory
packages_build="g++:c++ cmake:cmake ninja-build:ninja pkg-config:pkg-config
  libcli11-dev:CLI/CLI.hpp libfmt-dev:fmt/format.h nlohmann-json3-dev:nlohmann/json.hpp libgtest-dev:gtest/gtest.h
  libeigen3-dev:eigen3/Eigen/Core"
packages_lint="clang-format:clang-format clang-tidy:clang-tidy"
packages_docs="doxygen:doxygen cmark-gfm:cmark-gfm python3:python3"
packages_fuzz="clang:clang++ libclang-rt-dev:libclang_rt.fuzzer"
packages_web="nodejs:node npm:npm emscripten:emcc"
packages_web_test="chromium:chromium firefox-esr:firefox-esr"
packages_simgrid="libsimgrid-dev:simgrid/s4u.hpp"
packages_openmpi="libhwy-dev:hwy/highway.h libhwloc-dev:hwloc.h openmpi-bin:mpirun.openmpi libopenmpi-dev:mpicc.openmpi"
packages_tcp="libssl-dev:openssl/evp.h"
packages_mpi="$packages_openmpi mpich:mpirun.mpich libmpich-dev:mpicc.mpich"
packages_clients="gfortran:gfortran python3-numpy:/usr/lib/python3/dist-packages/numpy
  python3-mpi4py:/usr/lib/python3/dist-packages/mpi4py lammps:lmp
  lammps-examples:/usr/share/lammps/examples/peptide/in.peptide"
packages_clients_full="gromacs:gmx_mpi cp2k:cp2k.psmp cp2k-data:/usr/share/cp2k/BASIS_MOLOPT"
packages_python="python3:/usr/bin/python3 python3-dev:/usr/bin/python3-config pybind11-dev:pybind11/pybind11.h
  python3-numpy:/usr/lib/python3/dist-packages/numpy python3-venv:/usr/share/doc/python3-venv"
packages_torch="python3-torch:/usr/lib/python3/dist-packages/torch"
packages_testbed="iproute2:tc ethtool:ethtool python3:python3 gcc:cc"

present() {
  local proof=$1 directory
  case "$proof" in
    /*) [[ -e $proof ]] ;;
    */* | *.h)
      for directory in /usr/include /usr/local/include ${CPATH//:/ }; do
        [[ -e $directory/$proof ]] && return 0
      done
      return 1
      ;;
    libclang_rt.fuzzer) compgen -G '/usr/lib*/*/lib/clang/*/lib/*/libclang_rt.fuzzer*' >/dev/null ||
      compgen -G '/usr/lib*/clang/*/lib/*/libclang_rt.fuzzer*' >/dev/null ;;
    *) PATH=$PATH:/usr/sbin:/sbin command -v "$proof" >/dev/null ;;
  esac
}

CPATH=${CPATH:-}
missing=()
is_needed=
for group in "${@:-build}"; do
  case "$group" in
    build) list=$packages_build ;;
    lint) list=$packages_lint ;;
    docs) list=$packages_docs ;;
    fuzz) list=$packages_fuzz ;;
    web) list=$packages_web ;;
    web-test) list=$packages_web_test ;;
    simgrid) list=$packages_simgrid ;;
    openmpi) list=$packages_openmpi ;;
    mpi) list=$packages_mpi ;;
    tcp) list=$packages_tcp ;;
    testbed) list=$packages_testbed ;;
    python) list=$packages_python ;;
    torch) list=$packages_torch ;;
    clients) list=$packages_clients ;;
    clients-full) list=$packages_clients_full ;;
    *)
      echo "setup.sh: unknown group '$group'; expected build lint fuzz web web-test simgrid tcp openmpi mpi testbed python torch clients clients-full" >&2
      exit 2
      ;;
  esac
  for entry in $list; do
    present "${entry#*:}" && continue
    missing+=("${entry%%:*}")
    case "$group" in build | lint | docs | fuzz | web | web-test) is_needed=yes ;; esac
  done
done
((${#missing[@]})) || exit 0

by_hand() {
  if [[ -z $is_needed ]]; then
    echo "setup.sh: ${missing[*]} could not be installed; what needs them is left out" >&2
    exit 0
  fi
  {
    echo "setup.sh: $1"
    echo "Please install, then run the command again:"
    echo "  Debian, Ubuntu: apt-get install ${missing[*]}"
    echo "  elsewhere: a C++20 compiler (GCC 12 or clang 14), CMake 3.25, Ninja, pkg-config, CLI11 2.1, {fmt} 9,"
    echo "    Eigen 3.4, nlohmann JSON 3.10 and GoogleTest 1.12; clang-format, clang-tidy and clang for 'make lint' and 'make fuzz';"
    echo "    Doxygen 1.9, cmark-gfm 0.29 and Python 3 for 'make docs'; Node.js 18, npm and emscripten 3.1 for 'make web'; Node.js 20, Chromium and Firefox"
    echo "    for 'make web-test'"
  } >&2
  exit 1
}

command -v apt-get >/dev/null || by_hand "missing: ${missing[*]}; and this is not a Debian system."
as_root=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null || by_hand "missing: ${missing[*]}; installing them needs root, and there is no sudo."
  if sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  elif [[ -t 0 && -t 2 ]]; then
    as_root=(sudo)
  else
    by_hand "missing: ${missing[*]}; installing them needs root, and sudo wants a password."
  fi
fi

echo "setup.sh: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 "$@" >"$log" 2>&1
}
# An outdated list of packages is no reason to stop: the installation itself says whether it worked.
run update || tail -n 5 "$log" >&2
if ! run install -y --no-install-recommends "${missing[@]}"; then
  if [[ -z $is_needed ]]; then
    # What nobody has to have is worth having in part.
    for package in "${missing[@]}"; do run install -y --no-install-recommends "$package" || true; done
  fi
  tail -n 20 "$log" >&2
  by_hand "apt-get could not install ${missing[*]} (its last lines are above)."
fi
