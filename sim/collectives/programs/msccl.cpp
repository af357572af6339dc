// msccl: a collective as a file gives it, with its thread blocks, steps and channels unchanged. MSCCL's
// interpreter would run it in the same way (Cowan et al., MSCCLang, ASPLOS 2023). The file gives the number
// of ranks; rank r of the program is the r-th rank of the group.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/core/errors.h"
#include "sim/core/named_file.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct MscclParameters {
  std::string file;
  std::optional<Protocol> protocol;
};

class Msccl final : public CollectiveAlgorithm {
 public:
  // Throws InputError for a wrong program.
  Msccl(InputText input, std::optional<Protocol> protocol) : path_(std::move(input.path)) {
    CollectiveProgram program = read_program(std::move(input.text), path_);
    if (protocol) program.protocol = *protocol;
    if (const std::string wrong = prove(program); !wrong.empty())
      throw InputError(path_ + ": " + describe(program) + ": refused: " + wrong);
    program_ = std::make_shared<const CollectiveProgram>(std::move(program));
  }

  bool supports(CollectiveKind kind) const override { return kind == program_->kind; }
  PlanTraits traits() const override { return {.protocol = program_->protocol}; }

  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    if (shape.ranks != program_->ranks.size()) refuse(kind, shape.ranks, "ranks", program_->ranks.size());
    if (has_root(kind) && shape.root != program_->root) refuse(kind, shape.root, "as root", program_->root);
    return std::make_unique<ProgramPlan>(program_);
  }

 private:
  [[noreturn]] void refuse(CollectiveKind kind, std::uint64_t given, const char* what,
                           std::uint64_t allowed) const {
    throw InputError(std::string(to_string(kind)) + " with " + std::to_string(given) + " " + what + ": " +
                     path_ + " is for " + std::to_string(allowed) + " " + what);
  }

  std::string path_;
  std::shared_ptr<const CollectiveProgram> program_;
};

const Registration<CollectiveAlgorithm> kMsccl{
    "msccl", "runs a program of MSCCL unchanged, for its collective and its number of ranks",
    with_file(Parameters<MscclParameters>(),
              "the program (MSCCL XML; SCCL, TACCL, TE-CCL JSON; Chakra NAME.0.et)")
        .choice("protocol", &MscclParameters::protocol,
                {{"of_file", std::nullopt},
                 {"simple", Protocol::simple},
                 {"ll", Protocol::ll},
                 {"ll128", Protocol::ll128}},
                "NCCL protocol; of_file: that of the file, or Simple where the file names none"),
    [](const MscclParameters& p, const ConfigNode& where) {
      return std::make_unique<Msccl>(read_named_file(where, kLargestProgram), p.protocol);
    }};

}  // namespace
}  // namespace netsim
