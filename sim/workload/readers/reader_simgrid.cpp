// simgrid_replay: time-independent traces of SimGrid (SMPI), an action of a rank on each line:
//
//   0 init
//   0 compute 1e9
//   0 send 1 0 1e6
//   0 finalize
//
// The actions of a rank follow each other. isend and irecv end at their wait or at waitall. Amounts are
// elements of a type: bytes, or doubles if `init` has an argument (smpi_replay.cpp). Operations of `compute`
// are a product of matrices, whose time the compute model tells.
//
// A manifest lists one trace a line, in the order of ranks; a file may be listed for several ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/input_file.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/trace/trace_program.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

struct SimgridCounts {
  std::uint64_t tests = 0, computations = 0, uneven = 0;
  std::uint64_t communicators = 0;  // that are made
  std::uint64_t resized = 0;        // receives with another size than their send
  std::uint64_t empty = 0;          // messages without bytes
  std::uint64_t unknown_waits = 0;  // without a request
};

// SimgridRank: the actions of one rank so far.
struct SimgridRank {
  using Request = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  // sender, receiver, tag
  struct Open {
    Request request;
    std::uint32_t task = 0;
  };
  bool doubles = false;  // whether amounts without a type are doubles
  std::vector<TraceTask> tasks;
  std::vector<std::uint32_t> frontier;  // tasks for which the next one waits
  std::vector<Open> open;               // isend and irecv that nothing waited for, in their order
};

