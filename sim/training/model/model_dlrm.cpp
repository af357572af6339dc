// dlrm: a recommendation model (Naumov et al., arXiv 1906.00091). An MLP computes the dense features. Each
// sparse feature has one row of an embedding table, or a sum of `pooling` rows. Another MLP computes the
// products of all pairs of these vectors. A microbatch counts a rank's samples.
//
// It is trained as at Meta (the same paper, section 3; Mudigere et al., arXiv 2104.05158). Replicas have
// copies of the MLPs and divide the embedding tables among them (embedding_parallel.cpp).
// Indices go to the ranks of the tables and rows come back. Their gradients go there too and are added to the
// rows at once (fused with the optimizer). The dense features' MLP is computed while rows and gradients
// travel. Dividing tables does not change how many rows a rank looks up: it has the rows of all samples in
// its own tables.
//
// Bytes: a lookup reads rows in fp32 and writes their sum in half precision; indices have 8 bytes. The update
// reads the sum's gradient, reads and writes rows, and a state of 4 bytes for each row (row-wise AdaGrad).
// The products of pairs are a batch of small GEMMs, of which half is kept.
#include <memory>
#include <utility>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/model/model_kind.h"

namespace netsim {
namespace {

struct DlrmModel {
  std::int64_t dense = 13;  // number of dense features
  std::int64_t tables = 26, rows = 204'184'588, dimension = 128, pooling = 1;
  ConfigNode bottom, top;
};

// Returns the output sizes of the layers of an MLP.
std::vector<std::int64_t> sizes_of(const ConfigNode& list, std::vector<std::int64_t> otherwise) {
  if (list.is_null()) return otherwise;
  return read_sizes(list, "layers' outputs", 1, 100, 1'000'000);
}

class DlrmMaker {
 public:
  DlrmMaker(const DlrmModel& m, const std::vector<std::int64_t>& bottom, const std::vector<std::int64_t>& top,
            std::int64_t samples, std::int64_t gradient_bytes)
      : m_(m), bottom_(bottom), top_(top), gradient_bytes_(gradient_bytes), samples_{samples} {}

  Model make() const {
    Model model;
    model.first = embedding();
    std::int64_t inputs = interactions();
    for (std::size_t i = 0; i + 1 < top_.size(); ++i) {
      ModelLayer layer{"top_layer", {}, {}, {}};
      Mlp mlp;
      add(mlp, "top_gemm", inputs, top_[i], true);
      inputs = top_[i];
      layer.forward = {{"top_forward", mlp.forward, {}}};
      layer.backward = {{"top_backward", mlp.backward, {}}};
      layer.parameters = mlp.parameters;
      model.body.push_back(static_cast<std::uint32_t>(model.kinds.size()));
      model.kinds.push_back(std::move(layer));
    }
    Mlp end;
    add(end, "click_gemm", inputs, top_.back(), false);
    const Tensor clicks{samples_, {top_.back()}};
    end.forward.push_back(memory_bound("loss", 8, clicks));
    end.backward.insert(end.backward.begin(), memory_bound("loss_backward", 8, clicks));
    model.last = {"clicks",
                  {{"clicks_forward", end.forward, {}}},
                  {{"clicks_backward", end.backward, {}}},
                  end.parameters};
    model.boundary = {samples_, {interactions()}};
    model.gradient_bytes = gradient_bytes_;
    return model;
  }

 private:
  struct Mlp {
    std::vector<Operator> forward, backward;
    std::vector<Tensor> parameters;
  };
  void add(Mlp& mlp, const char* name, std::int64_t inputs, std::int64_t outputs, bool input_gradient) const {
    const Extent in{inputs}, out{outputs};
    const std::string gradient = name;
    mlp.forward.push_back(gemm(name, samples_, out, in));
    mlp.forward.push_back(memory_bound("bias_relu", 4, {samples_, out}));
    std::vector<Operator> backward{memory_bound("bias_relu_backward", 8, {samples_, out})};
    if (input_gradient) backward.push_back(gemm((gradient + "_dgrad").c_str(), samples_, in, out));
    backward.push_back(computing_weights(gemm((gradient + "_wgrad").c_str(), in, out, samples_)));
    backward.push_back(accumulation({{in, out}}, gradient_bytes_));
    mlp.backward.insert(mlp.backward.begin(), backward.begin(), backward.end());
    mlp.parameters.push_back({in, out});
    mlp.parameters.push_back({out});
  }
  std::int64_t vectors() const { return m_.tables + 1; }
  // Returns the size of the dense features' vector and the product of each pair.
  std::int64_t interactions() const { return m_.dimension + vectors() * (vectors() - 1) / 2; }

