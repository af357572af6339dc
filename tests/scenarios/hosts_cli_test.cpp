// Tests the answers of the program to wrong hosts and fabrics: one line with the place, and the exit code.
#include "tests/support/program.h"

namespace netsim::test {
namespace {

class HostsProgram : public NetsimProgram {
 protected:
  // The configuration's text, and what the answer holds.
  void expect_refused(const std::string& config, ExitCode code, const std::vector<std::string>& parts) const {
    write("wrong.yaml", config);
    expect_error("--config wrong.yaml --workload incast.yaml", code, parts);
  }
};

TEST_F(HostsProgram, RefusesWrongGroupsAndFabrics) {
  const std::string star = "topology: {kind: star, hosts: 10}\n";
  expect_refused(star + "host: dgx_1\nhosts: 3\n", ExitCode::usage, {"wrong.yaml:3:8", "allowed: 1 to 2"});
  expect_refused(star + "hosts:\n  - {kind: dgx_1, count: 2}\n  - {kind: dgx_1, count: 1}\n", ExitCode::usage,
                 {"wrong.yaml:4:", "allowed: none", "2 of its 10 host ports left"});
  expect_refused(star + "host: single_nic\nhosts: [{kind: dgx_1, count: 1}]\n", ExitCode::usage,
                 {"wrong.yaml:2:1", "a list of 'hosts'"});
  expect_refused(star + "host: gb200\n", ExitCode::usage, {"wrong.yaml:2:", "fabric 'rack'"});
  expect_refused(star + "fabrics: {scale_out: {kind: star}}\n", ExitCode::usage,
                 {"wrong.yaml:1:1", "short form"});
  expect_refused("fabrics: [1]\n", ExitCode::usage, {"wrong.yaml:1:", "fabrics by name"});
}

TEST_F(HostsProgram, RefusesBrokenTopologyFilesOfNccl) {
  const std::string config = "topology: {kind: star, hosts: 10}\nhost: {kind: nccl_xml, file: host.xml}\n";
  expect_refused(config, ExitCode::io, {"host.xml"});
  write("host.xml",
        "<system version=\"1\">\n  <cpu>\n    <pci busid=\"1\" class=\"0x030200\"></gpu>\n</system>\n");
  expect_refused(config, ExitCode::input, {"host.xml:3:"});
  write("host.xml", "<system version=\"1\">\n  <cpu>\n    <pci class=\"0x030200\"/>\n  </cpu>\n</system>\n");
  expect_refused(config, ExitCode::input, {"host.xml:3:6", "'busid' is missing"});
}

// A torus in one virtual channel, with buffers that senders wait for.
TEST_F(HostsProgram, RefusesWhatCanDeadlockUnlessToldOtherwise) {
  const std::string torus = "topology: {kind: torus, sizes: [4], channels: 1}\n";
  expect_refused(torus, ExitCode::usage,
                 {"router0->router1, router1->router2", "more virtual channels", "network.deadlock_check"});
  for (const std::string check : {"note", "off"}) {
    const Ended ended = run(
        "--config wrong.yaml --workload incast.yaml --quiet --json - --set network.deadlock_check=" + check);
    EXPECT_EQ(ended.code, 0) << ended.err;
    const bool noted = ended.out.find("router0->router1, router1->router2") != std::string::npos;
    EXPECT_EQ(noted, check == "note") << ended.out;
  }
  write("wrong.yaml", "topology: {kind: torus, sizes: [4]}\n");
  EXPECT_EQ(run("--config wrong.yaml --workload incast.yaml --quiet").code, 0);
}

}  // namespace
}  // namespace netsim::test
