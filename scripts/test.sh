#!/usr/bin/env bash
# Builds netsim and runs all its tests, after installing what they need, where necessary.
#   scripts/test.sh           a release build
#   scripts/test.sh --asan    the same under AddressSanitizer and UndefinedBehaviorSanitizer
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preset=release
case "$#:${1-}" in
  0:) ;;
  1:--asan) preset=asan-ubsan ;;
  *) say "usage: scripts/test.sh [--asan]"; exit 2 ;;
esac

require_packages "${build_packages[@]}" "${test_packages[@]}"
configure "$root/build/$preset" "$preset"
build "$root/build/$preset"
export UBSAN_OPTIONS=print_stacktrace=1
exec ctest --test-dir "$root/build/$preset" -j2 --output-on-failure
