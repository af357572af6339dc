// Are lists of NCCL_ALGO and NCCL_PROTO and the file of a tuner read as NCCL reads them? Is a wrong entry
// refused at its place? Does the record say why a choice was made?
#include "sim/collectives/library/nccl/nccl_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/collectives/packet_collectives.h"
#include "tests/report/fixtures.h"

namespace netsim::nccl_rules_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using Kind = CollectiveKind;

NcclRules lists(const std::string& algorithms, const std::string& protocols = "") {
  NcclRules rules;
  if (!algorithms.empty()) rules.set_algorithms(parse_config("'" + algorithms + "'", "test.yaml"));
  if (!protocols.empty()) rules.set_protocols(parse_config("'" + protocols + "'", "test.yaml"));
  return rules;
}

TEST(NcclRules, AllowAllThatNobodyRulesOut) {
  const NcclRules rules;
  EXPECT_TRUE(rules.allows(Kind::all_reduce, NcclAlgorithm::tree));
  EXPECT_TRUE(rules.allows(Kind::broadcast, Protocol::ll128));
  EXPECT_FALSE(rules.lists_algorithms() || rules.lists_protocols());
}

TEST(NcclRules, ReadListsAsNcclDoes) {
  const NcclRules without = lists("^Tree,NVLS");
  EXPECT_TRUE(without.allows(Kind::all_reduce, NcclAlgorithm::ring));
  EXPECT_FALSE(without.allows(Kind::all_reduce, NcclAlgorithm::tree));
  EXPECT_FALSE(without.allows(Kind::all_gather, NcclAlgorithm::nvls));
  const NcclRules each = lists("ring;allreduce:tree,collnetdirect;broadcast:^ring", "LL,simple");
  EXPECT_FALSE(each.allows(Kind::all_gather, NcclAlgorithm::tree));
  EXPECT_TRUE(each.allows(Kind::all_gather, NcclAlgorithm::ring));
  EXPECT_TRUE(each.allows(Kind::all_reduce, NcclAlgorithm::tree));
  EXPECT_FALSE(each.allows(Kind::all_reduce, NcclAlgorithm::ring));
  EXPECT_TRUE(each.allows(Kind::broadcast, NcclAlgorithm::tree));
  EXPECT_FALSE(each.allows(Kind::broadcast, NcclAlgorithm::ring));
  EXPECT_FALSE(each.allows(Kind::reduce, Protocol::ll128));
  EXPECT_TRUE(each.allows(Kind::reduce, Protocol::ll));
  EXPECT_TRUE(lists("allreduce:ring").allows(Kind::all_gather, NcclAlgorithm::nvls)) << "of others all";
}

