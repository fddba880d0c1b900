#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# install_packages.sh - installs the Debian packages that a task needs, and only those that are missing.
#
# usage: install_packages.sh [--check] SET...      sets: run test fuzz
# --check only says what is missing (exit code 1 when something is).
set -euo pipefail

# libdpdk-dev brings the run-time drivers along: net_tap, net_af_packet, net_pcap, net_null, and the
# ring and stack mempools. libnuma, libbpf and the other libraries come through its dependencies.
# The last line of `run` is for hosts in network namespaces (`batchplane demo`).
packages_of_set() {
  case "$1" in
    run) echo g++ cmake ninja-build ccache lld pkg-config libdpdk-dev libipsec-mb-dev libhyperscan-dev \
              libpcap-dev nlohmann-json3-dev libcli11-dev python3-venv python3-dev \
              iproute2 iputils-ping ethtool curl iperf3 util-linux ;;
    test) echo git libgtest-dev libbenchmark-dev clang-format-16 clang-tidy-16 \
               nftables traceroute tcpdump ocl-icd-libopencl1 pocl-opencl-icd ;;
    fuzz) echo clang-16 libclang-rt-16-dev ;;
    *) echo "install_packages.sh: unknown package set '$1': use run, test or fuzz" >&2; exit 2 ;;
  esac
}

say() { echo "packages: $*" >&2; }

missing_of() {
  local installed
  installed=" $(dpkg-query -W -f '${Package}:${db:Status-Status} ' "$@" 2>/dev/null || true) "
  for package in "$@"; do
    [[ $installed == *" $package:installed "* ]] || echo "$package"
  done
}

# Prints the words to put before apt-get, or fails when this user cannot become root.
root_prefix() {
  if [[ $(id -u) == 0 ]]; then
    echo env
  elif command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    echo sudo
  else
    return 1
  fi
}

# apt-get without its hundreds of lines, unless it fails.
run_apt() {
  local prefix=$1 log
  shift
  log=$(mktemp)
  if $prefix env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" \
    </dev/null >"$log" 2>&1; then
    rm -f "$log"
    return 0
  fi
  tail -n 25 "$log" >&2
  rm -f "$log"
  return 1
}

main() {
  local is_check=0 set prefix
  local -a wanted=() missing=()
  for set in "$@"; do
    if [[ $set == --check ]]; then is_check=1; else
      # shellcheck disable=SC2046  # the list is meant to split
      wanted+=($(packages_of_set "$set"))
    fi
  done
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "not a Debian system, so nothing was checked. Needed packages, by their Debian 12 names: ${wanted[*]}"
    return 0
  fi
  mapfile -t missing < <(missing_of "${wanted[@]}")
  [[ ${#missing[@]} == 0 ]] && return 0
  if [[ $is_check == 1 ]]; then
    say "missing: ${missing[*]}"
    return 1
  fi
  if ! prefix=$(root_prefix); then
    say "packages are missing and only root can install them. Run:  su -c 'apt-get update && apt-get install -y --no-install-recommends ${missing[*]}'"
    return 1
  fi
  say "installing with apt, including dependencies: ${missing[*]}"
  run_apt "$prefix" update ||
    say "apt-get update failed (see above); continuing with the existing package lists"
  run_apt "$prefix" -y install --no-install-recommends "${missing[@]}"
  mapfile -t missing < <(missing_of "${wanted[@]}")
  if [[ ${#missing[@]} != 0 ]]; then
    say "still missing after apt-get: ${missing[*]}; see its messages above"
    return 1
  fi
  say "done"
}

main "$@"
