#include "sim/workload/memory_plan.h"

#include <fmt/format.h>

#include <numeric>

namespace netsim {

const char* to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::parameters:
      return "parameters";
    case MemoryKind::gradients:
      return "gradients";
    case MemoryKind::optimizer:
      return "optimizer";
    case MemoryKind::activations:
      return "activations";
    case MemoryKind::gathered:
      return "gathered";
    case MemoryKind::communication:
      return "communication";
    case MemoryKind::host:
      return "host";
  }
  return "?";
}

std::string gibibytes(Bytes bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

Bytes MemoryUse::total() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), Bytes{0}) - (*this)[MemoryKind::host];
}

MemoryUse& MemoryUse::operator+=(const MemoryUse& other) {
  for (std::size_t kind = 0; kind < kMemoryKinds; ++kind) bytes_[kind] += other.bytes_[kind];
  return *this;
}

std::string MemoryUse::text() const {
  std::string text = gibibytes(total());
  const char* before = ": ";
  for (std::size_t kind = 0; kind < kMemoryKinds; ++kind) {
    if (bytes_[kind] == 0) continue;
    if (static_cast<MemoryKind>(kind) == MemoryKind::host) before = "; ";
    text += fmt::format("{}{} {}", before, to_string(static_cast<MemoryKind>(kind)), gibibytes(bytes_[kind]));
    before = ", ";
  }
  return text;
}

}  // namespace netsim
