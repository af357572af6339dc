#include "sim/workload/strategy/ptdp_program.h"

#include <algorithm>
#include <vector>

#include "sim/workload/strategy/pipeline_program.h"

namespace netsim {
namespace {

using Position = BlockBuilder::Position;

class PtdpProgram : private StageComputation {
 public:
  PtdpProgram(const PtdpPlan& plan, ProgramBuilder& builder)
      : plan_(plan),
        builder_(builder),
        shard_(plan.model, plan.tensor, plan.microbatch, plan.gradient_bytes),
        layers_(static_cast<std::uint32_t>(plan.model.layers) /
                (plan.pipeline.stages * plan.pipeline.chunks)) {
    const std::uint32_t tp = builder_.axis("tp", static_cast<std::uint32_t>(plan.tensor));
    const std::uint32_t dp = builder_.axis("dp", static_cast<std::uint32_t>(plan.data));
    pp_axis_ = builder_.axis("pp", plan.pipeline.stages);
    if (plan.tensor > 1) tensor_group_ = builder_.group({{{tp, {}}}, {}, 0});
    if (plan.data > 1) data_group_ = builder_.group({{{dp, {}}}, {}, 0});
    if (plan.pipeline.stages > 1) {
      embedding_group_ = builder_.group({{{pp_axis_, {0, plan.pipeline.stages - 1}}}, {}, 0});
      make_transfers(tp);
    }
  }

  Program build(const PipelineSchedule& schedule) {
    const PipelineProgram pipeline(builder_, plan_.pipeline, transfers_, *this);
    for (std::uint32_t stage = 0; stage < plan_.pipeline.stages; ++stage) {
      const std::string name = "stage_" + std::to_string(stage);
      BlockBuilder main(builder_, name);
      finish_iteration(main, stage, pipeline.append(main, stage, schedule));
      builder_.role({name, {{pp_axis_, {stage}}}, main.finish()});
    }
    Program program = builder_.finish();
    program.iterations = plan_.iterations;
    program.model_flops = transformer_flops(
        plan_.model, plan_.microbatch * plan_.pipeline.microbatches * plan_.data, plan_.recompute);
    return program;
  }

 private:
  // The gathers of the two directions have communicators of their own: their order may differ between the
  // ranks.
  void make_transfers(std::uint32_t tp) {
    transfers_.axis = pp_axis_;
    transfers_.message = shard_.activation_bytes();
    if (plan_.tensor == 1 || !plan_.scatter_gather) return;
    transfers_.message /= plan_.tensor;
    transfers_.gathered = shard_.activation_bytes();
    transfers_.forward_group = builder_.group({{{tp, {}}}, {}, 1});
    transfers_.backward_group = builder_.group({{{tp, {}}}, {}, 2});
  }

  bool first_part(std::uint32_t stage, std::uint32_t chunk) const { return stage == 0 && chunk == 0; }
  bool last_part(std::uint32_t stage, std::uint32_t chunk) const {
    return stage + 1 == plan_.pipeline.stages && chunk + 1 == plan_.pipeline.chunks;
  }
  static std::vector<Position> before_if(bool waits) {
    return waits ? std::vector<Position>{BlockBuilder::kBefore} : std::vector<Position>{};
  }

  // Blocking all-reduce over the tensor group; without tensor parallelism the computation itself.
  Position tensor_all_reduce(BlockBuilder& block, const char* name, Bytes bytes, Position after) const {
    if (plan_.tensor == 1) return after;
    return block.collective(name, CollectiveKind::all_reduce, Stream::tp, 0, tensor_group_, bytes, {after});
  }

  // ---- forward ----

  void layer_forward(BlockBuilder& block, bool again, bool waits) const {
    const Bytes bytes = shard_.activation_bytes();
    const char* name = again ? "tp_recompute" : "tp_forward";
    Position at =
        block.compute(shard_.attention_forward(), before_if(waits), again ? "attention_recompute" : "");
    at = tensor_all_reduce(block, name, bytes, at);
    at = block.compute(shard_.mlp_forward(), {at}, again ? "mlp_recompute" : "");
    at = tensor_all_reduce(block, name, bytes, at);
    block.compute(shard_.layer_end_forward(), {at}, again ? "layer_end_recompute" : "");
  }

  // All layers of a chunk; the first one waits for what is before it.
  template <class Layer>
  void repeat_layers(BlockBuilder& block, bool waits, const char* name, Layer layer) const {
    for (std::uint32_t i = 0; i < layers_; ++i) {
      BlockBuilder one(builder_, name);
      layer(one, waits && i == 0);
      block.repeat(one.finish());
    }
  }

  void embedding(BlockBuilder& block) const {
    Position at = block.compute(shard_.embedding_lookup());
    at = tensor_all_reduce(block, "tp_embedding", shard_.activation_bytes(), at);
    block.compute(shard_.embedding_end(), {at});
  }

  void loss(BlockBuilder& block) const {
    const Bytes bytes = shard_.token_bytes();
    Position at = block.compute(shard_.logits_forward());
    at = tensor_all_reduce(block, "tp_loss", bytes, at);
    at = block.compute(shard_.loss_predicted(), {at});
    at = tensor_all_reduce(block, "tp_loss", bytes, at);
    at = block.compute(shard_.loss_sum(), {at});
    at = tensor_all_reduce(block, "tp_loss", bytes, at);
    block.compute(shard_.loss_end(), {at});
  }

  Position forward(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk, bool waits) const override {
    if (first_part(stage, chunk)) embedding(block);
    repeat_layers(block, waits, "layer_forward",
                  [this](BlockBuilder& layer, bool first) { layer_forward(layer, false, first); });
    if (last_part(stage, chunk)) loss(block);
    return block.size() - 1;
  }

