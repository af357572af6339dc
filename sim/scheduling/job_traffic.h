// JobTraffic: counts the payload bytes that each job sends between GPUs over the packet fabric. It exists
// only in runs whose schedulers ask for it. All functions are called between events.
//
// Bytes are counted when their message is acknowledged. count() takes the sums at the ends of iterations,
// so the mean has whole iterations only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/scheduling/flow/flow_ports.h"
#include "sim/scheduling/job_facts.h"
#include "sim/topology/topology.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class JobTraffic {
 public:
  // Returns the ports of a message's path, or nothing where switches choose for each packet
  // (Endpoint::path_of).
  using PathOf = std::function<std::vector<PortId>(const Message&)>;
  // `cluster` must outlive this.
  JobTraffic(const Cluster& cluster, PathOf path_of) : path_of_(std::move(path_of)), ports_(cluster) {}

  // Adds a message of so many bytes. `queue_pair` is its number between the two GPUs.
  void record(const Message& message, Bytes bytes, std::uint32_t queue_pair);
  // Takes the bytes so far as those of the job's first `iterations`, if that is more than before.
  void count(JobId job, std::uint32_t iterations);
  // Forgets what the job has sent in its first `iterations`, because it gets other GPUs.
  void begin_anew(JobId job, std::uint32_t iterations) { jobs_[job] = {{}, iterations, iterations}; }
  // Forgets a job that is over.
  void forget(JobId job) { jobs_.erase(job); }

  // Return the mean bytes of the counted iterations: from one GPU to another, and over each link by rising
  // port. They are 0, or the list is empty, before one is counted. A message counts on the path that the last
  // one of its queue pair has. Where switches choose, it counts on the ports that all packets pass.
  Bytes sent(JobId job, GpuId source, GpuId destination) const;
  std::vector<LinkBytes> on_links(JobId job);
  // Returns the rate of each port's link, by PortId.
  std::span<const BitRate> port_rates() const { return ports_.rates(); }

 private:
  using Key = std::tuple<GpuId, GpuId, std::uint32_t>;  // source, destination, queue pair
  struct Sent {
    Message last;
    Bytes bytes = 0, counted = 0;
  };
  struct OfJob {
    std::map<Key, Sent> sent;
    std::uint32_t first = 0, counted = 0;  // iterations from `first` to `counted` are counted
  };

  PathOf path_of_;
  FlowPorts ports_;
  std::map<JobId, OfJob> jobs_;
};

}  // namespace netsim