TEST(NcclRules, RefuseWhatIsNoList) {
  const auto refusal = [](const std::string& algorithms, const std::string& protocols = "") {
    try {
      lists(algorithms, protocols);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal("rings"),
              AllOf(StartsWith("test.yaml:1:1"), HasSubstr("algorithm 'rings' is not known"),
                    HasSubstr("allowed: tree, ring, ")));
  EXPECT_THAT(refusal("", "ll256"), HasSubstr("protocol 'll256' is not known (allowed: simple, ll, ll128)"));
  EXPECT_THAT(refusal("allgatherv:ring"), HasSubstr("function 'allgatherv' is not known"));
  EXPECT_THAT(refusal("allreduce:ring;tree"), HasSubstr("only the first entry may be without a function"));
  EXPECT_THAT(refusal("allreduce:ring;allreduce:tree"), HasSubstr("a second entry for 'allreduce'"));
  EXPECT_THAT(refusal("ring,"), HasSubstr("algorithm '' is not known"));
}

// ---- Tuners

class Tuner {
 public:
  explicit Tuner(const std::string& text) { std::ofstream(path()) << text; }
  std::string path() const { return directory_.path() + "/tuner.csv"; }
  NcclRules rules() const {
    NcclRules rules;
    rules.read_tuner(ConfigNode::scalar(path(), {}));
    return rules;
  }
  std::string refusal() const {
    try {
      rules();
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  test::Directory directory_;
};

TEST(NcclTuner, ReadsTheFileOfTheExample) {
  const Tuner tuner(
      "# a comment\n"
      "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n"
      "\n"
      "allreduce,0,65536,tree,ll,2,1,-1,-1,0\n"
      "allgather,65537,4294967295,ring,ll128,-1,2,16,1\n"
      "broadcast,0,32768,collnet_chain,simple,-1,1,-1\n");
  const auto rules = tuner.rules().tuner();
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].kind, Kind::all_reduce);
  EXPECT_EQ(rules[0].algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(rules[0].protocol, Protocol::ll);
  EXPECT_EQ(rules[0].channels, 2U);
  EXPECT_EQ(rules[0].nodes, 1U);
  EXPECT_FALSE(rules[0].ranks);
  EXPECT_EQ(rules[0].place.line, 4);
  EXPECT_TRUE(rules[0].fits(Kind::all_reduce, 65'536, 1, 8)) << "the limits belong to it";
  EXPECT_FALSE(rules[0].fits(Kind::all_reduce, 65'537, 1, 8));
  EXPECT_FALSE(rules[0].fits(Kind::all_reduce, 100, 2, 8));
  EXPECT_FALSE(rules[0].fits(Kind::all_gather, 100, 1, 8));
  EXPECT_TRUE(rules[1].fits(Kind::all_gather, kMebibyte, 2, 16));
  EXPECT_FALSE(rules[1].fits(Kind::all_gather, kMebibyte, 2, 8));
}

TEST(NcclTuner, DoesNotFitWhatIsNotModelled) {
  const auto rules =
      Tuner("reduce,0,9,ring,simple,-1,-1,-1,4\nreduce,0,9,ring,simple,-1,-1,-1,1,1\n").rules();
  for (const NcclRules::Line& rule : rules.tuner()) EXPECT_FALSE(rule.fits(Kind::reduce, 5, 1, 8));
}

TEST(NcclTuner, RefusesLinesAtTheirPlace) {
  const auto refusal = [](const std::string& line) { return Tuner("# rules\n" + line + "\n").refusal(); };
  EXPECT_EQ(refusal("allreduce,0,1,ring,ll,-1,-1,-1"), "accepted");
  EXPECT_THAT(refusal("allreduce,0,1,ring,ll,-1,-1"),
              AllOf(HasSubstr("tuner.csv:2:1"), HasSubstr("7 cells")));
  EXPECT_THAT(refusal("alltoall,0,1,ring,ll,-1,-1,-1"),
              AllOf(HasSubstr("tuner.csv:2:1"), HasSubstr("collective type 'alltoall' is not known")));
  EXPECT_THAT(refusal("allreduce,0,1,rings,ll,-1,-1,-1"),
              AllOf(HasSubstr("tuner.csv:2:15"), HasSubstr("algorithm 'rings' is not known")));
  EXPECT_THAT(refusal("allreduce,0,1,ring,l,-1,-1,-1"), HasSubstr("protocol 'l' is not known"));
  EXPECT_THAT(refusal("allreduce,7,1,ring,ll,-1,-1,-1"), HasSubstr("max_bytes is less than min_bytes"));
  EXPECT_THAT(refusal("allreduce,x,1,ring,ll,-1,-1,-1"), AllOf(HasSubstr(":2:11"), HasSubstr("min_bytes")));
  EXPECT_THAT(refusal("allreduce,0,1,ring,ll,0,-1,-1"), HasSubstr("channels (or -1)"));
  EXPECT_THAT(refusal("allreduce,0,1,ring,ll,-1,-1,-1,-1,2"), HasSubstr("regBuff (or -1)"));
  EXPECT_THAT(Tuner("# nothing\n").refusal(), HasSubstr("no rules are in it"));
}

// ---- What they do

constexpr const char* kTwoDgx =
    "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n";

LibraryChoice choice_of(const std::string& collectives, Bytes bytes, Kind kind = Kind::all_reduce) {
  const PacketCollectives dgx(kTwoDgx + ("collectives: {" + collectives) + "}\n");
  const auto members = every(1, 16);
  return dgx.executor->choice(request_of(kind, members, bytes));
}

TEST(NcclChoice, SaysWhy) {
  EXPECT_EQ(choice_of("", kMebibyte).why, "default");
  EXPECT_EQ(choice_of("all_reduce: halving_doubling", kMebibyte).why, "configured");
  EXPECT_THAT(choice_of("all_reduce: nccl, protocol: auto", kMebibyte).why,
              AllOf(StartsWith("configured; NCCL's cost model: "), HasSubstr(" us; next "),
                    HasSubstr("; no NVLS: no switches that add up join the GPUs of each host")));
  EXPECT_THAT(choice_of("protocol: auto", kMebibyte).why, StartsWith("default; NCCL's cost model: "));
}

// A list of PAT alone leaves nothing where it is not: it wants one GPU a host, as the model has it.
TEST(NcclChoice, SaysWhatItsPatDoes) {
  const auto refusal = [](const std::string& collectives, Kind kind) {
    try {
      choice_of(collectives + ", protocol: auto", kMebibyte, kind);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(
      refusal("all_gather: nccl, nccl_algo: pat", Kind::all_gather),
      HasSubstr("PAT, which nccl_algo leaves, does all_gather and reduce_scatter by Simple, for groups "
                "with one GPU a host (collectives.all_gather: pat runs it for any group)"));
  EXPECT_THAT(refusal("all_reduce: nccl, nccl_algo: pat", Kind::all_reduce),
              HasSubstr("PAT, which nccl_algo leaves, does all_gather and reduce_scatter"));
  EXPECT_THAT(refusal("all_reduce: nccl, nccl_algo: nvls", Kind::all_reduce), Not(HasSubstr("PAT")));
}

// Returns the choice for 16 GPUs, with one or two in each host.
LibraryChoice choice_of_hosts(const std::string& more, Kind kind, Bytes bytes, std::uint32_t gpus = 1) {
  const std::string host = gpus == 1 ? "single_nic" : "{kind: full_mesh, gpus: 2, nvlink_rate: 400 Gbps}";
  const PacketCollectives hosts("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: " + host +
                                "\nhosts: " + std::to_string(16 / gpus) +
                                "\ncollectives: {protocol: auto, gpu_generation: hopper, " + more + "}\n");
  return hosts.executor->choice(request_of(kind, every(1, 16), bytes));
}

// 8 + 4 x 14 / 3.5 + 16 x 2.8 us and a KiB by 18 GB/s; of a ring 6.6 + 15 x 5 us. Beyond some MiB a ring's
// bandwidth is more.
TEST(NcclChoice, HasPatWhereEachHostHasAGpu) {
  const std::string nccl = "all_gather: nccl, reduce_scatter: nccl, all_reduce: nccl, broadcast: nccl";
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter}) {
    const LibraryChoice little = choice_of_hosts(nccl, kind, kKibibyte);
    EXPECT_EQ(little.algorithm, "pat");
    EXPECT_EQ(little.protocol, Protocol::simple);
    EXPECT_THAT(little.why, HasSubstr("NCCL's cost model: 68.9 us; next ring LL 81.7 us"));
    EXPECT_EQ(choice_of_hosts(nccl, kind, kGibibyte).algorithm, "ring");
    EXPECT_EQ(choice_of_hosts(nccl + ", nccl_proto: ^simple", kind, kKibibyte).algorithm, "ring");
    EXPECT_EQ(choice_of_hosts(nccl + ", nccl_algo: ^pat", kind, kKibibyte).algorithm, "ring");
    EXPECT_EQ(choice_of_hosts(nccl + ", nccl_algo: pat", kind, kGibibyte).algorithm, "pat");
    EXPECT_EQ(choice_of_hosts(std::string(to_string(kind)) + ": {kind: nccl, pat: false}", kind, kKibibyte)
                  .algorithm,
              "ring");
    EXPECT_EQ(choice_of_hosts(nccl, kind, kKibibyte, 2).algorithm, "ring");
  }
  EXPECT_EQ(choice_of_hosts(nccl, Kind::all_reduce, kKibibyte).algorithm, "tree");
  EXPECT_EQ(choice_of_hosts(nccl, Kind::broadcast, kKibibyte).algorithm, "chain");
  const Tuner tuner("allgather,0,9999999999,pat,ll,-1,-1,-1\nallgather,0,9999999999,pat,simple,2,16,16\n");
  const LibraryChoice ruled = choice_of_hosts(nccl + ", tuner: " + tuner.path(), Kind::all_gather, kGibibyte);
  EXPECT_EQ(ruled.algorithm, "pat");
  EXPECT_THAT(ruled.why, StartsWith("tuner " + tuner.path() + ":2"));
}

// Named by the user it runs anywhere, by Simple where the model would not have it.
TEST(NcclChoice, RunsPatByNameAnywhere) {
  for (const char* rules : {"", ", nccl_proto: ^ll128"}) {
    const LibraryChoice named =
        choice_of(std::string("all_gather: pat, protocol: auto") + rules, kKibibyte, Kind::all_gather);
    EXPECT_EQ(named.algorithm, "pat");
    EXPECT_EQ(named.protocol, Protocol::simple);
    EXPECT_THAT(named.why, StartsWith("configured"));
  }
}

TEST(NcclChoice, KeepsToItsLists) {
  const std::string nccl = "all_reduce: nccl, all_gather: nccl, protocol: auto";
  EXPECT_EQ(choice_of(nccl, kKibibyte).algorithm, "tree");
  EXPECT_EQ(choice_of(nccl + ", nccl_algo: '^tree'", kKibibyte).algorithm, "ring");
  EXPECT_EQ(choice_of(nccl + ", nccl_algo: 'allgather:ring'", kKibibyte).algorithm, "tree");
  EXPECT_EQ(choice_of(nccl, kKibibyte).protocol, Protocol::ll);
  EXPECT_EQ(choice_of(nccl + ", nccl_proto: '^ll,ll128'", kKibibyte).protocol, Protocol::simple);
  EXPECT_EQ(choice_of(nccl + ", nccl_proto: 'allreduce:ll128'", kGibibyte).protocol, Protocol::ll128);
  EXPECT_EQ(choice_of("all_reduce: ring, protocol: auto, nccl_proto: ll128", kKibibyte).protocol,
            Protocol::ll128);
  EXPECT_THAT([&] { choice_of(nccl + ", nccl_algo: 'nvls'", kKibibyte); },
              ThrowsMessage<InputError>(
                  HasSubstr("all_reduce of 16 ranks: the configuration excludes all algorithms")));
  EXPECT_THAT([&] { choice_of("nccl_algo: ring", kKibibyte); },
              ThrowsMessage<ConfigError>(HasSubstr("no collective is left to NCCL's choice")));
  EXPECT_THAT([&] { choice_of("all_reduce: nccl, nccl_proto: ll", kKibibyte); },
              ThrowsMessage<ConfigError>(HasSubstr("'protocol: auto'")));
}

// Four B200 never run LL128 unless a list or the section asks for it; four H100 do at 8 MiB.
TEST(NcclChoice, LeavesLl128OutWithinAHostOfBlackwell) {
  const auto protocol = [](const std::string& host, const std::string& collectives, Bytes bytes) {
    const PacketCollectives one("topology: {kind: star, hosts: 8}\nhosts: 1\nhost: " + host +
                                "\ncollectives: {all_reduce: nccl, " + collectives + "}\n");
    return one.executor->choice(request_of(Kind::all_reduce, every(1, 4), bytes)).protocol;
  };
  EXPECT_EQ(protocol("dgx_h100", "protocol: auto", 8 * kMebibyte), Protocol::ll128);
  for (Bytes bytes = kKibibyte; bytes <= kGibibyte; bytes *= 2)
    EXPECT_NE(protocol("dgx_b200", "protocol: auto", bytes), Protocol::ll128) << bytes;
  EXPECT_EQ(protocol("dgx_b200", "protocol: auto, nccl_proto: ll128", 8 * kMebibyte), Protocol::ll128);
  EXPECT_EQ(protocol("dgx_b200", "protocol: ll128", 8 * kMebibyte), Protocol::ll128);
}

// ---- CollNet, where a fabric adds up

// Four hosts of eight GPUs, or whatever `host` has.
LibraryChoice choice_over(const std::string& host, bool aggregation, const std::string& collectives,
                          const std::vector<GpuId>& members, Kind kind = Kind::all_reduce,
                          Bytes bytes = kMebibyte) {
  const PacketCollectives cluster(
      "topology: {kind: rail_optimized, hosts_per_leaf: 4, units: 1, spines: 2, link: infiniband, rate: 200 "
      "Gbps}\nhost: " +
      host + "\nhosts: 4\nnetwork: {switch: {flow_control: credits, marker: none" +
      (aggregation ? ", aggregation: true" : "") +
      "}}\ntransport: {framing: infiniband, congestion_control: none}\ncollectives: {protocol: auto, " +
      collectives + "}\n");
  return cluster.executor->choice(request_of(kind, members, bytes));
}
constexpr const char* kAllByNccl =
    "all_reduce: nccl, all_gather: nccl, reduce_scatter: nccl, broadcast: nccl";

TEST(NcclChoice, HasCollNetWhereTheFabricAddsUp) {
  const auto all = every(1, 32);
  const LibraryChoice direct = choice_over("dgx_a100", true, kAllByNccl, all);
  EXPECT_EQ(direct.algorithm, "sharp");
  EXPECT_EQ(direct.protocol, Protocol::simple);
  // 44 us, and 1 MiB by 192 GB/s; along chains 69.2 us, and by 120.
  EXPECT_THAT(direct.why,
              HasSubstr("NCCL's cost model: collnet_direct 49.5 us; next collnet_chain Simple 77.9"));
  EXPECT_EQ(direct.why.find("no CollNet"), std::string::npos);
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter}) {
    const LibraryChoice half = choice_over("dgx_a100", true, kAllByNccl, all, kind);
    EXPECT_EQ(half.algorithm, "sharp");
    EXPECT_THAT(half.why, HasSubstr("collnet_direct 50.1 us; next ring"));  // by 172.8 GB/s
  }
  EXPECT_EQ(choice_over("dgx_a100", true, kAllByNccl, all, Kind::broadcast).algorithm, "chain");
  EXPECT_EQ(choice_over("dgx_a100", true, kAllByNccl, all, Kind::all_reduce, 64).algorithm, "tree");
  // NVSwitches that add up do it sooner, and then the NICs of 24 GB/s hold them back.
  const LibraryChoice nvls = choice_over("dgx_h100", true, kAllByNccl, all, Kind::all_reduce, 64 * kKibibyte);
  EXPECT_EQ(nvls.algorithm, "sharp");
  EXPECT_THAT(nvls.why, HasSubstr("NCCL's cost model: nvls 43.7 us; next collnet_direct Simple 44.4"));
  EXPECT_THAT(choice_over("dgx_h100", true, kAllByNccl, all).why,
              HasSubstr("NCCL's cost model: collnet_direct 50.4 us; next nvls Simple 53.6"));
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter}) {
    const LibraryChoice little = choice_over("dgx_h100", true, kAllByNccl, all, kind, 64 * kKibibyte);
    EXPECT_EQ(little.algorithm, "sharp");
    EXPECT_THAT(little.why, HasSubstr("NCCL's cost model: nvls 43.5 us; next collnet_direct Simple 44.4"));
    EXPECT_THAT(choice_over("dgx_h100", true, kAllByNccl, all, kind).why,
                HasSubstr("NCCL's cost model: collnet_direct 50.1 us; next nvls Simple 51.1"));
  }
}

TEST(NcclChoice, IsWhatItWasWhereNoFabricAddsUp) {
  const auto all = every(1, 32);
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather}) {
    for (Bytes bytes = 64; bytes <= kGibibyte; bytes *= 16) {
      const LibraryChoice plain = choice_over("dgx_a100", false, kAllByNccl, all, kind, bytes);
      EXPECT_TRUE(plain.algorithm == "ring" || plain.algorithm == "tree") << plain.algorithm;
      EXPECT_EQ(plain.why.find("CollNet"), std::string::npos);
      EXPECT_EQ(plain.why.find("collnet"), std::string::npos);
      const char* without =
          "all_reduce: {kind: nccl, collnet: false}, all_gather: {kind: nccl, collnet: false}";
      const LibraryChoice off = choice_over("dgx_a100", true, without, all, kind, bytes);
      EXPECT_EQ(off.algorithm, plain.algorithm);
      EXPECT_EQ(off.protocol, plain.protocol);
      EXPECT_EQ(off.why, plain.why);
    }
  }
}

