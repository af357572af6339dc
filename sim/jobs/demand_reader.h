// DemandReader: fills the fields of DemandView from the jobs of a run, and keeps those that are seen later.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/core/ids.h"
#include "sim/jobs/job_manager.h"
#include "sim/scheduling/demand_view.h"
#include "sim/scheduling/view_history.h"
#include "sim/scheduling/view_keeper.h"

namespace netsim {

class DemandReader {
 public:
  // Lets the keeper ask for the values, and gives it the views. Both must outlive the reader.
  DemandReader(ViewKeeper& keeper, const JobManager& manager);
  DemandReader(const DemandReader&) = delete;
  DemandReader& operator=(const DemandReader&) = delete;

 private:
  // A communication of a job's profile.
  struct Planned {
    GroupId group;
    std::uint32_t name = 0;
    Bytes bytes = 0;
    Time ready = 0, slack = 0;
  };
  // The communications of an iteration, and its length by the profile.
  struct Plan {
    std::vector<Planned> communications;
    Time length = 0;
  };
  using Progress = std::vector<JobProgress>;

  DemandView view(Time now, ViewFields wanted);
  Progress seen(Time now, ViewField field, const ViewHistory<Progress>& history) const;
  void find_coming(Time now);
  void add_coming(const JobProgress& job, Time now);
  void find_slack(Time now);
  const Plan& plan_of(JobId job);
  void forget_ended(const Progress& present);

  ViewKeeper& keeper_;
  const JobManager& manager_;
  ViewHistory<Progress> jobs_history_, coming_history_, slack_history_;
  std::map<JobId, Plan> plans_;
  // The lists of the present call.
  Progress jobs_;
  std::vector<ComingCommunication> coming_;
  std::vector<CommunicationSlack> slack_;
};

}  // namespace netsim
