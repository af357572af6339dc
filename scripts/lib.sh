# Shared by run.sh and test.sh: packages, configuring, building. Sourced, never run.
# Everything printed goes to stderr, so that stdout belongs to the program that is run in the end.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

build_packages=(g++ cmake ninja-build ccache libboost-graph-dev libboost-program-options-dev libyaml-cpp-dev
                libfmt-dev libprotobuf-dev protobuf-compiler nlohmann-json3-dev libspdlog-dev libpugixml-dev
                libflatbuffers-dev zlib1g-dev libjs-d3)
test_packages=(libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev pkgconf python3
               python3-yaml python3-pandas python3-matplotlib valgrind clang-format clang-tidy)

# Compilations are shared between build directories, those of files that are compiled alone also between clones.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# Prints those of the packages given that dpkg does not know as installed.
missing_packages() {
  local installed package
  installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true)"
  for package in "$@"; do
    [[ $installed == *" installed:$package "* ]] || printf '%s\n' "$package"
  done
}

# Installs what is missing of the packages given, as root or with sudo; does nothing when nothing is.
require_packages() {
  local missing as_root=()
  if ! command -v dpkg-query >/dev/null; then
    say "note: this is not a Debian system; the build needs what these packages hold: $*"
    return
  fi
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] && return
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || die "not root and no sudo; please install: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing: ${missing[*]}"
  "${as_root[@]}" apt-get update -q >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

# configure DIRECTORY PRESET [CMAKE ARGUMENTS]: once per directory; afterwards ninja itself sees what changed.
configure() {
  local directory=$1 preset=$2
  shift 2
  if [[ -f $directory/build.ninja ]]; then
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$directory/CMakeCache.txt" && return
    say "the build directory belongs to another source tree; starting it afresh"
    rm -rf "$directory"
  fi
  command -v mold >/dev/null && set -- -DCMAKE_{EXE,SHARED}_LINKER_FLAGS=-fuse-ld=mold "$@"
  (cd "$root" && cmake --preset "$preset" -B "$directory" "$@") >&2
}

# As many compilers at a time as there are cores, but no more than one for every 1.5 GB of free memory.
compile_jobs() {
  local cores by_memory
  cores=$(nproc)
  by_memory=$(awk '/^MemAvailable:/ {print int($2 / 1500000)}' /proc/meminfo)
  (( by_memory < 1 )) && by_memory=1
  echo $(( cores < by_memory ? cores : by_memory ))
}

# build DIRECTORY [TARGETS]: shows progress for a first build, only errors afterwards.
build() {
  local directory=$1 quiet=()
  shift
  [[ -x $directory/netsim ]] && quiet=(--quiet)
  ninja -C "$directory" -j "$(compile_jobs)" "${quiet[@]}" "$@" | sed '/^ninja: no work to do\.$/d' >&2
}