  // ---- backward ----

  void layer_backward(BlockBuilder& block, bool waits) const {
    const Bytes bytes = shard_.activation_bytes();
    if (plan_.recompute) layer_forward(block, true, waits);
    Position at = block.compute(shard_.mlp_backward(), before_if(waits && !plan_.recompute));
    at = tensor_all_reduce(block, "tp_backward", bytes, at);
    at = block.compute(shard_.attention_backward(), {at});
    at = tensor_all_reduce(block, "tp_backward", bytes, at);
    block.compute(shard_.layer_begin_backward(), {at});
  }

  void logits_backward(BlockBuilder& block) const {
    Position at = block.compute(shard_.logits_backward());
    at = tensor_all_reduce(block, "tp_logits_backward", shard_.activation_bytes(), at);
    block.compute(shard_.final_norm_backward(), {at});
  }

  Position backward(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk, bool waits,
                    bool final) const override {
    if (last_part(stage, chunk)) logits_backward(block);
    const Position result = layers_backward(block, chunk, waits, final && overlaps());
    if (!first_part(stage, chunk)) return result;
    return block.compute(shard_.embedding_backward());
  }

  // The layers of a chunk, with the all-reduce of each bucket after the layer that fills it.
  Position layers_backward(BlockBuilder& block, std::uint32_t chunk, bool waits, bool buckets) const {
    Position result = 0;
    for (std::uint32_t i = 0; i < layers_; ++i) {
      BlockBuilder layer(builder_, "layer_backward");
      layer_backward(layer, waits && i == 0);
      block.repeat(layer.finish());
      result = block.size() - 1;
      const std::uint32_t done = (plan_.pipeline.chunks - 1 - chunk) * layers_ + i + 1;
      if (buckets && bucket_closes(done) > 0) data_all_reduce(block, bucket_closes(done), {result});
    }
    return result;
  }

  // ---- gradients ----

  bool overlaps() const { return plan_.gradient_overlap && plan_.data > 1; }
  Bytes layer_gradients() const { return shard_.layer_parameters() * plan_.gradient_bytes; }
  // Layers fill a bucket until it holds at least gradient_bucket bytes: this many, or all of the stage's if
  // 0.
  std::uint32_t layers_per_bucket() const {
    return static_cast<std::uint32_t>((plan_.gradient_bucket + layer_gradients() - 1) / layer_gradients());
  }
  // Size of the bucket that closes when `done` layers of the stage have their gradients; 0 if none does.
  Bytes bucket_closes(std::uint32_t done) const {
    return done % layers_per_bucket() == 0 ? layers_per_bucket() * layer_gradients() : 0;
  }
  void data_all_reduce(BlockBuilder& block, Bytes bytes, const std::vector<Position>& after) const {
    block.collective("dp_gradients", CollectiveKind::all_reduce, Stream::dp, 0, data_group_, bytes, after);
  }

  bool has_word_embedding(std::uint32_t stage) const {
    return stage == 0 || stage + 1 == plan_.pipeline.stages;
  }
  std::int64_t stage_parameters(std::uint32_t stage) const {
    std::int64_t parameters = shard_.layer_parameters() * layers_ * plan_.pipeline.chunks;
    if (has_word_embedding(stage)) parameters += shard_.word_embedding_parameters();
    if (stage == 0) parameters += shard_.position_embedding_parameters();
    if (stage + 1 == plan_.pipeline.stages) parameters += shard_.final_norm_parameters();
    return parameters;
  }

  void finish_iteration(BlockBuilder& main, std::uint32_t stage, Position computed) const {
    std::vector<Position> reduced{computed};
    if (plan_.pipeline.stages > 1 && has_word_embedding(stage)) {
      const Bytes bytes = shard_.word_embedding_parameters() * plan_.gradient_bytes;
      reduced.push_back(main.collective("pp_embedding_gradients", CollectiveKind::all_reduce, Stream::pp, 0,
                                        embedding_group_, bytes, {computed}));
    }
    if (plan_.data > 1) {
      reduce_gradients(main, stage, reduced);
      reduced = {main.size() - 1};
    }
    if (plan_.adam) main.compute(shard_.optimizer(stage_parameters(stage)), reduced);
  }

  // What was not all-reduced during the backward, in pieces of a bucket.
  void reduce_gradients(BlockBuilder& main, std::uint32_t stage, const std::vector<Position>& after) const {
    Bytes left = stage_parameters(stage) * plan_.gradient_bytes;
    if (overlaps()) {
      const std::uint32_t all = layers_ * plan_.pipeline.chunks;
      left -= Bytes{all / layers_per_bucket() * layers_per_bucket()} * layer_gradients();
    }
    while (left > 0) {
      const Bytes piece = plan_.gradient_bucket == 0 ? left : std::min(left, plan_.gradient_bucket);
      data_all_reduce(main, piece, after);
      left -= piece;
    }
  }

  const PtdpPlan& plan_;
  ProgramBuilder& builder_;
  TransformerShard shard_;
  std::uint32_t layers_;  // of a chunk
  std::uint32_t pp_axis_ = 0;
  std::uint32_t tensor_group_ = 0, data_group_ = 0, embedding_group_ = 0;
  PipelineTransfers transfers_;
};

}  // namespace

Program make_ptdp_program(const PtdpPlan& plan, const PipelineSchedule& schedule) {
  ProgramBuilder builder(plan.name);
  return PtdpProgram(plan, builder).build(schedule);
}

}  // namespace netsim
