// Stopwatch: estimates how long a piece of work takes on a machine of its own, as the smaller of wall time
// and CPU time. Wall time is too long on a machine that others use, and CPU time is too long where several
// threads work. No simulated result depends on it.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>

namespace netsim {

class Stopwatch {
 public:
  Stopwatch() : wall_(std::chrono::steady_clock::now()), processor_(processor_seconds()) {}

  double seconds() const {
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wall_;
    return std::min(wall.count(), processor_seconds() - processor_);
  }

 private:
  static double processor_seconds() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  }

  std::chrono::steady_clock::time_point wall_;
  double processor_;
};

}  // namespace netsim
