// Queue thresholds that are given for one link speed, at another: markers scale them linearly.
#pragma once

#include "sim/core/units.h"

namespace netsim {

inline Bytes scale_with_rate(Bytes bytes, BitRate rate, BitRate reference_rate) {
  __extension__ using Wide = __int128;
  return static_cast<Bytes>(static_cast<Wide>(bytes) * rate / reference_rate);
}

}  // namespace netsim
