#include "sim/report/result_sinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr const char* kSummaryFile = "summary.json";
constexpr const char* kManifestFile = "manifest.json";

using Sinks = std::vector<std::unique_ptr<ResultSink>>;

bool needs_parameters(const ComponentInfo& sink) {
  return std::any_of(sink.parameters.begin(), sink.parameters.end(),
                     [](const ParameterInfo& parameter) { return parameter.required; });
}

Sinks sinks_of_every_run() {
  Sinks sinks;
  for (const ComponentInfo* info : Catalogue::instance().all()) {
    if (info->kind != ResultSink::kComponentKind || needs_parameters(*info)) continue;
    std::unique_ptr<ResultSink> sink = Registry<ResultSink>::instance().create(info->name);
    if (sink->in_every_run()) sinks.push_back(std::move(sink));
  }
  return sinks;
}

// Adds the sinks that the list names. Throws ConfigError for one that the run has already, or for a file that
// two sinks would write.
void add_named_sinks(const ConfigNode& list, Sinks& sinks) {
  if (list.is_null()) return;
  if (!list.is_sequence()) list.fail("a list of result sinks is expected: [NAME, {kind: NAME, ...}]");
  std::set<std::string> written;
  for (const auto& sink : sinks) {
    for (std::string& name : sink->files()) written.insert(std::move(name));
  }
  for (const ConfigNode& node : list.items()) {
    std::unique_ptr<ResultSink> sink = Registry<ResultSink>::instance().create(node, "");
    for (const std::string& name : sink->files()) {
      if (!written.insert(name).second || name == kManifestFile)
        node.fail("another result sink writes " + name + ": every run has that one, or it is named twice");
    }
    sinks.push_back(std::move(sink));
  }
}

// Returns all files of these sinks, or those that they have with these results, summary.json first and
// manifest.json last.
std::vector<std::string> names_of(const Sinks& sinks, const Results* results = nullptr) {
  std::vector<std::string> names;
  for (const auto& sink : sinks) {
    for (std::string& name : results != nullptr ? sink->files_with(*results) : sink->files())
      names.push_back(std::move(name));
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == kSummaryFile; });
  names.emplace_back(kManifestFile);
  return names;
}

}  // namespace

const std::vector<std::string>& output_files() {
  static const std::vector<std::string> names = names_of(sinks_of_every_run());
  return names;
}

// Files: the files of all sinks that are open. It checks that a sink opens what it has named, and once.
class ResultSinks::Files : public SinkFiles {
 public:
  explicit Files(const OutputDirectory& directory) : directory_(directory) {}

  void serve(const ResultSink& sink) { allowed_ = sink.files(); }
  OutputFile& open(const std::string& name) override {
    NETSIM_CHECK(std::find(allowed_.begin(), allowed_.end(), name) != allowed_.end(),
                 fmt::format("a result sink opens {}, which its files() does not name", name));
    const auto [entry, added] = files_.try_emplace(name);
    NETSIM_CHECK(added, fmt::format("a result sink opens {} twice", name));
    entry->second = std::make_unique<OutputFile>(directory_, name);
    return *entry->second;
  }
  // Completes the files and returns their names and sizes.
  std::vector<WrittenFile> complete() {
    std::vector<WrittenFile> written;
    for (const auto& [name, file] : files_) written.push_back({name, file->complete()});
    return written;
  }
  // Gives the files their names, the summary last.
  void commit() {
    for (const auto& [name, file] : files_) {
      if (name != kSummaryFile) file->commit();
    }
    if (const auto summary = files_.find(kSummaryFile); summary != files_.end()) summary->second->commit();
  }

 private:
  const OutputDirectory& directory_;
  std::vector<std::string> allowed_;
  std::map<std::string, std::unique_ptr<OutputFile>> files_;  // by name
};

ResultSinks::ResultSinks(const std::string& directory, RunView run) : run_(std::move(run)) {
  Sinks sinks = sinks_of_every_run();
  add_named_sinks(run_.output.sinks, sinks);
  directory_ = std::make_unique<OutputDirectory>(
      directory, OutputNames{names_of(sinks), kManifestFile, files_in_manifest});
  files_ = std::make_unique<Files>(*directory_);
  for (std::unique_ptr<ResultSink>& sink : sinks) open(std::move(sink));
}

ResultSinks::~ResultSinks() = default;

void ResultSinks::open(std::unique_ptr<ResultSink> sink) {
  files_->serve(*sink);
  if (!sink->open(*files_, run_)) return;
  connect(*sink, receivers_);
  sinks_.push_back(std::move(sink));
}

template <class... Records>
void ResultSinks::connect(ResultSink& sink, std::tuple<Receivers<Records>...>& receivers) {
  const auto connect_one = [&sink](auto& list) {
    using Receiver = typename std::decay_t<decltype(list)>::value_type;
    if (auto* receiver = dynamic_cast<Receiver>(&sink); receiver != nullptr) list.push_back(receiver);
  };
  (connect_one(std::get<Receivers<Records>>(receivers)), ...);
}

void ResultSinks::finish(const Results& results, const RunText* text) {
  directory_->require_held();
  const FinishedRun run{results, text, names_of(sinks_, &results)};
  for (const auto& sink : sinks_) {
    files_->serve(*sink);
    sink->finish(run, *files_);
  }
  const std::vector<WrittenFile> written = files_->complete();
  directory_->require_held();
  if (text != nullptr) {
    Manifest manifest = text->manifest;
    manifest.files = written;
    OutputFile file(*directory_, kManifestFile);
    file.write(manifest_json(manifest, results));
    file.commit();
  }
  files_->commit();
}

std::vector<std::string> ResultSinks::notes() const {
  std::vector<std::string> notes;
  for (const auto& sink : sinks_) {
    for (std::string& note : sink->notes()) notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace netsim
