// report.html: folding of ranks, merging of boxes, bounded sizes, escaping and determinism.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/page/iteration_timeline.h"
#include "sim/report/page/json_writer.h"
#include "sim/report/page/page_assets.h"
#include "sim/report/page/page_document.h"
#include "sim/report/page/rank_groups.h"
#include "sim/report/page/sampled_series.h"
#include "sim/report/result_sinks.h"
#include "tests/report/fixtures.h"

namespace netsim::report_page_test {
namespace {

using nlohmann::json;
using test::Directory;
using test::TinySource;
using test::two_rank_results;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A workload of any number of ranks that computes, on a grid of tensor, pipeline and data.
class GridSource final : public TinySource {
 public:
  GridSource(std::uint32_t tensor, std::uint32_t pipeline, std::uint32_t data, std::string name = "grid")
      : axes_{{"tp", tensor}, {"pp", pipeline}, {"dp", data}}, name_(std::move(name)) {}
  const std::string& job_name() const override { return name_; }
  std::uint32_t ranks() const override { return axes_[0].size * axes_[1].size * axes_[2].size; }
  std::vector<RankAxis> axes() const override { return axes_; }
  const std::vector<Work>& works() const override { return works_; }
  const std::vector<std::string>& names() const override { return names_; }
  std::optional<PipelineMark> pipeline_mark(RankId, TaskId id) const override {
    return PipelineMark{.microbatch = id, .chunk = 1, .layer = 5};
  }

 private:
  std::vector<RankAxis> axes_;
  std::string name_;
  std::vector<Work> works_{1};
  std::vector<std::string> names_{"forward", "backward </script><script>alert(1)</script>"};
};

TaskRecord task_of(std::uint32_t rank, std::uint32_t id, Time start, Time end, std::uint32_t iteration = 0) {
  TaskRecord record;
  record.rank = rank;
  record.task.id = id;
  record.task.name = id % 2;
  record.task.iteration = iteration;
  record.task.body = ComputeTask();
  record.start = record.posted = start;
  record.end = end;
  return record;
}

std::vector<std::string> labels_of(const RankGroups& groups) {
  std::vector<std::string> labels;
  for (const RankGroups::Group& group : groups.groups) labels.push_back(group.label);
  return labels;
}

// ---- Groups of ranks

TEST(ReportRankGroups, AreTheRanksWhereTheyAreFew) {
  const RankGroups groups = rank_groups(GridSource(2, 2, 1), 4, 16);
  EXPECT_EQ(groups.unit, RankGroups::Unit::rank);
  EXPECT_THAT(labels_of(groups), ElementsAre("rank 0", "rank 1", "rank 2", "rank 3"));
}

TEST(ReportRankGroups, AreTheStagesOfAPipeline) {
  const RankGroups groups = rank_groups(GridSource(2, 4, 3), 24, 16);
  EXPECT_EQ(groups.unit, RankGroups::Unit::stage);
  ASSERT_EQ(groups.groups.size(), 4u);
  EXPECT_EQ(groups.groups[1].label, "stage 1 (6 ranks)");
  EXPECT_THAT(groups.groups[1].ranks, ElementsAre(2, 3, 10, 11, 18, 19));
}

TEST(ReportRankGroups, JoinStagesAndRangesToABoundedNumber) {
  const RankGroups stages = rank_groups(GridSource(1, 100, 2), 200, 16);
  EXPECT_LE(stages.groups.size(), kMostStages);
  EXPECT_EQ(stages.groups[0].label, "stages 0 to 1 (4 ranks)");
  const RankGroups ranges = rank_groups(GridSource(100, 1, 1), 100, 16);
  EXPECT_EQ(ranges.unit, RankGroups::Unit::ranks);
  EXPECT_LE(ranges.groups.size(), 16u);
  for (const RankGroups& groups : {stages, ranges}) {
    std::vector<std::uint32_t> all;
    for (const RankGroups::Group& group : groups.groups)
      all.insert(all.end(), group.ranks.begin(), group.ranks.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), &groups == &stages ? 200u : all.size());
    for (std::uint32_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank], rank);
  }
}

