// proportional: splits a message over the NICs of its host in proportion to the rates of the ways. It is the
// intra-inter co-design of the survey "Communication Optimization for Distributed Training" (Wei et al.,
// arXiv 2403.07585, figure 5b). NCCL's PXN relays too, but it picks one NIC for a message
// (src/graph/paths.cc).
#include <memory>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/flow_splitter.h"
#include "sim/scheduling/flow/rules/split.h"

namespace netsim {
namespace {

enum class WaysOffered : std::uint8_t { nvlink, pcie, both };

struct ProportionalParameters {
  SplitBy by = SplitBy::links;
  WaysOffered over = WaysOffered::both;
  Bytes least = SplitSettings{}.least;
  Bytes chunk = SplitSettings{}.chunk;
  std::int64_t buffers = SplitSettings{}.buffers;
};

Parameters<ProportionalParameters> proportional_parameters() {
  using P = ProportionalParameters;
  return Parameters<P>()
      .choice(
          "by", &P::by,
          {{"links", SplitBy::links}, {"measured", SplitBy::measured}, {"equal", SplitBy::equal}},
          "the rates to which shares are proportional: `links` takes the rates in the graph of the host, "
          "a NIC being shared with the messages that its own GPU has under way; `measured` takes the mean "
          "rate that earlier shares between these two GPUs attained, and equal rates before that; "
          "`equal` gives all ways the same share")
      .choice("over", &P::over,
              {{"both", WaysOffered::both}, {"nvlink", WaysOffered::nvlink}, {"pcie", WaysOffered::pcie}},
              "the ways to other NICs of the host: over `nvlink` to a GPU that relays to its own NIC, over "
              "`pcie` without another GPU, or `both`; a NIC that both reach is used over NVLink")
      .bytes("least", &P::least, {1, 1000 * kGigabyte}, "messages with fewer bytes are not split")
      .bytes("chunk", &P::chunk, {4 * kKibibyte, kGibibyte},
             "size of the chunks in which a relayed share crosses another GPU (NCCL: 4 MiB in 8 slots)")
      .integer("buffers", &P::buffers, {1, 4096},
               "chunks of a relayed share under way at a time: a chunk has its buffer until the receiver's "
               "NIC has acknowledged it (NCCL: 8)");
}

class ProportionalSplitter final : public FlowSplitter {
 public:
  explicit ProportionalSplitter(const ProportionalParameters& p) : p_(p) {}
  SplitSettings settings() const override {
    return {p_.least, p_.chunk, static_cast<std::uint32_t>(p_.buffers), p_.over != WaysOffered::pcie,
            p_.over != WaysOffered::nvlink};
  }
  void split(Bytes bytes, std::span<const SplitWay> ways, std::span<Bytes> shares) const override {
    std::vector<BitRate> weights(ways.size());
    weigh_ways(p_.by, ways, weights);
    divide_bytes(bytes, weights, shares);
  }

 private:
  ProportionalParameters p_;
};

const Registration<FlowSplitter> kProportional{
    "proportional",
    "splits messages over the NICs of their host, by relays over NVLink and over PCIe, in proportion to the "
    "rates of these ways",
    proportional_parameters(), [](const ProportionalParameters& p, const ConfigNode&) {
      return std::make_unique<ProportionalSplitter>(p);
    }};

}  // namespace
}  // namespace netsim
