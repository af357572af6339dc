// Does netsim agree with the HPCC-family ns-3 RDMA model? scripts/ns3_table.py compares; its tolerances are
// those of docs/validation.md. Skipped where the reference runs are not beside the project.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/paths.h"

namespace netsim {
namespace {

const std::string kReference = source_directory() + "/../shared/reference/ns3";

void compare(const std::string& only) {
  if (!std::filesystem::exists(kReference + "/ensemble.tsv"))
    GTEST_SKIP() << "no ns-3 runs at " << kReference;
  const std::string command = "python3 " + source_directory() + "/scripts/ns3_table.py --jobs 1 --netsim " +
                              netsim_binary() + " --reference " + kReference + " --only " + only;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(Ns3, PfcOnly) { compare("pfconly"); }
TEST(Ns3, Dctcp) { compare("dctcp"); }
TEST(Ns3, Hpcc) { compare("hpcc"); }
TEST(Ns3, Timely) { compare("timely"); }
// Where marking is random the means of 20 seeds.
TEST(Ns3, Dcqcn) { compare("dcqcn"); }
// ns-3's own configuration files, read as they are.
TEST(Ns3, ImportedConfigurations) { compare("_ --imported"); }

}  // namespace
}  // namespace netsim
