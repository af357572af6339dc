#!/usr/bin/env bash
# Runs netsim with the arguments given, after installing what its build needs and building it, where necessary.
#   scripts/run.sh --config configs/fat_tree.yaml --workload traces/gpt3_ptdp.pb
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

require_packages "${build_packages[@]}"
configure "$root/build/run" release -DNETSIM_TESTS=OFF -DNETSIM_BENCH=OFF
build "$root/build/run" netsim
exec "$root/build/run/netsim" "$@"
