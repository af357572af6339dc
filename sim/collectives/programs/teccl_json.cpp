#include "sim/collectives/programs/teccl_json.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/collectives/programs/program_file.h"
#include "sim/collectives/programs/step_schedule.h"
#include "sim/core/config.h"
#include "sim/core/input_file.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"

namespace netsim {
namespace {

constexpr std::uint32_t kMostEpochs = 1 << 20;

// Takes apart a text that is made of fixed words and numbers.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  bool word(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  bool number(std::uint32_t& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

struct Flow {
  std::uint32_t chunk = 0, source = 0, from = 0, to = 0, epoch = 0;
};

Flow read_flow(const ConfigNode& node) {
  Flow flow;
  const std::string text = node.is_scalar() ? node.text() : "";
  Scanner scanner(text);
  const bool known = scanner.word("Chunk ") && scanner.number(flow.chunk) && scanner.word(" from ") &&
                     scanner.number(flow.source) && scanner.word(" traveled over ") &&
                     scanner.number(flow.from) && scanner.word("->") && scanner.number(flow.to) &&
                     scanner.word(" in epoch ") && scanner.number(flow.epoch) &&
                     (scanner.at_end() || scanner.word(" via switches "));
  if (!known || flow.epoch > kMostEpochs) {
    node.fail("'" + text + "' was given; allowed: 'Chunk C from G traveled over G->G in epoch E', E up to " +
              std::to_string(kMostEpochs));
  }
  return flow;
}

// "GPU 3", "Chunk 0".
std::uint32_t numbered(const char* what, const std::string& name, const ConfigNode& node) {
  std::uint32_t number = 0;
  Scanner scanner(name);
  if (!scanner.word(what) || !scanner.number(number) || !scanner.at_end())
    node.fail("'" + name + "' was given; allowed: '" + what + "N'");
  return number;
}

const ConfigNode& entry(const ConfigNode& root, const char* key) {
  const ConfigNode* found = root.find(key);
  if (found == nullptr) root.fail(std::string("'") + key + "' is missing");
  return *found;
}

class ScheduleReader {
 public:
  explicit ScheduleReader(const ConfigNode& root) : root_(root) {}

  StepSchedule read() {
    schedule_.name = "teccl";
    schedule_.kind = CollectiveKind::all_gather;
    schedule_.place = root_.place();
    read_demand();
    for (const auto& [gpu, chunks] : chunks_of_)
      ranks_.emplace(gpu, static_cast<std::uint32_t>(ranks_.size()));
    add_buffers();
    std::map<std::uint32_t, std::vector<StepSchedule::Send>> epochs;
    const ConfigNode& flows = entry(root_, "7-Flows");
    for (const ConfigNode& node : flows.items()) {
      const Flow flow = read_flow(node);
      epochs[flow.epoch].push_back(
          {address_of(flow, node), rank_of(flow.from, node), rank_of(flow.to, node), node.place()});
    }
    for (auto& [epoch, sends] : epochs) schedule_.steps.push_back(std::move(sends));
    return std::move(schedule_);
  }

 private:
  using Chunk = std::pair<std::uint32_t, std::uint32_t>;  // source, and its number there

  // Who has what in the end; of an all-gather all have the same.
  void read_demand() {
    const ConfigNode& demand = entry(root_, "6-Demand_Met");
    std::vector<std::pair<std::uint32_t, std::set<Chunk>>> met;
    for (const auto& [name, sources] : demand.entries()) {
      auto& [gpu, chunks] = met.emplace_back();
      gpu = numbered("GPU ", name, sources);
      for (const auto& [from, list] : sources.entries()) {
        const std::uint32_t source = numbered("GPU ", from, list);
        for (const auto& [chunk, time] : list.entries()) {
          chunks.insert({source, numbered("Chunk ", chunk, time)});
          chunks_of_[source].insert(numbered("Chunk ", chunk, time));
        }
      }
    }
    for (auto& [gpu, chunks] : met) {
      for (const std::uint32_t own : chunks_of_[gpu]) chunks.insert({gpu, own});
    }
    for (const auto& [gpu, chunks] : met) {
      if (chunks != met.front().second || chunks_of_.size() != met.size()) {
        demand.fail("GPU " + std::to_string(gpu) + " and GPU " + std::to_string(met.front().first) +
                    " get different chunks, or a GPU gets none; allowed: an all-gather");
      }
    }
  }

  // Addresses are counted in the order of the gathered buffer.
  void add_buffers() {
    std::vector<std::uint32_t> all;
    for (const auto& [gpu, chunks] : chunks_of_) {
      std::vector<std::uint32_t>& own = schedule_.inputs.emplace_back();
      for (const std::uint32_t chunk : chunks) {
        const auto address = static_cast<std::uint32_t>(all.size());
        addresses_[{gpu, chunk}] = address;
        own.push_back(address);
        all.push_back(address);
      }
    }
    schedule_.outputs.assign(ranks_.size(), all);
  }

  std::uint32_t rank_of(std::uint32_t gpu, const ConfigNode& node) const {
    const auto found = ranks_.find(gpu);
    if (found == ranks_.end())
      node.fail("'" + node.text() + "': " + std::to_string(gpu) + " is no GPU of the demand");
    return found->second;
  }
  std::uint32_t address_of(const Flow& flow, const ConfigNode& node) const {
    const auto found = addresses_.find({flow.source, flow.chunk});
    if (found == addresses_.end()) node.fail("'" + node.text() + "': a chunk that nobody demands");
    return found->second;
  }

  const ConfigNode& root_;
  std::map<std::uint32_t, std::set<std::uint32_t>> chunks_of_;  // of a GPU, by its number in the file
  std::map<std::uint32_t, std::uint32_t> ranks_;
  std::map<Chunk, std::uint32_t> addresses_;
  StepSchedule schedule_;
};

const FormatRegistration kFormat{
    {.name = "teccl_schedule",
     .what = "a schedule of TE-CCL",
     .use = Format::Use::part,
     .matches = [](const Excerpt& file) { return file.has_key("1-Epoch_Duration"); },
     .component = "msccl",
     .advice = kProgramAdvice,
     .endings = {".json"}}};

}  // namespace

CollectiveProgram read_teccl_json(std::string text, const std::string& path) {
  return as_input([&] {
    const ConfigNode root = parse_config(text, path);
    return program_of(ScheduleReader(root).read());
  });
}

}  // namespace netsim
