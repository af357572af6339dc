// Do jobs start strictly in the order of their arrivals?
#include "sim/jobs/admission_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace netsim::admission_queue_test {
namespace {

using ::testing::ElementsAre;

TEST(AdmissionQueue, StartsTheFirstJobsThatFitAndNoneBehindOneThatDoesNot) {
  AdmissionQueue queue;
  int free = 10;
  const std::vector<int> needs{4, 8, 1, 2};
  std::vector<int> started;
  const auto admit = [&] {
    queue.admit([&](JobId job) {
      if (needs[job] > free) return false;
      free -= needs[job];
      started.push_back(static_cast<int>(job));
      return true;
    });
  };
  for (const JobId job : {3U, 1U, 0U, 2U}) queue.submit(job);
  admit();
  EXPECT_THAT(started, ElementsAre(3, 1)) << "job 2 would fit, but job 0 comes first";
  EXPECT_TRUE(queue.contains(0));
  EXPECT_TRUE(queue.contains(2));
  EXPECT_FALSE(queue.contains(3));
  admit();
  EXPECT_EQ(started.size(), 2U);
  free += needs[1];
  admit();
  EXPECT_THAT(started, ElementsAre(3, 1, 0, 2));
  EXPECT_TRUE(queue.jobs().empty());
}

}  // namespace
}  // namespace netsim::admission_queue_test