class SimgridTrace {
 public:
  explicit SimgridTrace(const InputSet& input) : name_(input.name()) {
    for (const InputSet::File& file : input.files()) count_ranks(file);
    check_ranks();
    program_.emplace("replay", static_cast<std::uint32_t>(ranks_.size()), name_);
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) all_.emplace_back(rank);
    several_files_ = input.files().size() > 1;
    for (const InputSet::File& file : input.files()) read(file);
    size_receives();
  }

  std::unique_ptr<TaskSource> source() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
      program_->add_rank(RankId(rank), std::move(ranks_[rank].tasks), name_);
    std::vector<std::string> notes;
    const auto note = [&](std::uint64_t count, const char* text) {
      if (count > 0) notes.push_back(fmt::format("{}: {}", text, count));
    };
    note(counts_.computations,
         "computations, timed by the compute model as products of square matrices with as many operations");
    note(counts_.tests, "tests of requests, which do nothing");
    note(counts_.uneven, "all-to-alls with counts of each member, replayed with equal parts");
    note(counts_.communicators,
         "communicators that are made; collectives are those of all ranks, as in SimGrid's own replay");
    note(counts_.resized, "receives with another size than their send, whose size counts");
    note(counts_.empty, "messages without bytes, which are sent as one byte");
    note(counts_.unknown_waits, "waits for a message that no isend or irecv before began, which do nothing");
    return program_->finish(std::move(notes));
  }

 private:
  static constexpr std::int64_t kMostRanks = 1 << 20;

  static std::int64_t rank_of(const TextReader& reader, Word word) {
    if (word.text.starts_with('p')) word.text.remove_prefix(1);
    return reader.integer(word, "the rank", {0, kMostRanks - 1});
  }
  void count_ranks(const InputSet::File& file) {
    TextReader reader(file);
    std::vector<Word> words;
    while (reader.next_line(words)) {
      if (words.empty() || words[0].text.starts_with('#')) continue;
      known_.insert(rank_of(reader, words[0]));
    }
  }
  void check_ranks() {
    if (known_.empty()) fail_file(name_, "has no actions");
    const std::int64_t count = *known_.rbegin() + 1;
    std::int64_t first = 0;
    while (known_.count(first) > 0) ++first;
    if (first != count)
      fail_file(name_, fmt::format("has no action of rank {}, and some of rank {}; allowed: all ranks from 0",
                                   first, count - 1));
    ranks_.resize(static_cast<std::size_t>(count));
  }
  void read(const InputSet::File& file) {
    TextReader reader(file);
    if (several_files_) of_file_ = " of " + file.path;
    std::vector<Word> words;
    while (reader.next_line(words)) {
      if (words.empty() || words[0].text.starts_with('#')) continue;
      if (words.size() < 2) reader.fail(words[0], "an action is missing behind the rank");
      rank_ = static_cast<std::uint32_t>(rank_of(reader, words[0]));
      reader_ = &reader;
      words_ = &words;
      act(lower_case(words[1].text));
    }
  }

  // ---- Words of the line

  const Word& word(std::size_t argument, const char* what) const {
    if (argument + 2 >= words_->size()) {
      reader_->fail((*words_)[1], fmt::format("'{}' has {} arguments; argument {} is {}",
                                              printable((*words_)[1].text.substr(0, 40)), words_->size() - 2,
                                              argument + 1, what));
    }
    return (*words_)[argument + 2];
  }
  std::size_t arguments() const { return words_->size() - 2; }
  double amount(std::size_t argument, const char* what) const {
    return reader_->real(word(argument, what), what, {0, 1e18});
  }
  // Returns the bytes of an element: of the type that an argument names, or of the default.
  std::int64_t element(std::size_t argument) const {
    // Sizes by the ids of smpi_datatype.cpp, from MPI_DOUBLE (0) to the pairs that end with MPI_2LONG (37).
    constexpr std::array<std::int64_t, 38> kBytes{8,  4,  1, 2, 8, 4,  1,  8, 1, 1, 2,  4, 8,
                                                  8,  16, 4, 1, 1, 2,  4,  8, 1, 2, 4,  8, 8,
                                                  16, 32, 8, 8, 8, 16, 16, 8, 8, 8, 16, 16};
    if (argument >= arguments()) return ranks_[rank_].doubles ? 8 : 1;
    const auto type = reader_->integer(word(argument, "a type"), "a type", {0, std::ssize(kBytes) - 1});
    return kBytes[static_cast<std::size_t>(type)];
  }
  Bytes bytes(double elements, std::int64_t each) const {
    const double all = elements * static_cast<double>(each);
    if (all > static_cast<double>(ProgramLimits::kBytes))
      reader_->fail((*words_)[1], fmt::format("has {} bytes; allowed: 0 to {}", all, ProgramLimits::kBytes));
    return static_cast<Bytes>(all + 0.5);
  }
  std::uint32_t rank_argument(std::size_t argument, const char* what) const {
    Word rank = word(argument, what);
    if (rank.text.starts_with('p')) rank.text.remove_prefix(1);
    return static_cast<std::uint32_t>(
        reader_->integer(rank, what, {0, static_cast<std::int64_t>(ranks_.size()) - 1}));
  }
  std::uint32_t root(std::size_t argument) const {
    return argument < arguments() ? rank_argument(argument, "a root") : 0;
  }

  // ---- Actions

  void act(const std::string& action) {
    SimgridRank& rank = ranks_[rank_];
    if (action == "init") {
      rank.doubles = arguments() > 0;
    } else if (action == "compute") {
      compute(amount(0, "operations"));
    } else if (action == "sleep") {
      sleep();
    } else if (action == "send" || action == "isend" || action == "recv" || action == "irecv") {
      message(action.ends_with("send"), action.starts_with('i'));
    } else if (action == "wait") {
      wait();
    } else if (action == "waitall") {
      for (const SimgridRank::Open& open : rank.open) rank.frontier.push_back(open.task);
      rank.open.clear();
    } else if (action == "sendrecv") {
      send_and_receive();
    } else if (action == "comm_split" || action == "comm_dup") {
      ++counts_.communicators;
    } else if (action == "test") {
      ++counts_.tests;
    } else if (action != "finalize" && action != "comm_size" && action != "location" && !collective(action)) {
      reader_->fail(
          (*words_)[1],
          "'" + printable(action.substr(0, 40)) +
              "' is not read; allowed: init, finalize, compute, sleep, send, isend, recv, irecv, wait, "
              "waitall, "
              "test, sendRecv, comm_size, comm_split, comm_dup, location, barrier, bcast, reduce, allreduce, "
              "alltoall, alltoallv, allgather, allgatherv, gather, "
              "gatherv, scatter, scatterv, reducescatter");
    }
  }

  TraceTask& add(const char* name) {
    SimgridRank& rank = ranks_[rank_];
    TraceTask task;
    task.name = program_->name(name);
    task.order = rank.tasks.size();
    task.label = fmt::format("line {}{}", (*words_)[0].line, of_file_);
    task.after = rank.frontier;
    rank.tasks.push_back(std::move(task));
    return rank.tasks.back();
  }
  std::uint32_t last() const { return static_cast<std::uint32_t>(ranks_[rank_].tasks.size() - 1); }
  void block() { ranks_[rank_].frontier = {last()}; }

  void compute(double operations) {
    if (operations <= 0) return;
    ++counts_.computations;
    const std::uint32_t work = program_->product_work("compute", static_cast<std::int64_t>(operations), 0);
    add("compute").work = work;
    block();
  }
  void sleep() {
    const Time time =
        reader_->time_in(word(0, "a time [s]"), "a time", kSecond, {0, ProgramLimits::kKernelTime});
    TraceTask& task = add("sleep");
    task.kind = TaskKind::host_thread;
    task.work = program_->fixed_work("sleep", time);
    block();
  }

  // Older traces have no tag: send DESTINATION SIZE.
  void message(bool sends, bool returns) {
    const bool tagged = arguments() > 2;
    const std::uint32_t peer = rank_argument(0, "a rank");
    const std::int64_t tag = tagged ? reader_->integer(word(1, "a tag"), "a tag", {-1, INT32_MAX}) : kNoTag;
    const std::size_t argument = tagged ? 2 : 1;
    // A receive may leave the size to its send.
    const double elements = reader_->real(word(argument, "a size"), "a size", {sends ? 0.0 : -1e18, 1e18});
    add_message(sends, returns, peer, tag, bytes(std::max(elements, 0.0), element(argument + 1)));
  }
  // sendRecv ELEMENTS DESTINATION ELEMENTS SOURCE: begins both, and waits for both.
  void send_and_receive() {
    const Bytes sent = bytes(amount(0, "a size"), element(4));
    const Bytes received = bytes(amount(2, "a size"), element(arguments() > 5 ? 5 : 4));
    const std::uint32_t to = rank_argument(1, "a rank"), from = rank_argument(3, "a rank");
    SimgridRank& rank = ranks_[rank_];
    const std::size_t had = rank.open.size();
    add_message(true, true, to, kNoTag, sent);
    add_message(false, true, from, kNoTag, received);
    for (std::size_t i = had; i < rank.open.size(); ++i) rank.frontier.push_back(rank.open[i].task);
    rank.open.resize(had);
  }

  void add_message(bool sends, bool returns, std::uint32_t peer, std::int64_t tag, Bytes size) {
    if (peer == rank_) reader_->fail(word(0, "a rank"), "a rank sends to itself; allowed: another one");
    const SimgridRank::Request request{sends ? rank_ : peer, sends ? peer : rank_, tag};
    Channel& channel = channels_[request];
    // A message has a header at least.
    if (sends && size == 0) size = 1, ++counts_.empty;
    if (sends) channel.sent.push_back(size);
    const auto next = static_cast<std::uint32_t>(tags_.size());
    TraceTask& task = add(sends ? "send" : "recv");
    task.kind = sends ? TaskKind::send : TaskKind::receive;
    task.stream = Stream::pp;
    task.peer = RankId(peer);
    task.bytes = size;
    task.tag = tags_.try_emplace(tag, next).first->second;
    if (!sends) channel.received.push_back(last());
    if (!returns) return block();
    ranks_[rank_].open.push_back({request, last()});
  }
  // Gives each receive the size of its send, because a receive names the size of its buffer, or none.
  void size_receives() {
    for (auto& [request, channel] : channels_) {
      std::vector<TraceTask>& tasks = ranks_[std::get<1>(request)].tasks;
      for (std::size_t i = 0; i < channel.received.size(); ++i) {
        if (i >= channel.sent.size()) break;  // TraceProgram reports it
        TraceTask& task = tasks[channel.received[i]];
        if (task.bytes > 0 && task.bytes != channel.sent[i]) ++counts_.resized;
        task.bytes = channel.sent[i];
      }
    }
  }

  // wait SOURCE DESTINATION TAG, or in older traces: wait, for the last request.
  void wait() {
    SimgridRank& rank = ranks_[rank_];
    auto found = rank.open.end();
    if (arguments() == 0 && !rank.open.empty()) --found;
    if (arguments() > 0) {
      const SimgridRank::Request request{rank_argument(0, "a sender"), rank_argument(1, "a receiver"),
                                         reader_->integer(word(2, "a tag"), "a tag", {-1, INT32_MAX})};
      found = std::find_if(rank.open.begin(), rank.open.end(),
                           [&](const SimgridRank::Open& open) { return open.request == request; });
    }
    if (found == rank.open.end()) {
      ++counts_.unknown_waits;
      return;
    }
    rank.frontier.push_back(found->task);
    rank.open.erase(found);
  }

  // Returns the sum of as many amounts as there are ranks, from an argument on.
  double sum(std::size_t first) const {
    double all = 0;
    for (std::size_t i = 0; i < ranks_.size(); ++i) all += amount(first + i, "a count of each rank");
    return all;
  }

  bool collective(const std::string& action) {
    using Kind = CollectiveKind;
    const std::size_t n = ranks_.size();
    const auto members = static_cast<double>(n);
    if (action == "barrier") {
      call("barrier", Kind::barrier, 0, 0);
    } else if (action == "bcast") {
      call("bcast", Kind::broadcast, bytes(amount(0, "a size"), element(2)), root(1));
    } else if (action == "reduce") {
      call("reduce", Kind::reduce, bytes(amount(0, "a size"), element(3)), root(2));
      compute(amount(1, "operations"));
    } else if (action == "allreduce") {
      call("allreduce", Kind::all_reduce, bytes(amount(0, "a size"), element(2)), 0);
      compute(amount(1, "operations"));
    } else if (action == "alltoall") {
      call("alltoall", Kind::all_to_all, bytes(amount(0, "a size") * members, element(2)), 0);
    } else if (action == "alltoallv") {
      ++counts_.uneven;
      mean_all_to_all();
    } else if (action == "allgather") {
      call("allgather", Kind::all_gather, bytes(amount(0, "a size") * members, element(2)), 0);
    } else if (action == "allgatherv") {
      call("allgatherv", Kind::all_gather, bytes(sum(1), element(n + 1)), 0);
    } else if (action == "gather" || action == "scatter") {
      call(action.c_str(), action == "gather" ? Kind::gather : Kind::scatter,
           bytes(amount(0, "a size") * members, element(3)), root(2));
    } else if (action == "gatherv") {
      call("gatherv", Kind::gather, bytes(sum(1), element(n + 2)), root(n + 1));
    } else if (action == "scatterv") {
      call("scatterv", Kind::scatter, bytes(sum(0), element(n + 2)), root(n + 1));
    } else if (action == "reducescatter") {
      call("reducescatter", Kind::reduce_scatter, bytes(sum(0), element(n + 1)), 0);
      compute(amount(n, "operations"));
    } else {
      return false;
    }
    return true;
  }
  void call(const char* name, CollectiveKind kind, Bytes size, std::uint32_t root) {
    if (size == 0 && kind != CollectiveKind::barrier) return;
    const std::uint32_t group = program_->group(all_);
    TraceTask& task = add(name);
    task.kind = TaskKind::collective;
    task.collective = kind;
    task.group = group;
    task.bytes = size;
    task.root = root;
    task.stream = kind == CollectiveKind::all_to_all ? Stream::ep : Stream::dp;
    block();
  }
  // alltoallv BUFFER COUNT... BUFFER COUNT...: all members get the bytes of the first one, in equal parts.
  void mean_all_to_all() {
    const Bytes own = bytes(sum(1), element(2 * ranks_.size() + 2));
    const std::size_t number = all_to_alls_of_[rank_]++;
    if (number == all_to_alls_.size()) all_to_alls_.push_back(own);
    call("alltoallv", CollectiveKind::all_to_all, all_to_alls_[number], 0);
  }

  // Channel: messages with one sender, receiver and tag, in their order at each end.
  struct Channel {
    std::vector<Bytes> sent;
    std::vector<std::uint32_t> received;  // tasks of the receiver
  };
  static constexpr std::int64_t kNoTag = -2;

  std::string name_;
  bool several_files_ = false;
  std::string of_file_;  // of several files, the one that is read, for messages: " of a.txt"
  std::optional<TraceProgram> program_;
  std::map<SimgridRank::Request, Channel> channels_;
  std::set<std::int64_t> known_;  // ranks that have actions
  std::vector<SimgridRank> ranks_;
  std::vector<RankId> all_;
  std::map<std::int64_t, std::uint32_t> tags_;
  std::vector<Bytes> all_to_alls_;                       // bytes of each alltoallv
  std::map<std::uint32_t, std::size_t> all_to_alls_of_;  // those of a rank so far
  SimgridCounts counts_;
  const TextReader* reader_ = nullptr;
  const std::vector<Word>* words_ = nullptr;
  std::uint32_t rank_ = 0;
};

