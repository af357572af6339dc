// Shared by the tests of the report: a small task source, a small run, and a directory that is removed at the
// end.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/report/link_groups.h"
#include "sim/report/results.h"
#include "sim/workload/task_source.h"

namespace netsim::test {

// Two ranks and two named tasks each; only what tables ask for.
class TinySource : public TaskSource {
 public:
  const std::string& job_name() const override { return name_; }
  std::uint32_t ranks() const override { return 2; }
  std::optional<std::uint32_t> iterations() const override { return 1; }
  const std::vector<Work>& works() const override { return works_; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<RankId>& group(GroupId) const override { return group_; }
  std::optional<std::uint64_t> total_tasks() const override { return 4; }
  bool for_each_task(RankId, const Visitor&) const override { return false; }
  std::uint32_t open_iteration(RankId) const override { return kNoIteration; }
  std::vector<Task> held_back(RankId) const override { return {}; }
  void start(RankId, std::vector<Task>&) override {}
  void complete(RankId, TaskId, std::vector<Task>&) override {}
  double model_flops() const override { return 0; }

 private:
  std::string name_ = "tiny, \"quoted\"";
  std::vector<Work> works_{{"work", {}}};
  std::vector<std::string> names_{"forward", "grad,sync"};
  std::vector<RankId> group_{0, 1};
};

inline Quantiles quantiles_of(const std::vector<std::int64_t>& values) {
  Quantiles all;
  for (const std::int64_t value : values) all.add(value);
  return all;
}

// A job of two ranks and two iterations: rank times that add up to 4 ms, means that are easy to check by
// hand.
inline JobResult two_rank_job() {
  JobResult job;
  job.name = "pair";
  job.iterations = 2;
  job.done = true;
  job.begin = 0;
  job.end = 4 * kMillisecond;
  job.iteration_ends = {1 * kMillisecond, 4 * kMillisecond};
  job.gpus = {0, 1};
  job.rank_times.resize(2);
  job.rank_times[0] = {3 * kMillisecond, 1 * kMillisecond, 1 * kMillisecond, 0, {}};
  job.rank_times[0].exposed_by[static_cast<std::size_t>(Stream::tp)] = 1 * kMillisecond;
  job.rank_times[1] = {1 * kMillisecond, 2 * kMillisecond, 2 * kMillisecond, 1 * kMillisecond, {}};
  job.rank_times[1].exposed_by[static_cast<std::size_t>(Stream::dp)] = 2 * kMillisecond;
  job.tasks_done = 10;
  job.tasks_total = 10;
  job.model_flops = 1e9;
  job.peak_flops = 1e12;
  return job;
}

inline Results two_rank_results() {
  Results results;
  results.simulated = 4 * kMillisecond;
  results.events = 1234;
  results.jobs.push_back(two_rank_job());
  results.network.packets = 70;
  results.network.packet_hops = {400, 0, 140, 7};
  results.network.flows_started = results.network.flows_done = 3;
  results.network.ecn_marks = 5;
  results.flows = flow_times(quantiles_of({10, 20, 30}));
  results.knobs = {"dcqcn", "red", "pfc", "go_back_n", true};
  LinkResult link;
  link.name = "edge0->agg1";
  link.rate = 100 * kGbps;
  link.counters.wire_bytes = 25'000'000;  // half of what 100 Gb/s carry in 4 ms
  link.counters.busy = 2 * kMillisecond;
  results.links.push_back(link);
  return results;
}

// gpu - nic - leaf (tier 0) - spine (tier 1), and a second leaf beside the first one.
inline Graph small_graph() {
  Graph graph;
  const AtomId host = graph.add_atom();
  const NodeId gpu = graph.add_node(NodeKind::gpu, host, "host0/gpu0");
  const NodeId nic = graph.add_node(NodeKind::nic, host, "host0/nic0");
  const NodeId leaf = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "leaf0", 0);
  const NodeId other = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "leaf1", 0);
  const NodeId spine = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "spine0", 1);
  const LinkSpec link;
  graph.add_link(gpu, nic, link);
  graph.add_link(nic, leaf, link);
  graph.add_link(leaf, other, link);
  graph.add_link(leaf, spine, link);
  return graph;
}

inline std::vector<LinkResult> links_of(const Graph& graph) {
  std::vector<LinkResult> links;
  const LinkTiers tiers = link_tiers(graph);
  for (PortId port = 0; port < graph.port_count(); ++port)
    links.push_back({graph.port_name(port), LinkKind::ethernet, 100 * kGbps, {}, tiers.of_port[port]});
  return links;
}

class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "netsim_report_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const std::string& path() const { return path_; }
  std::string text(const std::string& name) const {
    std::ostringstream all;
    all << std::ifstream(path_ + "/" + name).rdbuf();
    return all.str();
  }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ + "/" + name); }

 private:
  std::string path_;
};

}  // namespace netsim::test
