// WithoutHandles: a base for Endpoints of tests. Its functions on handles find no message, unless the
// Endpoint overrides them.
#pragma once

#include <cstdint>

#include "sim/transport/endpoint.h"

namespace netsim::test {

// Base is Endpoint, or an interface that derives from it.
template <class Base>
class WithoutHandles : public Base {
 public:
  bool hold(const MessageHandle&) override { return false; }
  bool release(const MessageHandle&) override { return false; }
  bool set_priority(const MessageHandle&, std::uint8_t) override { return false; }
  Bytes cancel(const MessageHandle&) override { return 0; }
  bool set_rate(const MessageHandle&, BitRate) override { return false; }
  bool set_path(const MessageHandle&, std::uint32_t) override { return false; }
  Bytes left(const MessageHandle&) const override { return 0; }
  void tell_delays() override {}
};

}  // namespace netsim::test
