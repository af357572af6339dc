// ModelKind: a model that a user describes by its hyper-parameters, one .cpp per kind; what it makes is a
// Model, operator by operator.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/model/operators.h"

namespace netsim {

class ModelKind {
 public:
  static constexpr const char* kComponentKind = "model";
  virtual ~ModelKind() = default;

  virtual Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const = 0;
  // Of one iteration over `batch` sequences, as the source of the kind's figures counts them.
  virtual double flops(std::int64_t batch, bool recompute) const = 0;

  virtual std::int64_t layers() const = 0;
  // Hyper-parameters that tensor parallelism divides, with their keys.
  virtual std::vector<std::pair<std::string, std::int64_t>> divided() const = 0;
  // An upper bound for the bytes of the largest tensor or of all weights, for microbatches of so many
  // sequences: beyond ProgramLimits::kBytes it is refused.
  virtual double largest_bytes(std::int64_t microbatch) const = 0;
  // The same model of another length, for parts of a model.
  virtual void resize(std::int64_t layers, std::int64_t sequence) = 0;
  virtual std::int64_t sequence() const = 0;
  // The routed experts of its layers (Model::routed), with their inner size; null: no layer has any.
  virtual const ExpertsModel* experts() const { return nullptr; }
};

}  // namespace netsim
