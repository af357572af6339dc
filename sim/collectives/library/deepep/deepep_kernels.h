// The kernels of DeepEP's normal and low-latency modes, as KernelModel (csrc/kernels in DeepSeek's DeepEP,
// v1). The algorithms `deepep` and `deepep_low_latency` have their plans.
#pragma once

#include <cstdint>
#include <utility>

#include "sim/collectives/library/kernel_model.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

// DeepepKernelParameters: the kernels of the normal mode.
//
// - channels, chunk, buffer: 24 SMs, two a channel, RDMA chunks of 16 tokens in a buffer of 128.
//   tests/test_internode.py of DeepEP begins with these values; it then takes the best of chunks of 4 to 32.
// - nvl_buffer: a channel's buffer for the data of one GPU of the same host
// (num_max_nvl_chunked_recv_tokens).
//   All hosts' data share it. While a GPU is slow, the others of its host run ahead of it by as much. With
//   one host `buffer` applies there too.
// - hop_latency, hop_latency_net: DeepSeek's measurements of 64 bytes, end to end ("Insights into
//   DeepSeek-V3", ISCA 2025, table 5: NVLink 3.33 us; InfiniBand in a leaf 2.8 us). Here the fabric's own
//   delays are added, a microsecond between hosts.
// - barriers: a kernel before the main one lets all GPUs meet twice, between hosts and then within
//   (cached_notify in internode.cu). With one host they meet once (intranode.cu).
// - warp_rate, between hosts: forwarded data is copied token by token by one warp for each channel and each
//   GPU of the host (kRDMAAndNVLForwarder of a dispatch, kNVLSender of a combine). Its rate does not depend
//   on NVLink.
// - Measured on two hosts of H20, whose NVLink is 2.25 times that of H800: all 96 warps move 147.3 GB/s,
//   including the own host's and GPU's tokens (pull request 181 and issue 137 of DeepEP). Two hosts of H200
//   are as fast: 145.2 GB/s in a combine (issue 493).
// - warp_rate, within one host: two or more warps for each GPU reach 337 GB/s on H20, more than the NVLink of
//   H800. So there is no limit there.
// - combine_warp_rate: the same for kNVLSender of a combine. The measurements above give one rate for both.
// - host_rate, combine_host_rate: a channel's warps that prepare what goes to other hosts. In a dispatch
//   seven warps (kRDMASender) copy each token to the buffer of each of its hosts, the own one included. In a
//   combine 24 warps (kNVLAndRDMAForwarder), equally many for each host, add up what the GPUs of the host
//   have.
// - So a connection to one of N hosts has the N-th part of the rate. The rates are not known for H800.
// - nvlink_share: where all ranks are in one host NVLink is the bottleneck, and the kernels get less of it
//   than NCCL counts: two thirds of the raw rate on H800 and H20 alike. Each connection stores its part, over
//   all channels and peers, at this share of the rate of the GPU's links. 0.9 makes netsim's H20 as fast as
//   the one of issue 16: 337 GB/s, including the own rank's tokens.
// - The cause of that share is not published. Stores of 64 bytes, each with a flit of header and one of
//   answer, would get two thirds of a link; those of 128 bytes get the four fifths that NCCL counts.
struct DeepepKernelParameters {
  std::int64_t channels = 12;
  std::int64_t chunk = 16;
  std::int64_t buffer = 128;
  std::int64_t nvl_buffer = 512;
  Time hop_latency = 3'330 * kNanosecond;
  Time hop_latency_net = 2'800 * kNanosecond;
  BitRate warp_rate = 12'276 * kMbps;
  BitRate combine_warp_rate = 12'276 * kMbps;
  BitRate host_rate = 0;
  BitRate combine_host_rate = 0;
  double nvlink_share = kShareToSeveral;
};

// Adds the parameters of the kernels to those of `P`, which derives from DeepepKernelParameters.
template <class P>
Parameters<P> with_deepep_kernels(Parameters<P> parameters) {
  const Range<Time> latency{0, kSecond};
  const Range<BitRate> rate{0, 100'000 * kGbps};
  parameters
      .integer("channels", static_cast<std::int64_t P::*>(&P::channels), {1, 1024},
               "channels, each with its share of the tokens (two SMs each; 24 SMs)")
      .integer("chunk", static_cast<std::int64_t P::*>(&P::chunk), {1, 4096},
               "tokens that are sent to another host at a time")
      .integer("buffer", static_cast<std::int64_t P::*>(&P::buffer), {1, 1 << 20},
               "tokens that the receiver of a connection can buffer; at least two chunks")
      .integer(
          "nvl_buffer", static_cast<std::int64_t P::*>(&P::nvl_buffer), {1, 1 << 20},
          "tokens that a GPU's channel can buffer for each other GPU of its host, where there are several "
          "hosts")
      .time("hop_latency", static_cast<Time P::*>(&P::hop_latency), latency,
            "latency of a message over NVLink (DeepSeek: 3.33 us)")
      .time("hop_latency_net", static_cast<Time P::*>(&P::hop_latency_net), latency,
            "latency of a message between hosts (DeepSeek: 2.8 us)")
      .rate("warp_rate", static_cast<BitRate P::*>(&P::warp_rate), rate,
            "rate at which a channel of a GPU forwards tokens from other hosts to one GPU of its host "
            "(DeepEP on H20); 0: no limit")
      .rate("combine_warp_rate", static_cast<BitRate P::*>(&P::combine_warp_rate), rate,
            "the same in a combine, where it sends results for other hosts; 0: no limit")
      .rate("host_rate", static_cast<BitRate P::*>(&P::host_rate), rate,
            "rate at which a channel of a GPU prepares tokens for all hosts of a dispatch; 0: no limit")
      .rate("combine_host_rate", static_cast<BitRate P::*>(&P::combine_host_rate), rate,
            "rate at which a channel of a GPU adds up results for all hosts of a combine; 0: no limit")
      .real("nvlink_share", static_cast<double P::*>(&P::nvlink_share), {0.01, 1},
            "share of the rate of a GPU's links in its host that the kernels reach if all ranks are in one "
            "host (DeepEP on H20)");
  return parameters;
}
KernelModel deepep_kernels(const DeepepKernelParameters& parameters, const KernelLoad& load);

// LowLatencyParameters: the kernels of the low-latency mode.
//
// Latencies of messages are those of the normal mode. The other costs of the kernels are not published. They
// cast the tokens and meet at a grid barrier between sending and receiving. They also wait for the slowest
// GPU, and copy the received data for the experts.
//
// base_latency is fitted to the smallest figure of DeepEP's README, a dispatch of 128 tokens over 8 H800 in
// 77 us. All others follow from it (docs/evidence/validation.md).
//
// local_rate and combine_local_rate limit what all warps of a GPU write to the GPUs of its host. Version 1
// sent by RDMA there too, so that H800's figures have no such limit.
struct LowLatencyParameters {
  Time base_latency = 32 * kMicrosecond;
  Time hop_latency = 3'330 * kNanosecond;
  Time hop_latency_net = 2'800 * kNanosecond;
  BitRate local_rate = 0;
  BitRate combine_local_rate = 0;
};
KernelModel low_latency_kernels(const LowLatencyParameters& parameters, const KernelLoad& load);

}  // namespace netsim
