#!/usr/bin/env bash
# Looks at the source as a reviewer would. clang-format runs on every file of ours. clang-tidy (.clang-tidy) runs on the
# .cpp files that changed and on the headers that they include. scripts/words.py reads comments and pages.
#   scripts/lint.sh              since origin/main, or the last commits where that is this commit or is not known
#   scripts/lint.sh FILE...      these files
# clang-tidy reads how each file is compiled alone from build/lint, which is configured here; only generated headers are
# built there. At most LINT_FILES files (default 24) are looked at, some five seconds each; those of sim/ come first.
# All comments of sim/, tests/, bench/, scripts/, configs/, cmake/ and the root, and all pages are read.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

last_commits=5
most_files=${LINT_FILES:-24}
database=build/lint

# The commit that the change is compared with.
base() {
  local commit
  commit=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z $commit || $commit == "$(git rev-parse HEAD)" ]]; then
    commit=$(git rev-parse -q --verify "HEAD~$last_commits" || git rev-list --max-parents=0 HEAD | tail -n 1)
  fi
  echo "$commit"
}

changed_files() {
  local folder
  for folder in sim tests bench; do git diff --name-only --diff-filter=d "$(base)" -- "$folder/*.cpp"; done
}

# Prints those files of standard input that are compiled here.
compiled() {
  local file
  while IFS= read -r file; do
    if grep -qF "/$file\"" "$database/compile_commands.json"; then printf '%s\n' "$file"; fi
  done
}

format() {
  command -v clang-format >/dev/null || { say "lint: no clang-format, formatting is not looked at"; return; }
  say "lint: clang-format"
  git ls-files -z 'sim/*.h' 'sim/*.cpp' 'tests/*.h' 'tests/*.cpp' 'bench/*.cpp' | xargs -0 clang-format --dry-run -Werror
}

tidy() {
  local files
  command -v clang-tidy >/dev/null || { say "lint: no clang-tidy, changed files are not looked at"; return; }
  configure "$root/$database" release -DNETSIM_UNITY=OFF > /dev/null
  ninja -C "$database" --quiet netsim_proto netsim_interface netsim_commit >&2
  mapfile -t files < <(if [[ $# -gt 0 ]]; then printf '%s\n' "$@"; else changed_files; fi | compiled)
  say "lint: clang-tidy, ${#files[@]} changed files"
  [[ ${#files[@]} -eq 0 ]] && return
  if [[ ${#files[@]} -gt $most_files ]]; then
    say "lint: the first $most_files of them (LINT_FILES=${#files[@]} for all)"
    files=("${files[@]:0:$most_files}")
  fi
  # Options of GCC that clang does not know are no fault of the source.
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(compile_jobs)" \
    clang-tidy -p "$database" --quiet --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-error --extra-arg=-Wno-unused-command-line-argument 2>/dev/null
}

# Reads all comments and pages, or those of the files given.
read_words() {
  command -v python3 >/dev/null || { say "lint: no python3, comments are not read"; return; }
  say "lint: comments and pages"
  [[ $# -gt 0 ]] && { scripts/words.py "$@"; return; }
  git ls-files -z | xargs -0 scripts/words.py
}

status=0
format || status=1
tidy "$@" || status=1
read_words "$@" || status=1
[[ $status -eq 0 ]] && say "lint: nothing found"
exit "$status"
