// scale_with_rate(): converts a queue threshold given for one link speed to another speed, linearly. Markers
// use it.
#pragma once

#include "sim/core/units.h"

namespace netsim {

inline Bytes scale_with_rate(Bytes bytes, BitRate rate, BitRate reference_rate) {
  return static_cast<Bytes>(static_cast<Int128>(bytes) * rate / reference_rate);
}

}  // namespace netsim
