// FlowSplitter: decides how much of a message each way of the source's host carries. It is a component kind;
// `scheduling.splits` of the configuration names one. Without one, a message takes one way as a whole.
//
// It stands beside the flow scheduler, not in it, because the two decide different things. The splitter looks
// at one host's graph when a message is sent. Each share is then a flow with its own source, path and rate.
// So every flow scheduler works with every splitter, and splits also work without a scheduler.
//
// A way is a NIC of the source's host, with the links that lead to it.
// - own: the NIC that the message would take as a whole.
// - nvlink: the NIC of another GPU. The share goes to that GPU over NVLink first, chunk by chunk, and that
//   GPU sends each chunk on.
// - pcie: a NIC that the source itself reaches over PCIe.
#pragma once

#include <cstdint>
#include <span>

#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

enum class WayKind : std::uint8_t { own, nvlink, pcie };

// SplitWay: a way as a splitter sees it. Rates are in bit/s.
struct SplitWay {
  WayKind kind = WayKind::own;
  GpuId via;  // the GPU that sends over the fabric; the source itself for `own` and `pcie`
  // The lowest rate of the links inside both hosts. A link inside the source's host counts with its rate
  // divided by the number of the message's ways that pass it.
  BitRate host_rate = 0;
  // The rate of the sending NIC, or of the receiving one divided by the number of ways that end there, if
  // that is lower.
  BitRate nic_rate = 0;
  // Messages that the GPU `via` has under way over the fabric for itself. 0 if it is the source.
  std::uint32_t others = 0;
  // The mean rate that earlier shares between this source and destination attained on this way, from the
  // split to the last acknowledgement. 0: there were none.
  BitRate measured = 0;
};

// SplitSettings: which messages are split, and how relays work.
struct SplitSettings {
  Bytes least = kMebibyte;  // smaller messages are never split; bytes of payload
  // Size of the chunks in which a relayed share crosses a GPU, and the number of chunks that a relayed share
  // has under way. The defaults are the slice and the number of slots of NCCL's Simple protocol:
  // DEFAULT_BUFFSIZE / NCCL_STEPS (4 MiB / 8) in src/init.cc and src/include/device.h.
  Bytes chunk = 512 * kKibibyte;
  std::uint32_t buffers = 8;
  bool nvlink = true, pcie = true;  // the kinds of ways that are offered beside `own`
};

class FlowSplitter {
 public:
  static constexpr const char* kComponentKind = "flow_splitter";
  virtual ~FlowSplitter() = default;
  virtual SplitSettings settings() const { return {}; }
  // Writes the bytes that each way carries into `shares`, which has as many elements as `ways` and holds
  // zeros. The shares are at least 0 and add up to `bytes`. ways[0] is the own way; there are at least two.
  // Called from events of the source's set, so it may not change the splitter.
  virtual void split(Bytes bytes, std::span<const SplitWay> ways, std::span<Bytes> shares) const = 0;
};

}  // namespace netsim
