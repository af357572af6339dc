// ModelKind: a model that a user describes by its hyper-parameters, one .cpp per kind; what it makes is a
// Model, operator by operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/training/model/operators.h"

namespace netsim {

// Ways to divide a model that not every kind can be divided by.
enum class Division : std::uint8_t { tensor, context, pipeline };

class ModelKind {
 public:
  static constexpr const char* kComponentKind = "model";
  virtual ~ModelKind() = default;

  virtual Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const = 0;
  // Of one iteration over `batch` sequences, as the source of the kind's figures counts them. Unless a kind
  // says otherwise: three times those of its operators' forward, and nothing is recomputed.
  virtual double flops(std::int64_t batch, bool recompute) const;

  virtual std::int64_t layers() const = 0;
  // Hyper-parameters that tensor parallelism divides, with their keys.
  virtual std::vector<std::pair<std::string, std::int64_t>> divided() const = 0;
  // An upper bound for the bytes of the largest tensor or of all weights, for microbatches of so many
  // sequences: beyond ProgramLimits::kBytes it is refused. Unless a kind says otherwise: of its operators.
  virtual double largest_bytes(std::int64_t microbatch) const;
  // The same model of another length, for parts of a model. Why it cannot be resized so, in words for the
  // user; "" if it was.
  virtual std::string resize(std::optional<std::int64_t> layers, std::optional<std::int64_t> sequence) = 0;
  // Tokens of a sequence, which context and sequence parallelism divide.
  virtual std::int64_t sequence() const = 0;
  // All sequences that sequence parallelism divides, with their keys.
  virtual std::vector<std::pair<std::string, std::int64_t>> sequences() const {
    return {{"sequence", sequence()}};
  }
  // Embedding tables that replicas divide among them (ModelLayer::tables); 0: it has none.
  virtual std::int64_t tables() const { return 0; }
  // Why it cannot be divided so, in words for the user; "" if it can.
  virtual std::string refuse(Division) const { return {}; }
  // The routed experts of its layers (Model::routed), with their inner size; null: no layer has any.
  virtual const ExpertsModel* experts() const { return nullptr; }
};

}  // namespace netsim
