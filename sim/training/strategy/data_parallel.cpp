// Data parallelism over axis "replicas", the ranks that hold the same parameters. All gradients of a stage
// are all-reduced (stream dp) after its last backward, in pieces of `bucket` bytes (0: in one piece). The
// copies of the model in a bidirectional pipeline are summed in the same collective.
//
// With `overlap`, gradients are all-reduced during the last microbatch's backward, whenever layers have
// filled a bucket. The remainder follows after it. Without `overlap`, gradients of chunks for which the
// schedule has reduction steps (PipelineStepKind::reduce) are reduced at these, in pieces of a bucket.
//
// local_steps, parameter_servers and sharded_replicas take its place where a job has them.
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct DataParameters {
  std::int64_t data = 1;
  std::int64_t gradient_bytes = 2;
  Bytes bucket = 0;
  bool overlap = false;
};

class DataParallel final : public Strategy {
 public:
  explicit DataParallel(const DataParameters& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"pipeline_parallel", "expert_fetch", "reduced_parameters"}};
  }
  void describe(JobShape& job) const override {
    job.data = p_.data;
    job.gradient_bytes = p_.gradient_bytes;
    job.bucket = p_.bucket;
    job.overlap_gradients = p_.overlap;
  }
  bool takes_part(const JobShape& job) const override {
    return !job.divides_gradients() && job.local_steps == 1 && job.servers == 0;
  }
  void check(const JobShape& job) const override {
    if (!p_.overlap) return;
    const ConfigNode& key = job.key("gradient", "overlap");
    if (p_.bucket == 0) key.fail("overlap needs gradient.bucket: the size of one all-reduce");
    if (job.plan->placement.routes() > 1) {
      key.fail(
          "overlap has to be false: the copies of the model in a bidirectional pipeline complete their "
          "gradients in different orders");
    }
    if (job.plan->reduces()) key.fail(std::string(kScheduleReduces) + "gradient.overlap has to be false");
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    for (const ParameterSet set : parameter_sets(job))
      sum_gradients(graph, {p_.bucket, p_.overlap, job.divides_states(), set});
  }

 private:
  DataParameters p_;
};

Parameters<DataParameters> data_parameters() {
  using P = DataParameters;
  return in_section(kParallelSection,
                    Parameters<P>().integer("data", &P::data, {1, 1'000'000}, "data-parallel replicas (d)"))
      .section(
          kGradientSection.name,
          Parameters<P>()
              .choice("dtype", &P::gradient_bytes, {{"fp16", std::int64_t{2}}, {"fp32", std::int64_t{4}}},
                      "type in which gradients are summed and all-reduced")
              .bytes("bucket", &P::bucket, {0, 1000 * kGigabyte},
                     "size of one all-reduce; 0: all gradients in one")
              .flag("overlap", &P::overlap, "all-reduce buckets during the last microbatch's backward"),
          kGradientSection.doc);
}

const Registration<Strategy> kDataParallel{
    "data_parallel", "replicas all-reduce their gradients", ptdp_keys(data_parameters()),
    [](const DataParameters& p, const ConfigNode&) { return std::make_unique<DataParallel>(p); }};

}  // namespace
}  // namespace netsim
