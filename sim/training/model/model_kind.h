// ModelKind: a model that a user describes by its hyper-parameters. Each kind has a .cpp file. It makes a
// Model, operator by operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/training/model/operators.h"

namespace netsim {

// Division: ways to divide a model that not every kind supports.
enum class Division : std::uint8_t { tensor, context, pipeline };

class ModelKind {
 public:
  static constexpr const char* kComponentKind = "model";
  virtual ~ModelKind() = default;

  virtual Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const = 0;
  // Returns the FLOPs of one iteration over `batch` sequences, as the source of the kind's figures counts
  // them. The default is three times those of its operators' forward, without recomputation.
  virtual double flops(std::int64_t batch, bool recompute) const;

  virtual std::int64_t layers() const = 0;
  // Returns the hyper-parameters that tensor parallelism divides, with their keys.
  virtual std::vector<std::pair<std::string, std::int64_t>> divided() const = 0;
  // Returns an upper bound of the bytes of the largest tensor or of all weights, for microbatches of so many
  // sequences. Models beyond ProgramLimits::kBytes are refused. The default is computed from its operators.
  virtual double largest_bytes(std::int64_t microbatch) const;
  // Makes the model one of another length, for parts of a model. Returns why it cannot be resized, in words
  // for the user; "" if it was.
  virtual std::string resize(std::optional<std::int64_t> layers, std::optional<std::int64_t> sequence) = 0;
  // Returns the tokens of a sequence, which context and sequence parallelism divide.
  virtual std::int64_t sequence() const = 0;
  // Returns all sequences that sequence parallelism divides, with their keys.
  virtual std::vector<std::pair<std::string, std::int64_t>> sequences() const {
    return {{"sequence", sequence()}};
  }
  // Returns the number of embedding tables that replicas divide among them (ModelLayer::tables); 0: it has
  // none.
  virtual std::int64_t tables() const { return 0; }
  // Returns why the model cannot be divided in this way, in words for the user; "" if it can.
  virtual std::string refuse(Division) const { return {}; }
  // Returns the routed experts of its layers (Model::routed), with their inner size; null: no layer has any.
  virtual const ExpertsModel* experts() const { return nullptr; }
};

}  // namespace netsim
