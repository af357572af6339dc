#!/usr/bin/env bash
# Builds netsim and runs its tests, after installing what they need, where necessary.
#   scripts/test.sh           a release build, the quick tests
#   scripts/test.sh --long    the long ones too: queues against theory with 10^7 packets, a thousand plans
#                             of up to 4,096 ranks proved
#   scripts/test.sh --asan    under AddressSanitizer and UndefinedBehaviorSanitizer
#   scripts/test.sh --tsan    under ThreadSanitizer, those that use threads
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preset=release
targets=()
labels=(--label-exclude long)
names=()
for option in "$@"; do
  case $option in
    --asan) preset=asan-ubsan ;;
    --tsan)
      preset=tsan
      targets=(netsim_tests)
      names=(--tests-regex '^(Long)?(Engine|ReservedArray|Threads|Job\.IsTheSameInAnyNumberOfSets)') ;;
    --long) labels=() ;;
    *) say "usage: scripts/test.sh [--asan | --tsan] [--long]"; exit 2 ;;
  esac
done

require_packages "${build_packages[@]}" "${test_packages[@]}"
configure "$root/build/$preset" "$preset"
build "$root/build/$preset" "${targets[@]}"
export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
exec ctest --test-dir "$root/build/$preset" -j2 --output-on-failure "${labels[@]}" "${names[@]}"