  ModelLayer embedding() const {
    const Extent tables{m_.tables}, dimension{m_.dimension}, pooling{m_.pooling};
    const Tensor sums{samples_, tables, dimension}, rows{samples_, tables, pooling, dimension};
    const Tensor indices{samples_, tables, pooling};
    const Tensor all{samples_, {vectors()}, dimension}, products{samples_, {interactions()}};
    const Extent each{vectors()};
    Mlp bottom;
    std::int64_t inputs = m_.dense;
    for (std::size_t i = 0; i < bottom_.size(); ++i) {
      add(bottom, "bottom_gemm", inputs, bottom_[i], i > 0);
      inputs = bottom_[i];
    }
    const auto exchange = [](const char* name, bool to_tables, const Tensor& tensor, std::int64_t bytes,
                             std::uint32_t beside) {
      Exchange made{name, to_tables};
      made.over = Dimension::tables;
      made.tensor = tensor;
      made.element_bytes = bytes;
      made.beside = beside;
      return made;
    };
    ModelLayer layer{"embedding", {}, {}, bottom.parameters};
    layer.forward = {
        {"indices", {memory_bound("index_copy", 16, indices)}, {}, exchange("indices", true, indices, 8, 0)},
        {"embedding_lookup",
         {memory_bound("embedding_lookup", {{4, rows}, {2, sums}})},
         {},
         exchange("rows", false, sums, 2, 1)},
        {"bottom_forward", bottom.forward, {}},
        {"interaction_forward",
         {gemm("interaction_gemm", each, each, dimension, samples_),
          memory_bound("interaction_pairs", 4, products)},
         {}}};
    layer.backward = {
        {"interaction_backward",
         {memory_bound("interaction_pairs_backward", 4, products),
          gemm("interaction_gemm_dgrad", each, dimension, each, samples_),
          memory_bound("vector_gradients", 4, all)},
         {},
         exchange("row_gradients", true, sums, 2, 1)},
        {"bottom_backward", bottom.backward, {}},
        {"embedding_update", {memory_bound("embedding_update", {{2, sums}, {8, rows}, {8, indices}})}, {}}};
    layer.tables = {{{m_.rows}, dimension}};
    return layer;
  }

  const DlrmModel& m_;
  const std::vector<std::int64_t>& bottom_;
  const std::vector<std::int64_t>& top_;
  std::int64_t gradient_bytes_;
  Extent samples_;
};

class Dlrm final : public ModelKind {
 public:
  Dlrm(const DlrmModel& model, const ConfigNode& where)
      : m_(model),
        bottom_(sizes_of(m_.bottom, {512, 256, 128})),
        top_(sizes_of(m_.top, {1024, 1024, 512, 256, 1})) {
    const ConfigNode& list = m_.bottom.is_null() ? where : m_.bottom;
    if (bottom_.back() != m_.dimension) {
      list.fail("the last layer of 'bottom' has " + std::to_string(bottom_.back()) +
                " outputs; as many as a row ('dimension') are needed: " + std::to_string(m_.dimension));
    }
    if (top_.size() < 2) m_.top.fail("'top' needs two layers at least");
  }

  Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const override {
    return DlrmMaker(m_, bottom_, top_, microbatch, gradient_bytes).make();
  }
  std::int64_t layers() const override { return static_cast<std::int64_t>(top_.size()) - 1; }
  std::int64_t sequence() const override { return 1; }
  std::vector<std::pair<std::string, std::int64_t>> divided() const override { return {}; }
  std::int64_t tables() const override { return m_.tables; }
  std::string resize(std::optional<std::int64_t>, std::optional<std::int64_t>) override {
    return "a recommendation model has the layers of 'bottom' and 'top', and no sequence";
  }
  std::string refuse(Division division) const override {
    switch (division) {
      case Division::tensor:
        return "a recommendation model has neither heads nor an MLP that tensor parallelism divides: "
               "replicas divide "
               "its embedding tables";
      case Division::context:
        return "a recommendation model has no sequence";
      case Division::pipeline:
        return "nearly all of a recommendation model is its embedding, which is one stage: no layers can be "
               "divided among stages";
    }
    return {};
  }

 private:
  DlrmModel m_;
  std::vector<std::int64_t> bottom_, top_;
};

Parameters<DlrmModel> dlrm_parameters() {
  using P = DlrmModel;
  return Parameters<P>()
      .integer("dense", &P::dense, {1, 1'000'000}, "dense features of a sample")
      .integer("tables", &P::tables, {1, 100'000}, "embedding tables, one for each sparse feature")
      .integer("rows", &P::rows, {1, 1'000'000'000'000}, "rows of all tables together")
      .integer("dimension", &P::dimension, {1, 65'536}, "elements of a row of a table")
      .integer("pooling", &P::pooling, {1, 100'000}, "rows of a table that a sample looks up, and sums up")
      .list("bottom", &P::bottom,
            "outputs of the layers of the dense features' MLP; [512, 256, 128] unless given")
      .list("top", &P::top,
            "numbers of outputs of the layers of the MLP after the interaction; default: [1024, 1024, 512, "
            "256, 1]");
}

const Registration<ModelKind> kDlrm{
    "dlrm", "a recommendation model with embedding tables; the default is MLPerf's", dlrm_parameters(),
    [](const DlrmModel& p, const ConfigNode& where) { return std::make_unique<Dlrm>(p, where); }};

}  // namespace
}  // namespace netsim