// ---- Boxes

TEST(ReportBoxes, NarrowNeighboursAreOneBoxThatKnowsWhatTheyShare) {
  BoxTrack track(100);
  track.add({0, 10, 1, 3, 0, 1});
  track.add({10, 15, 2, 3, 1, 1});
  track.add({500, 900, 3, 4, 1, 1});
  track.merge(20);
  ASSERT_EQ(track.boxes().size(), 2u);
  const TimelineBox& box = track.boxes().front();
  EXPECT_EQ(box.begin, 0);
  EXPECT_EQ(box.end, 15);
  EXPECT_EQ(box.name, 1u);
  EXPECT_EQ(box.tasks, 2u);
  EXPECT_EQ(box.layer, 3);
  EXPECT_EQ(box.microbatch, TimelineBox::kUnknown);
  EXPECT_EQ(box.chunk, 1);
}

TEST(ReportBoxes, AreBoundedAndLoseNoTask) {
  constexpr std::size_t kMost = 1000;
  BoxTrack track(kMost);
  std::uint32_t tasks = 0;
  std::size_t largest = 0;
  for (; tasks < 200'000; ++tasks) {
    track.add({10 * Time{tasks}, 10 * Time{tasks} + 7, 0});
    largest = std::max(largest, track.boxes().size());
  }
  EXPECT_LE(largest, 2 * kMost);
  std::uint32_t counted = 0;
  Time last = 0;
  for (const TimelineBox& box : track.boxes()) {
    EXPECT_GE(box.begin, last);
    last = box.end;
    counted += box.tasks;
  }
  EXPECT_EQ(counted, tasks);
}

TEST(ReportBoxes, WideOnesStayAsTheyAre) {
  BoxTrack track(10);
  for (int i = 0; i < 15; ++i) track.add({i * 100, i * 100 + 100, 0});
  track.merge(99);
  EXPECT_EQ(track.boxes().size(), 15u);
}

// ---- Timelines of iterations

TEST(ReportTimeline, ShowsTheLastIterationThatEnded) {
  const GridSource source(1, 1, 1);
  IterationTimeline timeline(source);
  for (std::uint32_t i = 0; i < 5; ++i) timeline.add(task_of(0, i, i * 100, i * 100 + 50, i));
  const auto shown = timeline.shown(4, 100);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->iteration, 3u);
  EXPECT_TRUE(shown->complete);
  EXPECT_EQ(shown->begin, 300);
  EXPECT_EQ(shown->end, 350);
  const auto cut = timeline.shown(0, 100);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->iteration, 4u);
  EXPECT_FALSE(cut->complete);
  EXPECT_FALSE(IterationTimeline(source).shown(1, 100));
}

TEST(ReportTimeline, KeepsTheLongestIterationWhereTheLastIsMuchShorter) {
  const GridSource source(1, 1, 1);
  IterationTimeline timeline(source);
  for (std::uint32_t i = 0; i < 9; ++i)
    timeline.add(task_of(0, i, i * 1000, i * 1000 + (i == 2 ? 900 : 100), i));
  const auto longest = timeline.longest(9, 100);
  ASSERT_TRUE(longest);
  EXPECT_EQ(longest->iteration, 2u);
  EXPECT_TRUE(longest->complete);
  EXPECT_EQ(longest->begin, 2000);
  EXPECT_EQ(longest->end, 2900);
  IterationTimeline even(source);
  for (std::uint32_t i = 0; i < 9; ++i) even.add(task_of(0, i, i * 1000, i * 1000 + (i == 7 ? 120 : 100), i));
  EXPECT_FALSE(even.longest(9, 100));
  EXPECT_FALSE(even.longest(0, 100));
}

