#include "sim/collectives/programs/teccl_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/collectives/programs/json_value.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/collectives/programs/step_schedule.h"
#include "sim/core/config.h"
#include "sim/core/input_file.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"

namespace netsim {
namespace {

constexpr std::uint32_t kMostEpochs = 1 << 20;
// Largest number of parts that a chunk is cut into, where less than one chunk is sent at a time.
constexpr std::uint32_t kMostParts = 64;
// Volumes have six decimal digits; this allows for sums of them.
constexpr double kVolumeError = 2e-6;

// Scanner: parses a text that consists of fixed words and numbers.
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
  bool real(double& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// TecclHop: a transfer over a link.
struct TecclHop {
  std::uint32_t from = 0, to = 0, epoch = 0;
  double volume = 1;  // fraction of the chunk
};
// Parses "0->2 in epoch 3" or "0->2 with volume 0.5 in epoch 3 via switches 16".
bool read_hop(Scanner& scanner, TecclHop& hop) {
  if (!scanner.number(hop.from) || !scanner.word("->") || !scanner.number(hop.to)) return false;
  if (scanner.word(" with volume ") && !scanner.real(hop.volume)) return false;
  return scanner.word(" in epoch ") && scanner.number(hop.epoch) && hop.epoch <= kMostEpochs &&
         (scanner.at_end() || scanner.word(" via switches "));
}
constexpr const char* kHop = "G->G [with volume V] in epoch E', E up to ";

struct Flow {
  std::uint32_t chunk = 0, source = 0;
  TecclHop hop;
};
Flow read_flow(const ConfigNode& node) {
  Flow flow;
  const std::string text = node.is_scalar() ? node.text() : "";
  Scanner scanner(text);
  const bool known = scanner.word("Chunk ") && scanner.number(flow.chunk) && scanner.word(" from ") &&
                     scanner.number(flow.source) && scanner.word(" traveled over ") &&
                     read_hop(scanner, flow.hop);
  if (!known) {
    node.fail("'" + text + "' was given; allowed: 'Chunk C from G traveled over " + kHop +
              std::to_string(kMostEpochs));
  }
  return flow;
}

// Returns the number in "GPU 3" or "Chunk 0".
std::uint32_t numbered(const char* what, const std::string& name, const ConfigNode& node) {
  std::uint32_t number = 0;
  Scanner scanner(name);
  if (!scanner.word(what) || !scanner.number(number) || !scanner.at_end())
    node.fail("'" + name + "' was given; allowed: '" + what + "N'");
  return number;
}

// Finds an entry by its name without the number before it, which differs between files: "7-Flows", "6-Flows".
const ConfigNode* find_entry(const ConfigNode& root, std::string_view name) {
  for (const auto& [key, value] : root.entries()) {
    const std::size_t at = key.find('-');
    if (at != std::string::npos && std::string_view(key).substr(at + 1) == name) return &value;
  }
  return nullptr;
}

class ScheduleReader {
 public:
  explicit ScheduleReader(const ConfigNode& root) : root_(root) {
    if (!root.is_map()) root.fail("allowed: an object with 'N-Flows' and 'N-Demand_Met' or 'N-Chunk paths'");
  }

  StepSchedule read() {
    schedule_.name = "teccl";
    schedule_.place = root_.place();
    read_demand();
    for (const std::uint32_t gpu : gpus_) ranks_.emplace(gpu, static_cast<std::uint32_t>(ranks_.size()));
    if (is_all_gather()) {
      read_all_gather();
    } else {
      read_all_to_all();
    }
    for (auto& [epoch, sends] : epochs_) schedule_.steps.push_back(std::move(sends));
    return std::move(schedule_);
  }

 private:
  using Chunk = std::pair<std::uint32_t, std::uint32_t>;  // source, and the chunk's number there

  static std::string number(std::uint64_t value) { return std::to_string(value); }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(ranks_.size()); }

  // ---- Which GPU gets which chunk

  void read_demand() {
    met_ = find_entry(root_, "Demand_Met");
    paths_ = find_entry(root_, "Chunk paths");
    if (met_ != nullptr) {
      for (const auto& [name, sources] : map_of(*met_)) {
        const std::uint32_t gpu = numbered("GPU ", name, sources);
        for (const auto& [from, list] : map_of(sources)) {
          for (const auto& [chunk, time] : map_of(list)) {
            add_demand(gpu, {numbered("GPU ", from, list), numbered("Chunk ", chunk, time)}, time);
            check_time(time);
          }
        }
      }
    } else if (paths_ != nullptr) {
      for (const auto& [name, paths] : map_of(*paths_)) {
        const auto [gpu, chunk] = demand_named(name, paths);
        add_demand(gpu, chunk, paths);
      }
    } else {
      root_.fail(
          "does not state which GPU gets which chunk; allowed: 'N-Demand_Met' or 'N-Chunk paths' besides "
          "'N-Flows'");
    }
    if (chunks_.empty()) root_.fail("no GPU gets a chunk; allowed: an all-gather or an all-to-all");
  }

  // Checks the time at which a GPU has a chunk; it is not used.
  static void check_time(const ConfigNode& node) {
    if (!is_plain(node) || read_real(node) < 0) refuse(node, "a time from 0 on");
  }

  static const std::vector<std::pair<std::string, ConfigNode>>& map_of(const ConfigNode& node) {
    if (!node.is_map()) refuse(node, "an object");
    return node.entries();
  }

  static std::pair<std::uint32_t, Chunk> demand_named(const std::string& name, const ConfigNode& node) {
    std::uint32_t gpu = 0, epoch = 0;
    Chunk chunk;
    Scanner scanner(name);
    if (!scanner.word("Demand at ") || !scanner.number(gpu) || !scanner.word(" for chunk ") ||
        !scanner.number(chunk.second) || !scanner.word(" from ") || !scanner.number(chunk.first) ||
        !scanner.word(" met by epoch ") || !scanner.number(epoch)) {
      node.fail("'" + name + "' was given; allowed: 'Demand at G for chunk C from G met by epoch E'");
    }
    return {gpu, chunk};
  }

  void add_demand(std::uint32_t gpu, Chunk chunk, const ConfigNode& node) {
    if (gpu == chunk.first) node.fail("GPU " + number(gpu) + " gets a chunk of its own; allowed: of others");
    gpus_.insert({gpu, chunk.first});
    chunks_[chunk].insert(gpu);
  }

  // Returns whether each GPU gets all chunks of the others. With two GPUs an all-to-all has the same demand,
  // but its solver writes no Demand_Met.
  bool is_all_gather() const {
    std::set<std::uint32_t> sources;
    for (const auto& [chunk, gpus] : chunks_) {
      if (gpus.size() + 1 != gpus_.size()) return false;
      sources.insert(chunk.first);
    }
    return sources == gpus_ && (gpus_.size() > 2 || met_ != nullptr);
  }

  std::uint32_t rank_of(std::uint32_t gpu, const ConfigNode& node) const {
    const auto found = ranks_.find(gpu);
    if (found == ranks_.end())
      node.fail("'" + node.text() + "': " + number(gpu) + " is no GPU of the demand");
    return found->second;
  }
  void add_send(const TecclHop& hop, std::uint32_t address, const ConfigNode& node) {
    epochs_[hop.epoch].push_back({address, rank_of(hop.from, node), rank_of(hop.to, node), node.place()});
  }

  // Adds whole chunks by the flows.
  template <class AddressOf>
  void add_flows(AddressOf address_of) {
    const ConfigNode* flows = find_entry(root_, "Flows");
    if (flows == nullptr) root_.fail("'7-Flows' is missing");
    if (!flows->is_sequence()) refuse(*flows, "a list of flows");
    for (const ConfigNode& node : flows->items()) {
      const Flow flow = read_flow(node);
      if (std::abs(flow.hop.volume - 1) > kVolumeError)
        node.fail("'" + node.text() +
                  "': a part of a chunk, and it is not known which part; allowed: whole chunks, or an "
                  "all-to-all whose 'N-Chunk paths' say where each part goes");
      if (!chunks_.contains({flow.source, flow.chunk}))
        node.fail("'" + node.text() + "': a chunk that no GPU demands");
      add_send(flow.hop, address_of(Chunk{flow.source, flow.chunk}), node);
      flows_.insert({Chunk{flow.source, flow.chunk}, flow.hop.from, flow.hop.to, flow.hop.epoch});
    }
  }

  // ---- All-gathers

  // Reads an all-gather. Addresses are numbered in the order of the gathered buffer.
  void read_all_gather() {
    schedule_.kind = CollectiveKind::all_gather;
    schedule_.inputs.resize(ranks());
    std::map<Chunk, std::uint32_t> addresses;
    std::vector<std::uint32_t> all;
    for (const auto& [chunk, gpus] : chunks_) {
      const auto address = static_cast<std::uint32_t>(all.size());
      addresses[chunk] = address;
      schedule_.inputs[ranks_.at(chunk.first)].push_back(address);
      all.push_back(address);
    }
    schedule_.outputs.assign(ranks(), all);
    add_flows([&](Chunk chunk) { return addresses.at(chunk); });
    check_paths();
  }

  // Checks that the paths of each demand agree with the flows of all.
  void check_paths() const {
    std::set<std::pair<Chunk, std::uint32_t>> there;
    for (const Path& path : read_paths()) {
      for (const auto& [hop, node] : path.hops) {
        if (!flows_.contains({path.chunk, hop.from, hop.to, hop.epoch}))
          node->fail("'" + node->text() + "': no flow of chunk " + number(path.chunk.second) + " of GPU " +
                     number(path.chunk.first) + " matches; allowed: only demands that 'N-Flows' meets too");
      }
      there.insert({path.chunk, path.hops.back().first.to});
    }
    if (paths_ == nullptr) return;
    for (const auto& [chunk, gpus] : chunks_) {
      for (const std::uint32_t gpu : gpus) {
        if (!there.contains({chunk, gpu}))
          paths_->fail("no path of chunk " + number(chunk.second) + " of GPU " + number(chunk.first) +
                       " to GPU " + number(gpu) + ", which 'N-Demand_Met' has; allowed: one for each demand");
      }
    }
  }

  // ---- All-to-alls

  // Path: the hops of a part of a chunk from its source to its destination.
  struct Path {
    Chunk chunk;
    std::vector<std::pair<TecclHop, const ConfigNode*>> hops;
    double volume() const { return hops.front().first.volume; }
  };

  // Reads an all-to-all. Block (source, destination) has `each` chunks of `parts` parts. Parts are
  // consecutive addresses, including those of blocks that a rank keeps.
  void read_all_to_all() {
    schedule_.kind = CollectiveKind::all_to_all;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;  // by source and destination
    std::map<Chunk, std::uint32_t> index;                                     // index of a chunk in its block
    for (const auto& [chunk, gpus] : chunks_) {
      if (gpus.size() != 1)
        refuse_demand("GPU " + number(*gpus.begin()) + " and GPU " + number(*gpus.rbegin()) + " get chunk " +
                      number(chunk.second) + " of GPU " + number(chunk.first) + ", and others do not");
      index[chunk] = counts[{chunk.first, *gpus.begin()}]++;
    }
    const std::uint32_t each = counts.begin()->second;
    for (const std::uint32_t from : gpus_) {
      for (const std::uint32_t to : gpus_) {
        const std::uint32_t count = from == to ? each : counts[{from, to}];
        if (count != each)
          refuse_demand("GPU " + number(to) + " gets " + number(count) + " chunks of GPU " + number(from) +
                        ", others " + number(each));
      }
    }
    const std::vector<Path> paths = read_paths();
    const std::uint32_t parts = parts_for(paths);
    const std::uint64_t block = std::uint64_t{each} * parts;
    if (block * ranks() > kMostProgramChunks)
      root_.fail(number(block * ranks()) + " parts of chunks a GPU; allowed: up to " +
                 number(kMostProgramChunks));
    const auto first = [&](std::uint32_t from, std::uint32_t to) {
      return (std::uint64_t{from} * ranks() + to) * block;
    };
    if (first(ranks(), 0) > INT32_MAX) root_.fail("more chunks than " + number(INT32_MAX));
    schedule_.inputs.resize(ranks());
    schedule_.outputs.resize(ranks());
    for (std::uint32_t from = 0; from < ranks(); ++from) {
      for (std::uint32_t to = 0; to < ranks(); ++to) {
        for (std::uint64_t i = 0; i < block; ++i) {
          schedule_.inputs[from].push_back(static_cast<std::uint32_t>(first(from, to) + i));
          schedule_.outputs[to].push_back(static_cast<std::uint32_t>(first(from, to) + i));
        }
      }
    }
    const auto address_of = [&](Chunk chunk) {
      const std::uint64_t at = first(ranks_.at(chunk.first), ranks_.at(*chunks_.at(chunk).begin()));
      return static_cast<std::uint32_t>(at + std::uint64_t{index.at(chunk)} * parts);
    };
    if (paths_ == nullptr) return add_flows(address_of);
    add_paths(paths, parts, address_of);
  }

  [[noreturn]] void refuse_demand(const std::string& what) const {
    (met_ != nullptr ? met_ : paths_)
        ->fail(what +
               "; allowed: an all-gather (each GPU gets all chunks of the others) or an all-to-all (each GPU "
               "gets as many chunks of each other GPU, which no third GPU gets)");
  }

  // Reads the paths. The flows omit duplicates, such as two parts of a chunk that use a link in the same
  // epoch; the paths do not.
  std::vector<Path> read_paths() const {
    std::vector<Path> result;
    if (paths_ == nullptr) return result;
    for (const auto& [name, paths] : map_of(*paths_)) {
      const auto [gpu, chunk] = demand_named(name, paths);
      const auto found = chunks_.find(chunk);
      if (found == chunks_.end() || !found->second.contains(gpu))
        paths.fail("'" + name + "': no GPU there demands it");
      if (!paths.is_sequence() || paths.items().empty()) refuse(paths, "a list of paths");
      if (paths.items().front().is_scalar()) {
        result.push_back(path_of(chunk, gpu, paths));  // a path of the whole chunk
      } else {
        for (const ConfigNode& path : paths.items()) result.push_back(path_of(chunk, gpu, path));
      }
    }
    return result;
  }

  static void check_epoch(const ConfigNode& node) {
    const std::int64_t epoch = is_plain(node) ? read_integer(node) : -1;
    if (epoch < 0 || epoch > kMostEpochs) refuse(node, "an epoch from 0 to " + number(kMostEpochs));
  }

  static Path path_of(Chunk chunk, std::uint32_t gpu, const ConfigNode& node) {
    if (!node.is_sequence() || node.items().empty()) refuse(node, "a list of hops");
    Path path{chunk, {}};
    std::uint32_t at = chunk.first;
    for (const ConfigNode& item : node.items()) {
      const bool pair = item.is_sequence() && item.items().size() == 2;  // a pair of the epoch and the hop
      if (pair) check_epoch(item.items()[0]);
      const ConfigNode& words = pair ? item.items()[1] : item;
      const std::string text = words.is_scalar() ? words.text() : "";
      Scanner scanner(text);
      TecclHop hop;
      if (!read_hop(scanner, hop))
        words.fail("'" + text + "' was given; allowed: '" + kHop + number(kMostEpochs));
      if (hop.from != at)
        words.fail("'" + text + "' begins at GPU " + number(hop.from) + "; allowed: GPU " + number(at) +
                   ", where the chunk is");
      if (!path.hops.empty() && std::abs(hop.volume - path.volume()) > kVolumeError)
        words.fail("'" + text + "': volume " + std::to_string(hop.volume) + ", and " +
                   std::to_string(path.volume()) + " before; allowed: one volume on all of a path");
      at = hop.to;
      path.hops.emplace_back(hop, &words);
    }
    if (at != gpu)
      node.fail("the path ends at GPU " + number(at) + "; allowed: GPU " + number(gpu) +
                ", which gets the chunk");
    return path;
  }

  // Returns the smallest number of parts of a chunk for which all paths carry whole parts.
  static std::uint32_t parts_for(const std::vector<Path>& paths) {
    const auto fits = [](const Path& path, std::uint32_t parts) {
      const double taken = path.volume() * parts;
      return path.volume() > 0 && path.volume() < 1 + kVolumeError &&
             std::abs(taken - std::round(taken)) <= kVolumeError * parts;
    };
    for (std::uint32_t parts = 1; parts <= kMostParts; ++parts) {
      if (std::all_of(paths.begin(), paths.end(), [&](const Path& path) { return fits(path, parts); }))
        return parts;
    }
    // The error is reported at a path that never fits, or else at the first one, which does not fit together
    // with others.
    const auto worst = std::find_if(paths.begin(), paths.end(), [&](const Path& path) {
      for (std::uint32_t parts = 1; parts <= kMostParts; ++parts) {
        if (fits(path, parts)) return false;
      }
      return true;
    });
    const auto& [hop, node] = (worst == paths.end() ? paths.front() : *worst).hops.front();
    node->fail(
        "'" + node->text() +
        "': the volumes are not all multiples of one part of a chunk; allowed: 1/P, 2/P, ... of a chunk, "
        "with one P up to " +
        number(kMostParts) + " for all");
  }

  template <class AddressOf>
  void add_paths(const std::vector<Path>& paths, std::uint32_t parts, AddressOf address_of) {
    std::map<Chunk, std::uint32_t> taken;
    for (const Path& path : paths) {
      std::uint32_t& next = taken[path.chunk];
      const auto count = static_cast<std::uint32_t>(std::lround(path.volume() * parts));
      const std::uint32_t first = address_of(path.chunk) + next;
      next += count;
      if (next > parts)
        path.hops.front().second->fail("chunk " + number(path.chunk.second) + " of GPU " +
                                       number(path.chunk.first) + " goes more than once; allowed: once");
      for (const auto& [hop, node] : path.hops) {
        for (std::uint32_t i = 0; i < count; ++i) add_send(hop, first + i, *node);
      }
    }
    for (const auto& [chunk, gpus] : chunks_) {
      if (taken[chunk] == parts) continue;
      paths_->fail("of chunk " + number(chunk.second) + " of GPU " + number(chunk.first) + " " +
                   number(taken[chunk]) + " of " + number(parts) + " parts go to GPU " +
                   number(*gpus.begin()) + "; allowed: all");
    }
  }

  const ConfigNode& root_;
  const ConfigNode* met_ = nullptr;
  const ConfigNode* paths_ = nullptr;
  std::set<std::uint32_t> gpus_;                     // numbers in the file
  std::map<Chunk, std::set<std::uint32_t>> chunks_;  // GPUs that get each chunk
  std::map<std::uint32_t, std::uint32_t> ranks_;     // ranks of the GPUs
  std::map<std::uint32_t, std::vector<StepSchedule::Send>> epochs_;
  std::set<std::tuple<Chunk, std::uint32_t, std::uint32_t, std::uint32_t>> flows_;  // from, to, epoch
  StepSchedule schedule_;
};

const FormatRegistration kTecclJsonFormat{
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