bool is_smpi_replay(const Excerpt& file) {
  const auto words = file.words(0);
  if (words.size() < 2) return false;
  const std::string_view rank = words[0].starts_with('p') ? words[0].substr(1) : words[0];
  return is_integer_word(rank) &&
         is_one_of(words[1], {"init",      "finalize", "compute", "sleep",     "send",     "isend",
                              "Isend",     "recv",     "irecv",   "Irecv",     "wait",     "waitall",
                              "barrier",   "bcast",    "reduce",  "allreduce", "allToAll", "alltoall",
                              "allgather", "gather",   "scatter", "comm_size"});
}

// Matches names of files, one a line.
bool is_smpi_manifest(const Excerpt& file) {
  if (!file.is_text() || file.lines() == 0) return false;
  for (std::size_t i = 0; i < file.lines(); ++i) {
    const std::string_view name = file.line(i);
    if (file.words(i).size() != 1 || is_number_word(name) || name.find('.') == std::string_view::npos ||
        name.find_first_of(":,;=<>{}[]()'\"") != std::string_view::npos)
      return false;
  }
  return true;
}

bool is_listed(const std::vector<std::string>& paths, const std::string& path) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& known) {
    std::error_code unknown;
    return known == path || std::filesystem::equivalent(known, path, unknown);
  });
}