TEST(ReportTimeline, TasksThatOverlapAreInSeveralTracks) {
  const GridSource source(1, 1, 1);
  IterationTimeline timeline(source);
  for (std::uint32_t i = 0; i < 6; ++i) timeline.add(task_of(0, i, 0, 100 + i));
  timeline.add(task_of(0, 6, 200, 300));
  const auto shown = timeline.shown(1, 100);
  ASSERT_TRUE(shown);
  ASSERT_EQ(shown->streams.size(), 1u);
  EXPECT_EQ(shown->streams[0].tracks.size(), IterationTimeline::kMostTracks);
  EXPECT_GE(shown->omitted, 2u);
}

TEST(ReportTimeline, ComputationsOfTheCpuHaveTheirOwnTrack) {
  const GridSource source(1, 1, 1);
  IterationTimeline timeline(source);
  timeline.add(task_of(0, 0, 0, 100));
  TaskRecord launch = task_of(0, 1, 0, 100);
  launch.task.body = HostThreadTask();
  timeline.add(launch);
  const auto shown = timeline.shown(1, 100);
  ASSERT_TRUE(shown);
  ASSERT_EQ(shown->streams.size(), 2u);
  EXPECT_STREQ(slot_name(shown->streams[0].slot), "compute");
  EXPECT_STREQ(slot_name(shown->streams[1].slot), "cpu");
}

TEST(ReportTimeline, FoldsRanksToStagesAndKeepsTheirMarks) {
  const GridSource source(8, 4, 16);
  IterationTimeline timeline(source);
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) timeline.add(task_of(rank, 7, 0, 1000));
  const auto shown = timeline.shown(1, 100);
  ASSERT_TRUE(shown);
  ASSERT_EQ(shown->streams.size(), 4u);
  EXPECT_EQ(shown->streams[2].rank, 16u);
  EXPECT_EQ(shown->streams[2].tracks[0].boxes()[0].microbatch, 7);
  EXPECT_EQ(shown->streams[2].tracks[0].boxes()[0].chunk, 1);
}

TEST(ReportTimeline, MergesUntilThePageHasRoom) {
  const GridSource source(1, 8, 1);
  IterationTimeline timeline(source);
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    for (std::uint32_t i = 0; i < 3000; ++i) timeline.add(task_of(rank, i, i * 100, i * 100 + 100));
  }
  std::size_t boxes = 0;
  std::uint32_t tasks = 0;
  const auto shown = timeline.shown(1, 500);
  ASSERT_TRUE(shown);
  for (const ShownStream& stream : shown->streams) {
    for (const BoxTrack& track : stream.tracks) {
      boxes += track.boxes().size();
      for (const TimelineBox& box : track.boxes()) tasks += box.tasks;
    }
  }
  EXPECT_LE(boxes, 500u);
  EXPECT_GE(boxes, 100u);
  EXPECT_EQ(tasks, 8u * 3000);
}

// ---- Samples

