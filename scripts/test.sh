#!/usr/bin/env bash
# Builds netsim and runs its tests, after installing what they need, where necessary.
#   scripts/test.sh           a release build, the quick tests
#   scripts/test.sh --long    the long ones too: queues against theory with 10^7 packets
#   scripts/test.sh --asan    under AddressSanitizer and UndefinedBehaviorSanitizer
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preset=release
selection=(--label-exclude long)
for option in "$@"; do
  case $option in
    --asan) preset=asan-ubsan ;;
    --long) selection=() ;;
    *) say "usage: scripts/test.sh [--asan] [--long]"; exit 2 ;;
  esac
done

require_packages "${build_packages[@]}" "${test_packages[@]}"
configure "$root/build/$preset" "$preset"
build "$root/build/$preset"
export UBSAN_OPTIONS=print_stacktrace=1
exec ctest --test-dir "$root/build/$preset" -j2 --output-on-failure "${selection[@]}"
