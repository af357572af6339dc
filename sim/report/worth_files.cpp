#include "sim/report/worth_files.h"

#include <memory>
#include <utility>
#include <vector>

#include "sim/report/result_sinks.h"

namespace netsim {
namespace {

// Returns the names of the files of runs, worth.json first and manifest.json last.
OutputNames worth_names() {
  OutputNames names{{"worth.json", "worth.csv", "worth.svg"}, "manifest.json", files_in_manifest};
  names.all.insert(names.all.end(), output_files().begin(), output_files().end());
  return names;
}

}  // namespace

WorthFiles::WorthFiles(const std::string& directory) : directory_(directory, worth_names()) {}

void WorthFiles::finish(const Worth& worth, Manifest manifest) {
  const std::vector<std::pair<std::string, std::string>> texts{
      {"worth.csv", worth_csv(worth)}, {"worth.svg", draw_worth(worth)}, {"worth.json", worth_json(worth)}};
  std::vector<std::unique_ptr<OutputFile>> files;
  manifest.files.clear();
  for (const auto& [name, text] : texts) {
    files.push_back(std::make_unique<OutputFile>(directory_, name));
    files.back()->write(text);
    manifest.files.push_back({name, files.back()->complete()});
  }
  directory_.require_held();
  OutputFile file(directory_, "manifest.json");
  file.write(manifest_json(manifest));
  file.commit();
  for (const auto& each : files) each->commit();
}

}  // namespace netsim
