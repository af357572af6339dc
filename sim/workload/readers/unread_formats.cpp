// Formats that netsim knows and does not read yet (recognise.h), so that a given file is reported by its
// format. They are traces, workloads, topologies, schedules, measurements and logs of other tools. A new
// reader moves its format from here into its own file.
//
// The marks of each format are from the tools' own sources and documents:
// - astra-sim and SimAI (Workload.cc, AstraSimNetwork.cc), aicb (log_analyzer).
// - msccl-tools and SCCL, TACCL, TE-CCL, ATLAHS, FlexFlow.
// - Kineto (output_json.cpp), Perfetto (trace.proto), NCCL (topo.cc, plugins), nccl-tests (util.cu).
// - SimGrid's smpi and XML, SST's ember, the traces of Philly, Helios and Alibaba PAI, GNU tar.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/protobuf_fields.h"
#include "sim/core/recognise.h"

namespace netsim {
namespace {

// ---- Bytes

// Matches Trace{repeated TracePacket packet = 1}, where a packet has its sequence (10), time (8) or a track
// (60).
bool is_perfetto(const Excerpt& file) {
  const auto packet = ProtobufFields(file.bytes()).next();
  if (!packet || packet->number != 1 || packet->type != 2 || packet->content.empty()) return false;
  bool known = false;
  ProtobufFields fields(packet->content);
  while (!fields.at_end()) {
    const auto field = fields.next();
    if (!field || field->number > 1000) return false;
    known = known || (field->number == 10 && field->type == 0) || (field->number == 8 && field->type == 0) ||
            (field->number == 60 && field->type == 2);
  }
  return known;
}

bool is_tar(const Excerpt& file) {
  return file.bytes().size() > 262 && file.bytes().substr(257).starts_with("ustar");
}

bool is_otherwise_packed(const Excerpt& file) {
  constexpr std::string_view kBegins[] = {std::string_view("\xfd"
                                                           "7zXZ\0",
                                                           6),
                                          "\x28\xb5\x2f\xfd", "PK\x03\x04", "BZh"};
  return std::any_of(std::begin(kBegins), std::end(kBegins), [&](std::string_view begin) {
    return !(begin == "BZh" && file.is_text()) && file.bytes().starts_with(begin);
  });
}

// ---- Text

bool is_astra_system(const Excerpt& file) {
  return file.has_any_key({"scheduling-policy", "all-reduce-implementation",
                           "all-reduce-implementation-custom", "preferred-dataset-splits",
                           "active-chunks-per-dimension"});
}

// Matches sizes, each with the percentage of flows that are at most this large.
bool is_size_distribution(const Excerpt& file) {
  for (std::size_t i = 0; i < file.lines(); ++i) {
    const auto words = file.words(i);
    const bool comment = words.size() > 2 && words[2].starts_with('#');
    if ((words.size() != 2 && !comment) || !is_number_word(words[0]) || !is_number_word(words[1]))
      return false;
  }
  return file.lines() > 1;
}

bool is_nccl_tests(const Excerpt& file) {
  const std::string_view start = file.bytes().substr(0, 4096);
  const auto has = [&](std::string_view part) { return start.find(part) != std::string_view::npos; };
  if (has("# nccl-tests version") || has("# rccl-tests")) return true;
  return has("# nThread") && has("minBytes") && has("maxBytes");
}

bool is_hex_name(std::string_view word) {
  return word.size() >= 12 && word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Matches tables with their headers, which are in separate files, or without.
bool is_alibaba_pai(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  // Tables of tasks and of jobs have ten and six columns.
  if (cells.size() < 5 || cells.size() == 10 || cells.size() == 6) return false;
  const auto starts = [&](std::string_view a, std::string_view b) { return cells[0] == a && cells[1] == b; };
  if (starts("job_name", "inst_id") || starts("job_name", "task_name") || starts("inst_id", "user") ||
      starts("machine", "gpu_type") || starts("worker_name", "machine"))
    return true;
  const bool ended = std::any_of(cells.begin(), cells.end(), [](std::string_view cell) {
    return is_one_of(cell, {"Terminated", "Running", "Failed", "Waiting", "Interrupted"});
  });
  return is_hex_name(cells[0]) && ended;
}

bool is_helios_gpus(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  return cells.size() > 2 && cells[0] == "date" && cells[1].starts_with("vc");
}

// Matches a job per line: type, command, name of the steps' argument, needs data, steps, arrival, GPUs.
bool is_gavel(const Excerpt& file) {
  const auto cells = file.cells(0, '\t');
  return cells.size() >= 7 && cells[2].starts_with('-') && is_one_of(cells[3], {"0", "1"}) &&
         is_number_word(cells[4]) && is_number_word(cells.back());
}

// Matches the utilisation of Philly's machines: "2017-10-03 00:08:00 PDT,m29,...".
bool is_philly_utilisation(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  return cells.size() > 2 && cells[0].size() == 23 && cells[0][4] == '-' && cells[0][13] == ':' &&
         cells[1].starts_with('m') && is_integer_word(cells[1].substr(1));
}

bool begins_with(const Excerpt& file, std::string_view text) { return file.line(0).starts_with(text); }

// ---- The list

Format unread(const char* name, const char* what, bool (*matches)(const Excerpt&),
              std::vector<std::string> endings = {}) {
  return {.name = name,
          .what = what,
          .use = Format::Use::none,
          .matches = matches,
          .component = {},
          .advice = {},
          .endings = std::move(endings)};
}

Format advised(Format format, Format::Use use, const char* advice) {
  format.use = use;
  format.advice = advice;
  return format;
}

const FormatRegistration kFormats[] = {
    FormatRegistration(
        advised(unread("pytorch_et", "an execution trace of PyTorch, from which Chakra's are made",
                       [](const Excerpt& f) {
                         return f.has_keys({"schema", "nodes"});
                       },
                       {".json"}),
                Format::Use::none,
                "it has operators of the CPU without the GPU's times; Chakra's tools link it with a trace of "
                "the profiler and convert it to .et")),
    FormatRegistration(
        advised(unread("chakra_jsonized", "a Chakra execution trace as Chakra's jsonizer writes it",
                       [](const Excerpt& f) {
                         return f.bytes().starts_with('{') && f.contains("_NODE\"") &&
                                f.contains("\"type\"") && !f.has_key("workload_graph");
                       },
                       {".json"}),
                Format::Use::none, "give the .et from which it was made")),
    FormatRegistration(
        unread("astra_system", "a system description of ASTRA-sim", is_astra_system, {".json"})),
    FormatRegistration(unread("astra_memory", "a remote memory of ASTRA-sim",
                              [](const Excerpt& f) { return f.has_key("memory-type"); }, {".json"})),
    FormatRegistration(unread("simai_busbw", "a list of SimAI's bus bandwidths",
                              [](const Excerpt& f) {
                                return f.has_any_key({"allreduce,", "allgather,", "reducescatter,"});
                              },
                              {".yaml"})),
    FormatRegistration(unread("simai_ratio", "a table of SimAI's efficiencies",
                              [](const Excerpt& f) { return begins_with(f, "Size,1 Node"); }, {".csv"})),
    FormatRegistration(advised(unread("aicb_models", "AICB's list of models",
                                      [](const Excerpt& f) {
                                        return f.cells(0, '\t').size() > 3 &&
                                               f.cells(0, '\t')[2] == "Parameter_size";
                                      },
                                      {".csv"}),
                               Format::Use::none, "AICB makes workloads of it, and netsim reads those")),
    FormatRegistration(advised(
        unread("aiob", "compute times of AICB (AIOB)",
               [](const Excerpt& f) { return begins_with(f, "train_iter:") && f.contains("time_gpu_"); },
               {".txt"}),
        Format::Use::none, "AICB puts them into workloads, and netsim reads those")),
    FormatRegistration(
        advised(unread("msccl_list", "a list of programs of MSCCL (XML)",
                       [](const Excerpt& f) { return f.xml_root() == "msccl_algos"; }, {".xml"}),
                Format::Use::none, "give one of the files that it names")),
    FormatRegistration(unread("taccl_sketch", "a communication sketch of TACCL",
                              [](const Excerpt& f) { return f.has_key("intranode_sketch"); }, {".json"})),
    FormatRegistration(unread("taccl_topology", "a topology of TACCL",
                              [](const Excerpt& f) {
                                return f.has_keys({"gpus_per_node", "alpha"});
                              },
                              {".json"})),
    FormatRegistration(unread("teccl_input", "an input of TE-CCL",
                              [](const Excerpt& f) { return f.has_key("TopologyParams"); }, {".json"})),
    FormatRegistration(
        advised(unread("goal_merge", "a list of schedules for ATLAHS to merge",
                       [](const Excerpt& f) {
                         return f.has_keys({"mode", "goal_files"});
                       },
                       {".json"}),
                Format::Use::none,
                "netsim runs several schedules as a list of jobs (`jobs: [{name, workload: FILE}]`)")),
    FormatRegistration(advised(unread("goal_nodes", "a list of nodes for ATLAHS",
                                      [](const Excerpt& f) {
                                        return f.has_keys({"num_of_nodes", "num_gpus_per_node"});
                                      },
                                      {".yaml"}),
                               Format::Use::none, "it has no tasks")),
    FormatRegistration(advised(unread("npkit", "a summary of NPKit",
                                      [](const Excerpt& f) {
                                        return std::any_of(f.keys().begin(), f.keys().end(),
                                                           [](std::string_view key) {
                                                             return key.starts_with("NPKIT_EVENT_");
                                                           });
                                      },
                                      {".json"}),
                               Format::Use::none, "it has measured times of NCCL's steps and no tasks")),
    FormatRegistration(unread("nccl_tests", "output of nccl-tests", is_nccl_tests, {".txt", ".log"})),
    FormatRegistration(unread("nccl_tests_json", "output of nccl-tests (JSON)",
                              [](const Excerpt& f) {
                                return f.has_keys({"nccl_version", "config"});
                              },
                              {".json"})),
    FormatRegistration(advised(
        unread("topoopt_measurements", "measured times of TopoOpt",
               [](const Excerpt& f) {
                 return f.has_keys({"ngpus", "measurements"});
               },
               {".json"}),
        Format::Use::none, "it has times of operators and no communication; give the task graph (.fbuf)")),
    FormatRegistration(unread("perfetto", "a Perfetto trace", is_perfetto, {".pftrace", ".perfetto-trace"})),
    FormatRegistration(unread("perfetto_text", "a Perfetto trace (text)",
                              [](const Excerpt& f) {
                                return begins_with(f, "packet {") && f.contains("trusted_packet_sequence_id");
                              },
                              {".textproto"})),
    FormatRegistration(advised(
        unread("simgrid_platform", "a platform of SimGrid (XML)",
               [](const Excerpt& f) { return f.xml_root() == "platform"; }, {".xml"}),
        Format::Use::none, "netsim does not read SimGrid's networks; a configuration describes the network")),
    FormatRegistration(unread("mpi_trace", "an MPI trace of liballprof",
                              [](const Excerpt& f) {
                                return begins_with(f, "MPI_Init") &&
                                       f.line(0).find(':') != std::string_view::npos;
                              })),
    FormatRegistration(unread("ember", "a load file of SST's ember",
                              [](const Excerpt& f) {
                                return begins_with(f, "[JOB_ID]") || begins_with(f, "[NID_LIST]") ||
                                       begins_with(f, "[MOTIF]");
                              },
                              {".load"})),
    FormatRegistration(advised(unread("philly_utilisation", "a utilisation trace of Philly",
                                      is_philly_utilisation, {".csv", ".txt"}),
                               Format::Use::none,
                               "it has no jobs; give cluster_job_log to `jobs: {trace: FILE}`")),
    FormatRegistration(advised(
        unread("gavel_jobs", "a job trace of Gavel", is_gavel, {".trace"}), Format::Use::none,
        "its jobs have numbers of steps and no durations; write a table of jobs for `jobs: {trace: FILE}`")),
    FormatRegistration(
        advised(unread("helios_gpus", "the numbers of GPUs of Helios' clusters", is_helios_gpus, {".csv"}),
                Format::Use::none, "it has no jobs; give cluster_log.csv to `jobs: {trace: FILE}`")),
    FormatRegistration(
        advised(unread("alibaba_pai_tables", "a table of Alibaba's PAI beside its jobs and tasks",
                       is_alibaba_pai, {".csv"}),
                Format::Use::none, "give the tables of tasks and jobs to `jobs: {trace: [TASKS, JOBS]}`")),
    FormatRegistration(advised(
        unread("size_distribution", "a distribution of flow sizes", is_size_distribution, {".cdf", ".txt"}),
        Format::Use::part, "name it as `cdf` of a workload of kind poisson")),
    FormatRegistration(advised(unread("netsim_sweep", "a sweep of netsim",
                                      [](const Excerpt& f) {
                                        return f.has_keys({"base", "axes"});
                                      },
                                      {".yaml", ".yml"}),
                               Format::Use::none, "scripts/sweep.py runs it")),
    FormatRegistration(advised(unread("packed_file", "a file packed with xz, zstd, zip or bzip2",
                                      is_otherwise_packed, {".xz", ".zst", ".zip", ".bz2"}),
                               Format::Use::none, "unpack it, or pack it with gzip")),
    FormatRegistration(advised(unread("tar", "a tar archive", is_tar, {".tar", ".tar.gz", ".tgz"}),
                               Format::Use::none, "unpack it and give one of its files")),
};

}  // namespace
}  // namespace netsim