TEST(ReportSamples, KeepTheLargestValuesInBoundedMemory) {
  SampledSeries series;
  for (Time i = 1; i <= 100'000; ++i) series.add("port", i * 10, 10, i == 77'777 ? 5.0 : 1.0);
  const std::vector<SampledSeries::Series> all = series.largest(3);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].largest, 5.0);
  EXPECT_LE(all[0].points.size(), 2 * SampledSeries::kMostPoints + 2);
  const auto peak = std::max_element(all[0].points.begin(), all[0].points.end(),
                                     [](const auto& a, const auto& b) { return a.value < b.value; });
  EXPECT_EQ(peak->value, 5.0);
  EXPECT_GE(peak->time, 777'770);
  EXPECT_LE(peak->time, 777'770 + 10 * 512);
}

std::vector<std::pair<Time, double>> points_of(const SampledSeries& series) {
  std::vector<std::pair<Time, double>> points;
  const std::vector<SampledSeries::Series> all = series.largest(1);
  for (const SampledSeries::Point& point : all.at(0).points) points.emplace_back(point.time, point.value);
  return points;
}

// Each point holds from the one before it, so a gap is one point of value 0 at its end.
TEST(ReportSamples, FallToZeroInGaps) {
  using Point = std::pair<Time, double>;
  SampledSeries series;
  series.add("port", 10, 10, 3);
  series.add("port", 30, 10, 2);  // after a gap of one interval
  series.add("port", 40, 10, 5);
  series.add("port", 80, 10, 4);  // after a gap of three
  EXPECT_THAT(points_of(series), ElementsAre(Point{0, 0}, Point{10, 3}, Point{20, 0}, Point{30, 2},
                                             Point{40, 5}, Point{70, 0}, Point{80, 4}, Point{90, 0}));
}

TEST(ReportSamples, BeginAtZero) {
  using Point = std::pair<Time, double>;
  SampledSeries series;
  series.add("port", 40, 10, 4);
  EXPECT_THAT(points_of(series), ElementsAre(Point{0, 0}, Point{30, 0}, Point{40, 4}, Point{50, 0}));
}

TEST(ReportSamples, SayThatFurtherSeriesAreMissing) {
  SampledSeries series;
  for (std::size_t i = 0; i <= SampledSeries::kMostSeries; ++i)
    series.add("port" + std::to_string(i), 10, 10, static_cast<double>(i));
  EXPECT_TRUE(series.cut());
  EXPECT_EQ(series.largest(2).at(0).largest, static_cast<double>(SampledSeries::kMostSeries - 1));
}

// ---- JSON and the document

TEST(ReportJson, IsReadBackAsItWasWritten) {
  JsonWriter writer;
  writer.object([&] {
    writer.field("text", "a \"b\" </script> <!-- \n \x1b \xff");
    writer.field("number", 0.1 + 0.2);
    writer.field("large", std::uint64_t{1} << 62);
    writer.array("list", [&] {
      writer.value(1);
      writer.value(true);
      writer.null();
      writer.object([] {});
    });
    writer.seconds("time", 2 * kMillisecond);
    writer.field("endless", 1e308 * 10);
  });
  EXPECT_THAT(writer.text(), Not(HasSubstr("<")));
  const json read = json::parse(writer.text());
  EXPECT_THAT(read["text"].get<std::string>(), HasSubstr("a \"b\" </script> <!-- \n \x1b "));
  EXPECT_EQ(read["number"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(read["large"].get<std::uint64_t>(), std::uint64_t{1} << 62);
  EXPECT_EQ(read["list"].dump(), "[1,true,null,{}]");
  EXPECT_EQ(read["time"]["s"].get<double>(), 0.002);
  EXPECT_EQ(read["time"]["text"], "2.00 ms");
  EXPECT_TRUE(read["endless"].is_null());
}

TEST(ReportDocument, HasEveryAssetOnceAndNoMarkIsLeft) {
  std::string page;
  write_page("a <b> & c", R"({"x":"@CSS@ @D3@"})", [&](std::string_view piece) { page += piece; });
  EXPECT_THAT(page, HasSubstr("<title>a &lt;b> &amp; c</title>"));
  EXPECT_THAT(page, HasSubstr(R"({"x":"@CSS@ @D3@"})"));
  std::size_t scripts = 0;
  for (const PageAsset& asset : page_assets()) {
    const bool script = asset.name.ends_with(".js");
    scripts += script ? 1 : 0;
    if (asset.name == "template.html") continue;
    EXPECT_NE(page.find(asset.text), std::string::npos) << asset.name;
    if (!script) continue;
    EXPECT_EQ(asset.text.find("</script"), std::string_view::npos) << asset.name;
    EXPECT_EQ(asset.text.find("<!--"), std::string_view::npos) << asset.name;
  }
  EXPECT_GE(scripts, 2u);
  EXPECT_THAT(page, Not(HasSubstr("@TITLE@")));
}

// ---- The sink

// Runs the sinks over an iteration of `tasks` tasks at each rank and returns the page.
std::string page_of(const GridSource& source, const Results& results, std::uint32_t tasks,
                    bool report = true) {
  const Directory directory;
  RunView view{{}, {{source.job_name(), &source}}};
  view.report = report;
  view.output.max_rows = 1;
  ResultSinks sinks(directory.path(), view);
  for (std::uint32_t i = 0; i < tasks; ++i) {
    for (std::uint32_t rank = 0; rank < source.ranks(); ++rank)
      sinks.add(task_of(rank, i, i * kMicrosecond, i * kMicrosecond + 900 * kNanosecond, 1));
  }
  const RunText text;
  sinks.finish(results, &text);
  return directory.has("report.html") ? directory.text("report.html") : "";
}

json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t at = page.find(begin);
  if (at == std::string::npos) return {};
  const std::size_t from = at + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

Results results_of(const GridSource& source) {
  Results results = two_rank_results();
  JobResult& job = results.jobs[0];
  job.name = source.job_name();
  job.gpus.resize(source.ranks());
  job.rank_times.resize(source.ranks(), job.rank_times.front());
  return results;
}

TEST(ReportPage, IsLeftOutWhereTheRunAsksForIt) {
  const GridSource source(1, 2, 1);
  EXPECT_EQ(page_of(source, results_of(source), 3, false), "");
}

TEST(ReportPage, IsTheSameForTheSameRecords) {
  const GridSource source(2, 2, 1);
  const std::string page = page_of(source, results_of(source), 30);
  EXPECT_FALSE(page.empty());
  EXPECT_EQ(page, page_of(source, results_of(source), 30));
}

TEST(ReportPage, NamesCannotEndItsScript) {
  const GridSource source(1, 2, 1, "job </script><!--");
  Results results = results_of(source);
  results.notes = {"a note </SCRIPT><script>alert(1)</script>"};
  const json data = data_of(page_of(source, results, 3));
  EXPECT_EQ(data["meta"]["title"], "job </script><!--");
  EXPECT_EQ(data["notes"][0], "a note </SCRIPT><script>alert(1)</script>");
  EXPECT_THAT(data["timelines"][0]["names"].dump(), HasSubstr("alert(1)"));
}

TEST(ReportPage, HasTheFiguresOfTheResults) {
  const GridSource source(1, 2, 1);
  const Results results = two_rank_results();
  const json data = data_of(page_of(source, results, 3));
  EXPECT_EQ(data["kind"], "training");
  const json& breakdown = data["breakdowns"][0];
  EXPECT_EQ(breakdown["categories"].dump(), R"(["compute","exposed tp","exposed dp","idle"])");
  EXPECT_EQ(breakdown["rows"].size(), 2u);
  EXPECT_DOUBLE_EQ(breakdown["rows"][0]["s"][0].get<double>(), 1.5e-3);
  EXPECT_DOUBLE_EQ(breakdown["rows"][1]["s"][3].get<double>(), 0.5e-3);
  EXPECT_DOUBLE_EQ(breakdown["mean"]["total"]["s"].get<double>(), 2e-3);
  EXPECT_EQ(data["flows"]["count"], 3);
  EXPECT_DOUBLE_EQ(data["links"]["tiers"][0]["mean"].get<double>(), 0.5);
  EXPECT_EQ(data["timelines"][0]["iteration"], 1);
  EXPECT_EQ(data["timelines"][0]["duration_ns"], 4000000);
  EXPECT_EQ(data["timelines"][0]["tracks"][0]["boxes"][1].dump(), "[1000,900,1,0,5,1,1,1]");
}

// The limits of the size are those of docs/how-to/report.md.
TEST(ReportPage, IsBoundedForAHundredAndForManyThousandGpus) {
  const GridSource few(8, 8, 2), many(8, 16, 128);
  ASSERT_EQ(few.ranks(), 128u);
  ASSERT_EQ(many.ranks(), 16'384u);
  EXPECT_LT(page_of(few, results_of(few), 2000).size(), 2'000'000u);
  EXPECT_LT(page_of(many, results_of(many), 100).size(), 5'000'000u);
}

}  // namespace
}  // namespace netsim::report_page_test
