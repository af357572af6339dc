// summary.json: the part of the results that scripts rely on.
#include <memory>

#include "sim/core/registry.h"
#include "sim/report/result_sink.h"
#include "sim/report/summary.h"

namespace netsim {
namespace {

class SummaryJson : public ResultSink {
 public:
  std::vector<std::string> files() const override { return {"summary.json"}; }
  bool in_every_run() const override { return true; }
  bool open(SinkFiles& /*files*/, const RunView& /*run*/) override { return true; }
  void finish(const FinishedRun& run, SinkFiles& files) override {
    if (run.text != nullptr) files.open("summary.json").write(summary_json(run.results));
  }
};

const Registration<ResultSink> kSummaryJsonRegistration{
    "summary_json", "summary.json: the results that scripts rely on", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<SummaryJson>(); }};

}  // namespace
}  // namespace netsim
