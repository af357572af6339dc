// Does netsim agree with the HPCC-family ns-3 RDMA model? scripts/ns3_table.py compares; its tolerances are
// those of docs/evidence/ns3.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/shared.h"

namespace netsim::ns3_test {
namespace {

void compare(const std::string& only) {
  const std::string command = "python3 " + source_directory() + "/scripts/ns3_table.py --jobs 1 --binary " +
                              netsim_binary() + " --only " + only;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(Ns3, PfcOnly) { compare("pfconly"); }
TEST(Ns3, Dctcp) { compare("dctcp"); }
TEST(Ns3, Hpcc) { compare("hpcc"); }
TEST(Ns3, Timely) { compare("timely"); }
// Where marking is random the means of 20 seeds.
TEST(Ns3, Dcqcn) { compare("dcqcn"); }
// ns-3's own configuration files, read as they are; skipped where they are not beside the project.
TEST(Ns3, ImportedConfigurations) {
  NETSIM_NEEDS_SHARED("reference/ns3/conf");
  compare("_ --imported " + test::shared_folder() + "/reference/ns3");
}

}  // namespace
}  // namespace netsim::ns3_test
