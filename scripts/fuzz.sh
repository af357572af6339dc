#!/usr/bin/env bash
# Fuzzes the readers of files, with Debian's clang, libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer.
#   scripts/fuzz.sh [--seconds N] [NAME...]     all fuzzers of tests/fuzz/readers.txt, or these, for N seconds each (180)
# Findings and corpora are in build/fuzz/NAME. The exit code is 1 if a fuzzer has found something.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

seconds=180
if [[ ${1:-} == --seconds ]]; then
  [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--seconds needs a whole number of seconds above 0, given: '${2:-}'"
  seconds=$2
  shift 2
fi

trimmed() {
  local text=$1
  text=${text#"${text%%[![:space:]]*}"}
  printf '%s' "${text%"${text##*[![:space:]]}"}"
}

# Runs one fuzzer. Its seeds are read, and what it finds is kept in its own folder.
run_fuzzer() {
  local name=$1 mode=$2 ending=$3 config=$4 folder=$root/build/fuzz/$1 seed files=()
  shift 4
  mkdir -p "$folder/seeds" "$folder/corpus"
  for seed in "$@"; do
    [[ -f $root/$seed ]] || die "tests/fuzz/readers.txt: the seed $seed of $name is no file"
    cp "$root/$seed" "$folder/seeds/"
  done
  files=("$folder/corpus" "$folder/seeds")
  say "fuzzing $name for $seconds s"
  NETSIM_FUZZ_MODE=$mode NETSIM_FUZZ_ENDING=$ending NETSIM_FUZZ_CONFIG=$config \
    "$root/build/fuzz/netsim_fuzz_reader" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=65536 -print_funcs=0 \
    -artifact_prefix="$folder/" -print_final_stats=1 "${files[@]}" >"$folder/log" 2>&1 || {
    say "$name has found something: $folder/log"
    grep -E "^(==[0-9]+==ERROR|SUMMARY|a bug|an error of)" "$folder/log" >&2 || true
    return 1
  }
  say "$name: $(grep -oE 'number_of_executed_units: [0-9]+' "$folder/log" || echo 'no statistics')"
}

require_packages "${build_packages[@]}" clang
configure "$root/build/fuzz" fuzz
build "$root/build/fuzz" netsim_fuzz_reader
found=0 known=""
while IFS='|' read -r name mode ending config seeds; do
  name=$(trimmed "$name")
  [[ -z $name || $name == \#* ]] && continue
  known+=" $name"
  [[ $# -gt 0 && " $* " != *" $name "* ]] && continue
  # shellcheck disable=SC2086  # seeds are several words
  run_fuzzer "$name" "$(trimmed "$mode")" "$(trimmed "$ending")" "$(trimmed "$config")" $seeds || found=1
done <"$root/tests/fuzz/readers.txt"
for name in "$@"; do
  [[ " $known " == *" $name "* ]] || die "no fuzzer is called $name; there are:$known"
done
exit $found
