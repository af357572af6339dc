// Do NCCL_ALGO and NCCL_PROTO lists and the file of a tuner say what NCCL takes them to say, is what is wrong
// refused at its place, and does the record say why?
#include "sim/collectives/execution/nccl_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/collectives/packet_collectives.h"
#include "tests/report/fixtures.h"

namespace netsim {
namespace {

using ::testing::AllOf;
using testing::every;
using ::testing::HasSubstr;
using testing::PacketCollectives;
using testing::request_of;
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
              ThrowsMessage<InputError>(HasSubstr("all_reduce of 16 ranks: NCCL has no algorithm")));
  EXPECT_THAT([&] { choice_of("nccl_algo: ring", kKibibyte); },
              ThrowsMessage<ConfigError>(HasSubstr("no collective is left to NCCL's choice")));
  EXPECT_THAT([&] { choice_of("all_reduce: nccl, nccl_proto: ll", kKibibyte); },
              ThrowsMessage<ConfigError>(HasSubstr("'protocol: auto'")));
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
}  // namespace netsim
