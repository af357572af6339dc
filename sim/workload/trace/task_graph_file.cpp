#include "sim/workload/trace/task_graph_file.h"

#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Returns the place of a field in a table's list of fields, by the field's number in the schema.
constexpr flatbuffers::voffset_t field_at(int number) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * number);
}

// FlatTable: the readings and checks that the tables of the schema share.
class FlatTable : protected flatbuffers::Table {
 public:
  FlatTable() = delete;
  FlatTable(const FlatTable&) = delete;
  FlatTable& operator=(const FlatTable&) = delete;

 protected:
  template <typename T>
  T scalar(int number) const {
    return GetField<T>(field_at(number), T{});
  }
  template <typename T>
  const flatbuffers::Vector<T>* vector(int number) const {
    return GetPointer<const flatbuffers::Vector<T>*>(field_at(number));
  }
  template <typename T>
  bool holds_scalar(const flatbuffers::Verifier& verifier, int number) const {
    return VerifyField<T>(verifier, field_at(number), sizeof(T));
  }
  // The verifier of flatbuffers 2.0 leaves out whether the elements are aligned. The buffer itself is.
  template <typename T>
  bool holds_vector(const flatbuffers::Verifier& verifier, int number) const {
    if (!VerifyOffset(verifier, field_at(number)) || !verifier.VerifyVector(vector<T>(number))) return false;
    const auto* elements = vector<T>(number);
    // Writers do not align the elements of an empty list.
    return elements == nullptr || elements->size() == 0 ||
           reinterpret_cast<std::uintptr_t>(elements->Data()) % sizeof(T) == 0;
  }
};

// Task{type, taskid, deviceid, runtime, xfersize, nexttasks}
class FlatTask final : private FlatTable {
 public:
  int type() const { return scalar<std::int16_t>(0); }
  std::uint64_t id() const { return scalar<std::uint64_t>(1); }
  std::uint64_t device() const { return scalar<std::uint64_t>(2); }
  float runtime() const { return scalar<float>(3); }
  std::uint64_t bytes() const { return scalar<std::uint64_t>(4); }
  const flatbuffers::Vector<std::uint64_t>* next() const { return vector<std::uint64_t>(5); }
  // NOLINTNEXTLINE(readability-identifier-naming): flatbuffers calls it
  bool Verify(flatbuffers::Verifier& verifier) const {
    return VerifyTableStart(verifier) && holds_scalar<std::int16_t>(verifier, 0) &&
           holds_scalar<std::uint64_t>(verifier, 1) && holds_scalar<std::uint64_t>(verifier, 2) &&
           holds_scalar<float>(verifier, 3) && holds_scalar<std::uint64_t>(verifier, 4) &&
           holds_vector<std::uint64_t>(verifier, 5) && verifier.EndTable();
  }
};

// Device{type, deviceid, nodeid, deviceproperty, bandwidth}
class FlatDevice final : private FlatTable {
 public:
  int type() const { return scalar<std::int16_t>(0); }
  std::uint64_t id() const { return scalar<std::uint64_t>(1); }
  std::uint64_t node() const { return scalar<std::uint64_t>(2); }
  std::uint64_t property() const { return scalar<std::uint64_t>(3); }
  // NOLINTNEXTLINE(readability-identifier-naming): flatbuffers calls it
  bool Verify(flatbuffers::Verifier& verifier) const {
    return VerifyTableStart(verifier) && holds_scalar<std::int16_t>(verifier, 0) &&
           holds_scalar<std::uint64_t>(verifier, 1) && holds_scalar<std::uint64_t>(verifier, 2) &&
           holds_scalar<std::uint64_t>(verifier, 3) && verifier.EndTable();
  }
};

