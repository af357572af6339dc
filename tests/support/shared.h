// Files of other tools and reference data that are not part of this repository: tests that need them skip
// where they are absent.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace netsim::test {

// The folder beside the repository, or what the environment says.
inline std::string shared_folder() {
  const char* folder = std::getenv("NETSIM_SHARED");
  return folder != nullptr ? folder : source_directory() + "/../shared";
}

// Files below a folder of it, sorted; with that ending.
inline std::vector<std::string> shared_files(const std::string& folder, const std::string& ending) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(shared_folder() + "/" + folder, error)) {
    const std::string path = entry.path().string();
    if (entry.is_regular_file() && path.ends_with(ending)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

#define NETSIM_NEEDS_SHARED(folder)                                               \
  if (!std::filesystem::exists(::netsim::test::shared_folder() + "/" + (folder))) \
  GTEST_SKIP() << "no " << ::netsim::test::shared_folder() << "/" << (folder) << " (NETSIM_SHARED)"

}  // namespace netsim::test
