#!/usr/bin/env bash
# Builds netsim and runs its tests, after installing what they need, where necessary.
#   scripts/test.sh           a release build, the quick tests (under 3 minutes on two cores once it is built)
#   scripts/test.sh FOLDER    builds and runs the quick tests of one folder of tests/, for example `network`
#   scripts/test.sh --long    the long ones too: queues against theory with 10^7 packets, a thousand plans
#                             of up to 4,096 ranks proved
#   scripts/test.sh --study   only tests that replay a study or a figure of a paper, quick and long ones
#   scripts/test.sh --asan    under AddressSanitizer and UndefinedBehaviorSanitizer
#   scripts/test.sh --tsan    under ThreadSanitizer, those that use threads
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preset=release
targets=()
labels=(--label-regex '^quick$')
names=()
for option in "$@"; do
  case $option in
    --asan) preset=asan-ubsan ;;
    --tsan)
      preset=tsan
      targets=(netsim_tests)
      names=(--label-regex '^threads$') ;;  # besides the label of the size
    --long) labels=() ;;
    --study) labels=(--label-regex '^study$') ;;
    *)
      [[ $option != -* && -d $root/tests/$option ]] || die "usage: scripts/test.sh [FOLDER] [--asan | --tsan] [--long | --study]"
      targets=("netsim_${option}_tests")
      names=(--label-regex "^$option\$") ;;  # besides the label of the size
  esac
done

require_packages "${build_packages[@]}" "${test_packages[@]}"
configure "$root/build/$preset" "$preset"
build "$root/build/$preset" "${targets[@]}"
export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
exec ctest --test-dir "$root/build/$preset" -j2 --output-on-failure "${labels[@]}" "${names[@]}"