// TaskGraph{ngpupernode, nnode, nswitch, intergpubw, drambw, netbw, conn, ops, tasks, devices, routes, rings}
class FlatTaskGraph final : private FlatTable {
 public:
  using Tasks = flatbuffers::Vector<flatbuffers::Offset<FlatTask>>;
  using Devices = flatbuffers::Vector<flatbuffers::Offset<FlatDevice>>;
  std::uint32_t count(int number) const { return scalar<std::uint32_t>(number); }
  const Tasks* tasks() const { return vector<flatbuffers::Offset<FlatTask>>(8); }
  const Devices* devices() const { return vector<flatbuffers::Offset<FlatDevice>>(9); }
  std::size_t length(int number) const {
    const auto* list = vector<flatbuffers::uoffset_t>(number);
    return list == nullptr ? 0 : list->size();
  }
  // NOLINTNEXTLINE(readability-identifier-naming): flatbuffers calls it
  bool Verify(flatbuffers::Verifier& verifier) const {
    using flatbuffers::uoffset_t;
    return VerifyTableStart(verifier) && holds_scalar<std::uint32_t>(verifier, 0) &&
           holds_scalar<std::uint32_t>(verifier, 1) && holds_scalar<std::uint32_t>(verifier, 2) &&
           holds_vector<uoffset_t>(verifier, 6) && holds_vector<uoffset_t>(verifier, 8) &&
           verifier.VerifyVectorOfTables(tasks()) && holds_vector<uoffset_t>(verifier, 9) &&
           verifier.VerifyVectorOfTables(devices()) && holds_vector<uoffset_t>(verifier, 10) &&
           verifier.EndTable();
  }
};

void read_tasks(const FlatTaskGraph& graph, const InputSet::File& file, std::size_t size, TaskGraphFile& to) {
  if (graph.tasks() == nullptr || graph.tasks()->size() == 0) fail_file(file.path, "has no tasks");
  to.tasks.reserve(graph.tasks()->size());
  for (const FlatTask* from : *graph.tasks()) {
    const std::size_t number = to.tasks.size();
    if (from->type() < 0 || from->type() >= TaskGraphFile::kTypes)
      fail_file(file.path, fmt::format("task {} has type {}; allowed: 0 to {}", number, from->type(),
                                       TaskGraphFile::kTypes - 1));
    if (!std::isfinite(from->runtime()) || from->runtime() < 0)
      fail_file(file.path, fmt::format("task {} takes {} ms; allowed: at least 0", number, from->runtime()));
    TaskGraphFile::Task task{static_cast<TaskGraphFile::Type>(from->type()),
                             from->id(),
                             from->device(),
                             double{from->runtime()},
                             from->bytes(),
                             to.next.size(),
                             to.next.size()};
    if (from->next() != nullptr) {
      task.end_next += from->next()->size();
      if (task.end_next > size / sizeof(std::uint64_t))
        fail_file(file.path, fmt::format("task {} shares its list of next tasks with others", number));
      for (const std::uint64_t next : *from->next()) to.next.push_back(next);
    }
    to.tasks.push_back(task);
  }
}

}  // namespace

TaskGraphFile read_task_graph(const InputSet::File& file) {
  const std::string bytes = read_file(file);
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  // A table takes at least 4 bytes, and each is verified once.
  flatbuffers::Verifier verifier(begin, bytes.size(), 16,
                                 static_cast<flatbuffers::uoffset_t>(bytes.size() / 4 + 1));
  if (!verifier.VerifyBuffer<FlatTaskGraph>(nullptr))
    fail_file(file.path, "is no task graph of FlexFlow: its FlatBuffer is damaged or cut");
  const FlatTaskGraph& graph = *flatbuffers::GetRoot<FlatTaskGraph>(begin);
  TaskGraphFile to;
  to.gpus_per_node = graph.count(0);
  to.nodes = graph.count(1);
  to.switches = graph.count(2);
  to.connections = graph.length(6);
  to.routes = graph.length(10);
  read_tasks(graph, file, bytes.size(), to);
  if (graph.devices() != nullptr) {
    to.devices.reserve(graph.devices()->size());
    for (const FlatDevice* from : *graph.devices())
      to.devices.push_back({from->type(), from->id(), from->node(), from->property()});
  }
  return to;
}

}  // namespace netsim
