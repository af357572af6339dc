// run.log: decisions and warnings, as far as --log asks for them.
#include <memory>

#include "sim/core/registry.h"
#include "sim/report/result_sink.h"

namespace netsim {
namespace {

class RunLog : public ResultSink {
 public:
  std::vector<std::string> files() const override { return {"run.log"}; }
  bool in_every_run() const override { return true; }
  bool open(SinkFiles& /*files*/, const RunView& /*run*/) override { return true; }
  void finish(const FinishedRun& run, SinkFiles& files) override {
    if (run.text != nullptr) files.open("run.log").write(run.text->log);
  }
};

const Registration<ResultSink> kRunLogRegistration{
    "run_log", "run.log: decisions and warnings, as far as --log asks for them", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<RunLog>(); }};

}  // namespace
}  // namespace netsim
