// JobStrategies: the strategies of a training job, in the order of their application.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/training/strategy/strategy.h"

namespace netsim {

class JobStrategies {
 public:
  // Makes all strategies whose parameters are keys of the workload called `workload`, from its map `where`.
  // Then it makes those of the list `listed`, which may be null. Throws ConfigError for a parameter or an
  // order that does not fit.
  JobStrategies(const std::string& workload, const ConfigNode& where, const ConfigNode& listed);

  // Call the functions of all strategies, as `Strategy` says.
  void describe(JobShape& job) const;
  void complete(JobShape& job) const;  // also sets JobShape::strategies
  void check(const JobShape& job) const;
  double operations_of_layer(const JobShape& job) const;
  std::vector<std::string> notes(const JobShape& job) const;
  // Calls divide() of the strategies that take part, then apply().
  void apply(TrainingGraph& graph, const JobShape& job) const;

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<Strategy> strategy;
  };

  std::vector<Entry> entries_;
};

}  // namespace netsim
