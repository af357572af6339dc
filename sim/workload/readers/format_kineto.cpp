// Recognises traces of PyTorch's profiler (reader_kineto.cpp), and Chrome's traces of other programs.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "sim/core/recognise.h"

namespace netsim {
namespace {

// Events may stand in a list of their own, without the object around them. Other simulators have kernels,
// too, but without what joins them with their launches.
bool is_kineto(const Excerpt& file) {
  if (file.has_any_key({"deviceProperties", "distributedInfo"}) &&
      file.has_any_key({"schemaVersion", "traceEvents"}))
    return true;
  if (!file.has_any_key({"traceEvents", "schemaVersion", "ph", "cat"})) return false;
  const auto has_any = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return file.contains(fmt::format("\"{}\"", word)); });
  };
  return has_any({"cpu_op", "cuda_runtime", "cuda_driver", "xpu_runtime", "Kernel", "gpu_memcpy",
                  "gpu_memset"}) ||
         (has_any({"kernel"}) &&
          (file.has_key("schemaVersion") || has_any({"correlation", "External id", "Collective name"})));
}

// Matches Chrome's traces of other programs, which are not read.
bool is_chrome_trace(const Excerpt& file) {
  return (file.has_key("traceEvents") || file.has_keys({"ph", "ts"})) && !is_kineto(file);
}

constexpr const char* kKinetoAdvice =
    "netsim reads those of PyTorch's profiler, which have deviceProperties or distributedInfo, or events of "
    "a "
    "GPU (cat kernel with correlation or External id in args, gpu_memcpy, cuda_runtime)";

const FormatRegistration kKinetoFormats[] = {FormatRegistration({.name = "kineto",
                                                                 .what = "a Kineto trace of PyTorch",
                                                                 .use = Format::Use::workload,
                                                                 .matches = is_kineto,
                                                                 .component = "kineto",
                                                                 .advice = {},
                                                                 .endings = {".json", ".json.gz"}}),
                                             FormatRegistration({.name = "chrome_trace",
                                                                 .what = "a Chrome trace (JSON)",
                                                                 .use = Format::Use::none,
                                                                 .matches = is_chrome_trace,
                                                                 .component = {},
                                                                 .advice = kKinetoAdvice,
                                                                 .endings = {".json"}})};

}  // namespace
}  // namespace netsim
