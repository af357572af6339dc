// ChakraNode records: the nodes of Chakra execution traces (MLCommons), in all schemas that are in
// circulation, and its JSON form. The source is et_def.proto of mlcommons/chakra: df405e8 has schema 0.0.1,
// 2719463 has 0.0.2, 9d917e3 and 7bab792 have 0.0.3, and a2b45c1 has 0.0.4, which equals 1.0.0. 6dc63e14
// adds nodes of storage (8), batches (9) and checkpoints (10).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/input_set.h"
#include "sim/workload/trace/trace_blocks.h"

namespace netsim {

// The attribute of a file's metadata by which netsim names the job.
inline constexpr const char* kChakraJob = "netsim_job";

// RecordedNode: a node as the file has it, with its numbers brought to schema 1.0.0.
struct RecordedNode {
  enum class Kind : std::uint8_t {
    invalid,
    metadata,
    memory_load,
    memory_store,
    compute,
    send,
    receive,
    collective,
    other  // a type of later schemas; it does not communicate
  };
  std::uint64_t id = 0;
  std::string name;
  Kind kind = Kind::invalid;
  std::uint64_t type = 0;               // number of `kind` in the file
  std::vector<std::uint64_t> waits;     // ids of the nodes that it waits for
  std::vector<std::uint64_t> controls;  // those of its control dependencies, which are not in `waits`
  std::uint64_t start_us = 0;           // when it began where it was recorded
  std::uint64_t duration_us = 0;
  bool on_cpu = false;                       // is_cpu_op
  std::optional<std::int64_t> operations;    // num_ops
  std::optional<std::int64_t> tensor_bytes;  // tensor_size
  // comm_type of schema 1.0.0: 0 all-reduce, 1 reduce, 2 all-gather, 3 gather, 4 scatter, 5 broadcast,
  // 6 all-to-all, 7 and 8 reduce-scatter, 9 barrier.
  std::optional<std::int64_t> collective;
  std::optional<std::int64_t> bytes;  // comm_size
  std::optional<std::int64_t> source, destination, tag;
  std::optional<std::int64_t> root;
  std::optional<std::int64_t> stream;  // CUDA stream
  std::string group;                   // pg_name, or communicator_id; "" for none
  std::vector<bool> dimensions;        // involved_dim
  std::string groups_text;             // of a metadata node: the text that lists the communicators
  // An all-to-all's in_split_size and out_split_size, or the lists in the inputs of record_param_comms.
  SplitSizes in_parts = std::vector<std::int64_t>(), out_parts = std::vector<std::int64_t>();
  // Attributes that only netsim writes (chakra_writer.h), without the beginning `netsim_`.
  std::vector<std::pair<std::string, std::int64_t>> exact;
  std::vector<std::int64_t> kernels;
  std::vector<std::string> kernel_names;  // those of the kernels, then that of the work
  std::string exact_kind, exact_stream;
  TraceTokens tokens;
  std::string problem;  // what is wrong with a number of the node: "has comm_size -5; ..."; "" for nothing

  // Returns the number of such an attribute, or nothing.
  std::optional<std::int64_t> exact_number(std::string_view attribute) const {
    for (const auto& [known, number] : exact) {
      if (known == attribute) return number;
    }
    return std::nullopt;
  }
};

// Returns the name of the job that netsim has written into the file (chakra_writer.h), or "".
std::string chakra_job_name(const InputSet::File& file);

// Calls visit(node) for the nodes of a file, one after the other. Throws InputError for a file that ends
// within a record and for a record that is no node.
void for_each_chakra_node(const InputSet::File& file, const std::function<void(RecordedNode&)>& visit);

// Calls visit(node) for the nodes of a file in the JSON form, which is read as a whole. Throws InputError for
// JSON without a list of nodes.
void for_each_chakra_json_node(const InputSet::File& file, const std::function<void(RecordedNode&)>& visit);

// Returns a real number as the nearest integer, for writers that keep integers in it. Returns nothing beyond
// 9e18 and for NaN.
std::optional<std::int64_t> integer_of(double value);

// Returns what a node type of schema 1.0.0 means.
RecordedNode::Kind chakra_kind(std::uint64_t type);

}  // namespace netsim
