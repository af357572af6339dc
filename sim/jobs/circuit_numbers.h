// CircuitNumbers: the numbers that the optical switches have for the configurations that a job asks for. Used
// within sim/jobs only.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/transport/circuit_control.h"
#include "sim/workload/task_source.h"

namespace netsim {

class CircuitNumbers {
 public:
  // `control` is null where the network has no optical circuits. Throws InputError for a configuration that
  // does not exist, at the place where the source asks for it.
  CircuitNumbers(const TaskSource& source, const CircuitControl* control);
  // Returns the switches' number of TaskSource::circuits()[index].
  std::uint32_t of(std::uint32_t index) const { return numbers_[index]; }

 private:
  std::vector<std::uint32_t> numbers_;
};

}  // namespace netsim
