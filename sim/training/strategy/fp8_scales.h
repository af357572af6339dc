// Scales of tensors in FP8.
#pragma once

#include <cstdint>

namespace netsim {

// In FP8 each block of kScaledElements elements has one scale of kScaleBytes bytes (DeepSeek-V3, arXiv
// 2412.19437, section 3.3.2; DeepEP's x_scales).
inline constexpr std::int64_t kScaledElements = 128, kScaleBytes = 4;

}  // namespace netsim
