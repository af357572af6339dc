// OutputParameters: the section `output` of the configuration.
#pragma once

#include <cstdint>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/report/samples.h"

namespace netsim {

struct OutputParameters {
  std::int64_t max_rows = 1'000'000;  // limit of each streamed table; a sink of one's own applies it itself
  bool critical_path = false;
  SampleParameters sample;
  ConfigNode sinks;  // result sinks besides those of every run; a list, or null
};
const Parameters<OutputParameters>& output_parameters();

}  // namespace netsim