TEST(NcclChoice, ListsAndTunersNameCollNet) {
  const auto all = every(1, 32);
  const auto with = [&](const std::string& more, bool aggregation = true) {
    return choice_over("dgx_a100", aggregation, kAllByNccl + (", " + more), all);
  };
  EXPECT_EQ(with("nccl_algo: 'allreduce:collnetchain'").algorithm, "collnet_chain");
  EXPECT_EQ(with("nccl_algo: 'allreduce:^collnetdirect'").algorithm, "collnet_chain");
  EXPECT_EQ(with("nccl_algo: 'allreduce:^collnetdirect,collnetchain'").algorithm, "tree");
  EXPECT_EQ(with("nccl_algo: 'allreduce:collnetdirect'").algorithm, "sharp");
  EXPECT_THAT([&] { with("nccl_algo: 'allreduce:collnetdirect'", false); },
              ThrowsMessage<InputError>(HasSubstr("the configuration excludes all algorithms")));
  const Tuner tuner(
      "allreduce,0,1048576,collnet_direct,ll,-1,-1,-1\n"  // by Simple alone
      "allreduce,0,1048576,collnet_chain,simple,-1,4,32\n");
  const LibraryChoice ruled = with("tuner: " + tuner.path());
  EXPECT_EQ(ruled.algorithm, "collnet_chain");
  EXPECT_THAT(ruled.why, StartsWith("tuner " + tuner.path() + ":2"));
  EXPECT_EQ(with("tuner: " + tuner.path(), false).algorithm, "tree");
}

