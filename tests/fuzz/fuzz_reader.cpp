// The fuzzer of all readers (scripts/fuzz.sh). libFuzzer calls it with the bytes of a file. The environment
// says what the file is: NETSIM_FUZZ_MODE is workload, program, cluster or jobs, and NETSIM_FUZZ_ENDING is
// the end of its name. For a cluster NETSIM_FUZZ_CONFIG is a configuration in which FILE stands for the path,
// and for jobs it is a list of jobs.
//
// Every file must be read, or refused with one line. A crash, a hang, a leak and InternalError are findings.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/collectives/programs/program_file.h"
#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/simulation/system.h"
#include "sim/workload/workload.h"

namespace {

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// FuzzedFile: the file that the reader gets, in memory where the system has such a folder.
class FuzzedFile {
 public:
  FuzzedFile() {
    const std::filesystem::path memory = "/dev/shm";
    const std::filesystem::path base =
        std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
    folder_ = base / ("netsim_fuzz_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / ("file" + setting("NETSIM_FUZZ_ENDING", ""))).string();
  }
  ~FuzzedFile() { std::filesystem::remove_all(folder_); }
  FuzzedFile(const FuzzedFile&) = delete;
  FuzzedFile& operator=(const FuzzedFile&) = delete;
  const std::string& path() const { return path_; }
  void write(const char* data, std::size_t size) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc).write(data, static_cast<std::streamsize>(size));
  }

 private:
  std::filesystem::path folder_;
  std::string path_;
};

std::string cluster_text(const std::string& path) {
  std::string text = setting("NETSIM_FUZZ_CONFIG", "");
  const std::string mark = "FILE";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + path.size()))
    text.replace(at, mark.size(), path);
  return text;
}

void read(const std::string& mode, const std::string& path, const std::string& bytes) {
  using namespace netsim;
  if (mode == "workload") {
    constexpr std::uint32_t kGpus = 16;
    load_workload(path, kGpus);
  } else if (mode == "program") {
    static_cast<void>(prove(read_program(bytes, path)));
  } else if (mode == "jobs") {
    const std::string list = path + ".jobs.yaml";
    std::ofstream(list, std::ios::binary | std::ios::trunc) << cluster_text(path) << "\n";
    load_jobs(list, WorkloadContext(16));
  } else {
    const ConfigNode config = parse_config(cluster_text(path), "fuzz.yaml");
    const System system(config, 1, 1, nullptr);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const FuzzedFile file;
  static const std::string mode = setting("NETSIM_FUZZ_MODE", "workload");
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  file.write(bytes.data(), bytes.size());
  try {
    read(mode, file.path(), bytes);
  } catch (const netsim::InternalError& error) {
    std::fprintf(stderr, "a bug: %s\n", error.what());
    std::abort();
  } catch (const netsim::Error& error) {
    if (std::string(error.what()).find('\n') == std::string::npos) return 0;
    std::fprintf(stderr, "an error of several lines: %s\n", error.what());
    std::abort();
  }
  return 0;
}
