// Are plans found by what a command line names, and is everything else refused with what would do?
#include "sim/collectives/programs/named_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/collectives/programs/msccl_xml.h"
#include "sim/core/errors.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/programs/plans.h"
#include "tests/report/fixtures.h"

namespace netsim::named_plan_test {
namespace {

using ::testing::HasSubstr;

PlanName named(const std::string& text, std::optional<std::uint32_t> ranks, const std::string& kind = "",
               std::optional<std::uint32_t> root = {}, std::vector<std::string> assignments = {}) {
  return {text, std::move(assignments), kind, ranks, root};
}

std::string error_of(const PlanName& name, ExitCode code) {
  try {
    plan_named(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(NamedPlan, IsAnAlgorithmsWithItsParameters) {
  using netsim::test::make_plan;
  test::expect_equal(*plan_named(named("ring", 5)), *make_plan("ring", CollectiveKind::all_reduce, 5));
  test::expect_equal(*plan_named(named("ring", 5, "all_gather")),
                     *make_plan("ring", CollectiveKind::all_gather, 5));
  test::expect_equal(*plan_named(named("chain", 5, "reduce", 3)),
                     *make_plan("chain", CollectiveKind::reduce, 5, 3));
  const auto torus = make_plan("{kind: torus_2d, dimensions: [6, 2]}", CollectiveKind::all_reduce, 12);
  test::expect_equal(*plan_named(named("{kind: torus_2d, dimensions: [6, 2]}", 12)), *torus);
  test::expect_equal(*plan_named(named("torus_2d", 12, "", {}, {"dimensions=[6, 2]"})), *torus);
}

TEST(NamedPlan, IsAFilesProgramAsItStands) {
  const test::Directory directory;
  const std::string path = directory.path() + "/ring.xml";
  std::string text = program_named(named("ring", 4));
  text.replace(text.find("\"Simple\""), 8, "\"LL128\"");
  std::ofstream(path) << text;
  test::expect_equal(*plan_named(named(path, {})),
                     *netsim::test::make_plan("ring", CollectiveKind::all_reduce, 4));
  EXPECT_EQ(program_named(named(path, {})), text);
  EXPECT_THAT(error_of(named(path, 4), ExitCode::usage),
              HasSubstr("--ranks, --root and --set are for algorithms"));
  EXPECT_THROW(program_named(named("ring", 1024)), InputError) << "of two million steps";
  text.replace(text.find("\"rrs\""), 5, "\"rcs\"");
  std::ofstream(path) << text;
  EXPECT_THROW(program_named(named(path, {})), InputError);
}

TEST(NamedPlan, IsRefusedWithWhatIsAllowed) {
  const auto usage = [](const PlanName& name) { return error_of(name, ExitCode::usage); };
  EXPECT_THAT(usage(named("rng", 4)), HasSubstr("no algorithm and no file, did you mean 'ring'?"));
  EXPECT_THAT(usage(named("{kind: rng}", 4)), HasSubstr("did you mean 'ring'?"));
  EXPECT_THAT(usage(named("{rings: 4}", 4)), HasSubstr("kind"));
  EXPECT_THAT(usage(named("{kind", 4)), HasSubstr("the algorithm:1:"));
  EXPECT_THAT(usage(named("ring", {})), HasSubstr("--ranks is missing"));
  EXPECT_THAT(usage(named("ring", 1)), HasSubstr("1 was given, allowed is 2 to 65536"));
  EXPECT_THAT(usage(named("ring", 65'537)), HasSubstr("allowed is 2 to 65536"));
  EXPECT_THAT(usage(named("pairwise", 4, "all_reduce")), HasSubstr("(allowed: all_to_all, all_to_all_v)"));
  EXPECT_THAT(usage(named("ring", 4, "allgather")), HasSubstr("did you mean 'all_gather'?"));
  EXPECT_THAT(usage(named("ring", 4, "", 1)), HasSubstr("--root: all_reduce has none"));
  EXPECT_THAT(usage(named("chain", 4, "", 4)), HasSubstr("4 was given, allowed is 0 to 3"));
  EXPECT_THAT(usage(named("multi_ring", 5, "", {}, {"rings=0"})), HasSubstr("rings"));
  EXPECT_THAT(error_of(named("swing", 6), ExitCode::input), HasSubstr("powers of two"));
}

}  // namespace
}  // namespace netsim::named_plan_test
