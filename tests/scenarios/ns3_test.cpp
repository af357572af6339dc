// Does netsim agree with the HPCC-family ns-3 RDMA model? scripts/ns3_table.py compares; its tolerances are
// those of docs/evidence/ns3.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/shared.h"
#include "tests/support/test_size.h"

namespace netsim::ns3_test {
namespace {

// Compares the runs whose name contains `all`, in the quick suite those whose name contains `quick`.
void compare(const std::string& all, const std::string& quick) {
  const std::string only = test::full_size() ? all : quick;
  const std::string command = "python3 " + source_directory() + "/scripts/ns3_table.py --jobs 1 --binary " +
                              netsim_binary() + " --only " + only;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(Ns3, PfcOnly) { compare("pfconly", "b_8to1_1MB_pfconly_1000"); }
TEST(Ns3, Dctcp) { compare("dctcp", "b_8to1_1MB_dctcp_1000"); }
TEST(Ns3, Hpcc) { compare("hpcc", "b_8to1_1MB_hpcc"); }
TEST(Ns3, Timely) { compare("timely", "b_8to1_1MB_timely"); }
// Where marking is random the means of 20 seeds.
TEST(Ns3, Dcqcn) { compare("dcqcn", "a_2to1_10MB_dcqcn_1000_b32"); }
// ns-3's own configuration files, read as they are; skipped where they are not beside the project.
TEST(Ns3, ImportedConfigurations) {
  NETSIM_NEEDS_SHARED("reference/ns3/conf");
  const std::string imported = " --imported " + test::shared_folder() + "/reference/ns3";
  compare("_" + imported, "b_8to1_1MB_hpcc_1000_b32" + imported);
  if (!test::full_size()) compare("", "b_8to1_1MB_timely_1000_b32" + imported);
}

}  // namespace
}  // namespace netsim::ns3_test
