// Data parallelism over axis "replicas", the ranks that hold the same parameters. All gradients of a stage
// are all-reduced (stream dp) after its last backward, in pieces of `bucket` bytes (0: in one piece). The
// copies of the model in a bidirectional pipeline are summed in the same collective.
//
// With `overlap`, gradients are all-reduced during the last microbatch's backward, whenever layers of the
// body have filled a bucket. The remainder follows after it. With `per`, layers or tensors of the whole model
// fill the buckets, embedding and logits too. Without `overlap`, gradients of chunks for which the schedule
// has reduction steps (PipelineStepKind::reduce) are reduced at these, in pieces of a bucket.
//
// The first bucket may have a size of its own, so that communication begins early. PyTorch's
// DistributedDataParallel has buckets of 25 MiB and a first one of 1 MiB
// (torch/csrc/distributed/c10d/reducer.hpp: kDefaultBucketBytesCap, kDefaultFirstBucketBytes).
//
// local_steps, parameter_servers and sharded_replicas take its place where a job has them.
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct DataParameters {
  std::int64_t data = 1;
  std::int64_t gradient_bytes = 2;
  Bytes bucket = 0, first_bucket = 0;
  GradientsPer per = GradientsPer::body;
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
    job.first_bucket = p_.first_bucket;
    job.gradients_per = p_.per;
    job.overlap_gradients = p_.overlap;
  }
  bool takes_part(const JobShape& job) const override {
    return !job.divides_gradients() && job.local_steps == 1 && job.servers == 0;
  }
  void check(const JobShape& job) const override {
    if (!p_.overlap) {
      refuse_early_buckets(job);
      return;
    }
    const ConfigNode& key = job.key("gradient", "overlap");
    if (p_.bucket == 0) key.fail("gradient.overlap needs gradient.bucket, the size of one all-reduce");
    if (job.plan->placement.routes() > 1) {
      key.fail(
          "overlap has to be false: the copies of the model in a bidirectional pipeline complete their "
          "gradients in different orders");
    }
    if (job.plan->reduces()) key.fail(std::string(kScheduleReduces) + "gradient.overlap has to be false");
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    for (const ParameterSet set : parameter_sets(job))
      sum_gradients(graph, {job.buckets(), p_.overlap, job.divides_states(), set});
  }

 private:
  void refuse_early_buckets(const JobShape& job) const {
    if (p_.per != GradientsPer::body)
      job.key("gradient", "per")
          .fail("buckets are filled during the backward: gradient.overlap has to be true");
    if (p_.first_bucket != 0) {
      job.key("gradient", "first_bucket")
          .fail("there is a first bucket during the backward only: gradient.overlap has to be true");
    }
  }

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
                     "size of one all-reduce; with 0 one all-reduce sums all gradients")
              .bytes("first_bucket", &P::first_bucket, {0, 1000 * kGigabyte},
                     "overlap: size of the first all-reduce, which may begin early if it is small; 0: bucket")
              .choice(
                  "per", &P::per,
                  {{"body", GradientsPer::body},
                   {"layer", GradientsPer::layer},
                   {"tensor", GradientsPer::tensor}},
                  "overlap: what fills buckets. With body, whole layers of the body do; embedding, logits "
                  "and what is left follow after the backward. With layer or tensor, all gradients fill "
                  "buckets, by whole layers or by single tensors (PyTorch's DDP)")
              .flag("overlap", &P::overlap,
                    "replicas all-reduce buckets during the last microbatch's backward"),
          kGradientSection.doc);
}

const Registration<Strategy> kDataParallel{
    "data_parallel", "replicas all-reduce their gradients", ptdp_keys(data_parameters()),
    [](const DataParameters& p, const ConfigNode&) { return std::make_unique<DataParallel>(p); }};

}  // namespace
}  // namespace netsim