// Returns the traces of an input, of which a file may be a manifest. It may be beside the traces that it
// lists.
InputSet simgrid_traces(const InputSet& input) {
  std::vector<std::string> paths;
  bool listed = false;
  for (const InputSet::File& file : input.files()) {
    const Format* format = recognise(file);
    if (format == nullptr || format->name != "simgrid_manifest") {
      if (!listed || !is_listed(paths, file.path)) paths.push_back(file.path);
      continue;
    }
    listed = true;
    TextReader reader(file);
    std::vector<Word> words;
    while (reader.next_line(words)) {
      if (words.empty() || words[0].text.starts_with('#')) continue;
      if (words.size() > 1) reader.fail(words[1], "a manifest has one file a line");
      std::string path = find_input_file(std::string(words[0].text), reader.place(words[0]));
      if (!is_listed(paths, path)) paths.push_back(std::move(path));
    }
  }
  return listed ? InputSet(InputPaths(std::move(paths))) : input;
}

const FormatRegistration kSimgridManifest{{.name = "simgrid_manifest",
                                           .what = "a list of SimGrid's traces",
                                           .use = Format::Use::workload,
                                           .matches = is_smpi_manifest,
                                           .component = "simgrid_replay",
                                           .advice = {},
                                           .endings = {".txt"}}};

const FormatRegistration kSimgridFormat{{.name = "simgrid_replay",
                                         .what = "a time-independent trace of SimGrid",
                                         .use = Format::Use::workload,
                                         .matches = is_smpi_replay,
                                         .component = "simgrid_replay",
                                         .advice = {},
                                         .endings = {".txt"}}};

class SimgridReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext&) const override {
    const InputSet traces = simgrid_traces(input);
    traces.log();
    return SimgridTrace(traces).source();
  }
};

const Registration<WorkloadReader> kSimgrid{
    "simgrid_replay",
    "time-independent traces of SimGrid (SMPI): a file of all ranks, one per rank, or a manifest that lists "
    "them",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<SimgridReader>(); }};

}  // namespace
}  // namespace netsim
