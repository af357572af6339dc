// file: a model that another file describes, as those of configs/models do. It may be a part of that model,
// with fewer layers or other sequences.
#include <memory>
#include <optional>

#include "sim/core/named_file.h"
#include "sim/core/registry.h"
#include "sim/training/model/model_kind.h"

namespace netsim {
namespace {

struct FileParameters {
  std::string file;
  std::optional<std::int64_t> layers, sequence;
};

// Returns the described model. A description must not name another file.
std::unique_ptr<ModelKind> read_model(const FileParameters& p, const ConfigNode& where) {
  const InputText input = read_named_file(where);
  const ConfigNode root = parse_config(input.text, input.path);
  const ConfigNode* kind = root.is_map() ? root.find("kind") : nullptr;
  if (kind == nullptr || !kind->is_scalar() || kind->text() == "file")
    where.fail(input.path + " describes no model: it has no 'kind' of one (netsim --list model)");
  auto model = Registry<ModelKind>::instance().create(root, "");
  if (!p.layers && !p.sequence) return model;
  const std::string refusal = model->resize(p.layers, p.sequence);
  if (!refusal.empty()) where.find(p.layers ? "layers" : "sequence")->fail(refusal);
  return model;
}

Parameters<FileParameters> file_parameters() {
  using P = FileParameters;
  return with_file(Parameters<P>(), "a description of a model")
      .integer("layers", &P::layers, {1, 100'000}, "that of the file", "layers of the body")
      .integer("sequence", &P::sequence, {1, 10'000'000}, "that of the file",
               "length of a sequence in tokens");
}

const Registration<ModelKind> kFile{
    "file", "a model that another file describes, as in configs/models", file_parameters(),
    [](const FileParameters& p, const ConfigNode& where) { return read_model(p, where); }};

}  // namespace
}  // namespace netsim