TEST(NcclChoice, SaysWhyThereIsNoCollNet) {
  const auto why = [](const std::vector<GpuId>& members) {
    return choice_over("dgx_a100", true, kAllByNccl, members).why;
  };
  EXPECT_THAT(why({0, 1, 8}), HasSubstr("; no CollNet: not as many GPUs of each host"));
  EXPECT_THAT(why({0, 8, 1, 9}), HasSubstr("; no CollNet: the GPUs of a host do not follow each other"));
  EXPECT_EQ(why(every(1, 8)).find("CollNet"), std::string::npos);
  const std::string large =
      choice_over("dgx_2", true, kAllByNccl, every(1, 64)).why;  // 16 GPUs, and CollNet does 8
  EXPECT_THAT(large, HasSubstr("; no CollNet: more than 8 GPUs of a host"));
}

// Without NVSwitches there are chains alone; with one GPU of each host there is nothing to chain.
TEST(NcclChoice, TakesChainsWhereNoSwitchJoinsTheGpus) {
  const std::string pcie = "{kind: pcie_server, cpus: 1, switches: 1, gpus: 8, nics: 8}";
  const std::string ampere = "gpu_generation: ampere, all_reduce: nccl, all_gather: nccl";
  const LibraryChoice chain = choice_over(pcie, true, ampere, every(1, 32), Kind::all_reduce, kGibibyte);
  EXPECT_EQ(chain.algorithm.find("sharp"), std::string::npos);
  EXPECT_EQ(chain.why.find("collnet_direct"), std::string::npos);
  EXPECT_EQ(choice_over(pcie, true, ampere, every(1, 32), Kind::all_gather, kGibibyte).algorithm, "ring");
  const std::string lone = "{kind: pcie_server, cpus: 1, switches: 1, gpus: 1, nics: 1}";
  const LibraryChoice alone = choice_over(lone, true, ampere, every(1, 4), Kind::all_reduce, kGibibyte);
  EXPECT_EQ(alone.algorithm, "collnet_chain");
  EXPECT_THAT(alone.why, HasSubstr("collnet_chain"));
}

TEST(NcclChoice, FollowsTheFirstRuleThatFits) {
  const Tuner tuner(
      "allreduce,0,1048576,nvls,simple,-1,-1,-1\n"  // no switch can
      "allreduce,0,1048576,ring,simple,2,2,16\n"
      "allreduce,0,1048576,tree,simple,-1,-1,-1\n");
  const std::string section = "all_reduce: nccl, protocol: auto, tuner: " + tuner.path();
  const LibraryChoice ruled = choice_of(section, kMebibyte);
  EXPECT_EQ(ruled.algorithm, "ring");
  EXPECT_EQ(ruled.protocol, Protocol::simple);
  EXPECT_EQ(ruled.channels, 2U);
  EXPECT_THAT(ruled.why, StartsWith("tuner " + tuner.path() + ":2"));
  const LibraryChoice beyond = choice_of(section, kMebibyte + 1);
  EXPECT_THAT(beyond.why, HasSubstr("NCCL's cost model"));
  EXPECT_EQ(choice_of(section + ", nccl_algo: '^ring'", kMebibyte).algorithm, "tree");
}

}  // namespace
}  // namespace netsim::nccl_rules_test
