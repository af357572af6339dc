#include "sim/collectives/programs/program_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/collectives/programs/chakra_et.h"
#include "sim/collectives/programs/msccl_xml.h"
#include "sim/collectives/programs/sccl_json.h"
#include "sim/collectives/programs/teccl_json.h"
#include "sim/core/errors.h"
#include "sim/core/recognise.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

struct Reader {
  const char* format;  // name of the format among those that are recognised
  CollectiveProgram (*read)(std::string text, const std::string& path);
};
constexpr Reader kReaders[] = {{"msccl_xml", read_msccl_xml},
                               {"sccl_json", read_sccl_json},
                               {"teccl_schedule", read_teccl_json},
                               {"chakra_et", read_chakra_et}};

}  // namespace

CollectiveProgram read_program(std::string text, const std::string& path) {
  const Format* format = recognise(text, path);
  if (format == nullptr) {
    throw InputError(Place{path, 0, 0, ""},
                     "is no program of a collective; allowed: one of MSCCL (XML), SCCL, TACCL or TE-CCL "
                     "(JSON), or a trace of "
                     "Chakra (NAME.0.et)");
  }
  const auto* reader = std::find_if(std::begin(kReaders), std::end(kReaders), [&](const Reader& candidate) {
    return format->name == candidate.format;
  });
  if (reader == std::end(kReaders)) throw InputError(Place{path, 0, 0, ""}, refusal(*format));
  return reader->read(std::move(text), path);
}

std::string describe(const CollectiveProgram& program) {
  std::uint64_t blocks = 0, steps = 0;
  for (const ProgramRank& rank : program.ranks) {
    blocks += rank.blocks.size();
    for (const CollectiveProgramBlock& block : rank.blocks) steps += block.steps.size();
  }
  return fmt::format("{} '{}' of {}: {}, {}, {}, {}, {}, {}", to_string(program.kind), program.name,
                     counted(program.ranks.size(), "rank"), counted(program.channels, "channel"),
                     counted(blocks, "thread block"), counted(steps, "step"),
                     counted(program.chunks, "chunk"), program.in_place ? "in place" : "out of place",
                     to_string(program.protocol));
}

std::string prove(const CollectiveProgram& program) { return prove(ProgramPlan(program)); }

}  // namespace netsim
