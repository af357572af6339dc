#include "sim/collectives/programs/chakra_trace.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <queue>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "sim/collectives/programs/chakra_et.pb.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/protobuf_fields.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr int kCompute = 4, kSend = 5, kReceive = 6, kMetadata = 1;

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw InputError(Place{path, 0, 0, ""}, message);
}

// Returns "folder/NAME" and R of "folder/NAME.R.et".
std::pair<std::string, std::uint32_t> parts_of(const std::string& path) {
  const std::filesystem::path file(path);
  const std::filesystem::path stem = file.stem();  // NAME.R
  std::string rank = stem.extension().string();
  if (!rank.empty()) rank.erase(0, 1);
  const bool is_number = !rank.empty() && rank.size() <= 5 && std::all_of(rank.begin(), rank.end(), is_digit);
  if (file.extension() != ".et" || !is_number) {
    fail(path,
         "is a Chakra execution trace of one rank; allowed: a file NAME.R.et of rank R, with the files of "
         "the other ranks beside it");
  }
  return {(file.parent_path() / stem.stem()).string(), static_cast<std::uint32_t>(std::stoul(rank))};
}

// ---- Attributes

const chakra::AttributeProto* find(const chakra::Node& node, std::string_view name) {
  const auto found = std::find_if(node.attr().begin(), node.attr().end(),
                                  [&](const auto& attribute) { return attribute.name() == name; });
  return found == node.attr().end() ? nullptr : &*found;
}

// Returns the integer in an attribute; nullopt if it has none. Writers use any integer type.
std::optional<std::int64_t> integer_of(const chakra::AttributeProto& attribute) {
  using A = chakra::AttributeProto;
  const auto limited = [](std::uint64_t value) {
    return static_cast<std::int64_t>(
        std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
  };
  switch (attribute.value_case()) {
    case A::kInt32Val:
      return attribute.int32_val();
    case A::kInt64Val:
      return attribute.int64_val();
    case A::kUint32Val:
      return attribute.uint32_val();
    case A::kUint64Val:
      return limited(attribute.uint64_val());
    case A::kSint32Val:
      return attribute.sint32_val();
    case A::kSint64Val:
      return attribute.sint64_val();
    case A::kFixed32Val:
      return attribute.fixed32_val();
    case A::kFixed64Val:
      return limited(attribute.fixed64_val());
    case A::kSfixed32Val:
      return attribute.sfixed32_val();
    case A::kSfixed64Val:
      return attribute.sfixed64_val();
    case A::kBoolVal:
      return attribute.bool_val() ? 1 : 0;
    case A::kStringVal:
    case A::VALUE_NOT_SET:
      break;
  }
  return std::nullopt;
}

// ---- One file

class FileReader {
 public:
  FileReader(ChakraTrace& trace, std::uint32_t rank, std::string_view bytes)
      : trace_(trace), rank_(rank), file_(trace.ranks[rank]), bytes_(bytes) {}

  void read() {
    ProtobufFields wire(bytes_);
    read_metadata(next(wire));
    while (!wire.at_end()) {
      chakra::Node node;
      if (const std::string_view record = next(wire); !parse(node, record)) fail_record("a node");
      add(node);
    }
    for (std::size_t i = 0; i < file_.nodes.size(); ++i) connect(file_.nodes[i], i);
    put_in_order();
  }

 private:
  // Returns the next record, which follows its length.
  std::string_view next(ProtobufFields& wire) {
    ++record_;
    const auto length = wire.varint();
    if (!length || *length > bytes_.size()) fail_record("the length of a record");
    const std::string_view record = wire.take(*length);
    if (record.size() != *length) fail_record(std::to_string(*length) + " bytes, before which the file ends");
    return record;
  }
  template <class Message>
  static bool parse(Message& message, std::string_view record) {
    return record.size() <= std::numeric_limits<int>::max() &&
           message.ParseFromArray(record.data(), static_cast<int>(record.size()));
  }
  [[noreturn]] void fail_record(const std::string& expected) const {
    fail(file_.path, "record " + std::to_string(record_) +
                         " does not fit a Chakra execution trace; expected: " + expected);
  }

  void read_metadata(std::string_view record) {
    if (!record.empty() && record[0] == '\x08') {
      fail(file_.path,
           "begins with a node, as Chakra wrote them before schema 0.0.4; allowed: 0.0.4 and 1.0.0, which "
           "begin with their metadata");
    }
    chakra::GlobalMetadata metadata;
    if (!parse(metadata, record)) fail_record("its metadata");
    std::string named;
    for (const chakra::AttributeProto& attribute : metadata.attr()) {
      if (attribute.name() == "collective") named = attribute.string_val();
    }
    for (const chakra::AttributeProto& attribute : metadata.attr()) {
      if (attribute.name() == "input_file" && named.empty()) named = collective_in(attribute.string_val());
    }
    if (rank_ == 0) trace_.collective = named;
    if (named != trace_.collective) {
      fail(file_.path, "is of the collective '" + named + "', " + trace_.ranks[0].path + " of '" +
                           trace_.collective + "'; allowed: one for all ranks");
    }
  }

  // Returns the collective of an MSCCL program: coll="allreduce". A converter may have put the program into
  // the trace that it made from it.
  static std::string collective_in(const std::string& program) {
    static constexpr std::string_view kKey = " coll=\"";
    const std::string head = program.substr(0, program.find('>'));
    const std::size_t at = head.find(kKey);
    if (head.find("<algo") == std::string::npos || at == std::string::npos) return "";
    const std::size_t begin = at + kKey.size();
    return head.substr(begin, head.find('"', begin) - begin);
  }

  // ---- Nodes

  void add(const chakra::Node& given) {
    const auto position = static_cast<std::uint32_t>(file_.nodes.size());
    ChakraNode node;
    node.id = given.id();
    if (!positions_.try_emplace(node.id, position).second)
      fail_node(node, "is in the file twice; allowed: each id once");
    given_deps_.emplace_back(given.data_deps().begin(), given.data_deps().end());
    given_deps_.emplace_back(given.ctrl_deps().begin(), given.ctrl_deps().end());
    switch (given.type()) {
      case kSend:
        node.kind = ChakraNode::Kind::send;
        read_message(given, node);
        break;
      case kReceive:
        node.kind = ChakraNode::Kind::receive;
        read_message(given, node);
        break;
      case kCompute:
        node.kind = ChakraNode::Kind::compute;
        node.copies = given.name().starts_with("COPY");
        break;
      case kMetadata:
        break;
      default:
        fail_node(node, "is of type " + std::to_string(given.type()) +
                            "; allowed in a collective's algorithm: 4 (COMP), 5 (COMM_SEND), 6 (COMM_RECV) "
                            "and 1 (METADATA)");
    }
    file_.nodes.push_back(std::move(node));
  }

  void read_message(const chakra::Node& given, ChakraNode& node) {
    const bool sending = node.kind == ChakraNode::Kind::send;
    const char* own = sending ? "comm_src" : "comm_dst";
    if (const auto value = integer(given, own); value && *value != rank_) {
      fail_node(node, std::string(own) + " is " + std::to_string(*value) +
                          "; allowed: " + std::to_string(rank_) + ", the rank whose file it is");
    }
    const char* other = sending ? "comm_dst" : "comm_src";
    const auto peer = integer(given, other);
    if (!peer) fail_node(node, std::string(other) + " is missing: the rank at the other end");
    if (*peer < 0 || *peer >= kMostProgramRanks || *peer == rank_) {
      fail_node(node, std::string(other) + " is " + std::to_string(*peer) +
                          "; allowed: another rank, from 0 to " + std::to_string(kMostProgramRanks - 1));
    }
    node.peer = static_cast<std::uint32_t>(*peer);
    node.tag = integer(given, "comm_tag").value_or(0);
    if (const auto bytes = integer(given, "comm_size"); bytes && *bytes > 0)
      node.bytes = static_cast<std::uint64_t>(*bytes);
    node.index = chunks(given, "chunk_offset");
    if (!node.index) node.index = chunks(given, "msg_chunk_idx");
    node.count = chunks(given, "msg_chunk_cnt");
    node.total = chunks(given, "total_chunk_cnt");
    node.marked = !sending && integer(given, "is_rrc").value_or(0) != 0;
  }
  static std::optional<std::int64_t> integer(const chakra::Node& node, std::string_view name) {
    const chakra::AttributeProto* attribute = find(node, name);
    return attribute == nullptr ? std::nullopt : integer_of(*attribute);
  }
  // Returns a number of chunks; nullopt for -1, which means "not known" as in ASTRA-sim.
  static std::optional<std::uint32_t> chunks(const chakra::Node& node, std::string_view name) {
    const auto value = integer(node, name);
    if (!value || *value < 0) return std::nullopt;
    return static_cast<std::uint32_t>(std::min<std::int64_t>(*value, std::numeric_limits<int>::max()));
  }

  // ---- Dependencies between nodes

  void connect(ChakraNode& node, std::size_t position) {
    for (const bool data : {true, false}) {
      for (const std::uint64_t id : given_deps_[2 * position + (data ? 0 : 1)]) {
        const auto found = positions_.find(id);
        if (found == positions_.end())
          fail_node(node, "waits for node " + std::to_string(id) + "; allowed: nodes of its file");
        (data ? node.data : node.control).push_back(found->second);
      }
    }
  }

  // Sorts the nodes so that each follows those it waits for. Among nodes that may come next the smallest id
  // comes first; ASTRA-sim issues ready nodes in this order.
  void put_in_order() {
    const std::size_t count = file_.nodes.size();
    std::vector<std::uint32_t> waits(count, 0);
    std::vector<std::vector<std::uint32_t>> behind(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      for (const std::vector<std::uint32_t>* list : {&file_.nodes[i].data, &file_.nodes[i].control}) {
        for (const std::uint32_t before : *list) {
          behind[before].push_back(i);
          ++waits[i];
        }
      }
    }
    using Ready = std::pair<std::uint64_t, std::uint32_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (waits[i] == 0) ready.emplace(file_.nodes[i].id, i);
    }
    while (!ready.empty()) {
      const std::uint32_t at = ready.top().second;
      ready.pop();
      file_.in_order.push_back(at);
      for (const std::uint32_t next : behind[at]) {
        if (--waits[next] == 0) ready.emplace(file_.nodes[next].id, next);
      }
    }
    if (file_.in_order.size() == count) return;
    const auto stuck = std::find_if(waits.begin(), waits.end(), [](std::uint32_t left) { return left > 0; });
    fail_node(file_.nodes[static_cast<std::size_t>(stuck - waits.begin())],
              "waits for nodes that wait for it, or for nodes in such a cycle; allowed: no cycle");
  }

  [[noreturn]] void fail_node(const ChakraNode& node, const std::string& message) const {
    fail_at(trace_, rank_, node, message);
  }

  ChakraTrace& trace_;
  std::uint32_t rank_;
  ChakraRank& file_;
  std::string_view bytes_;
  std::uint64_t record_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> positions_;  // position of a node, by its id
  std::vector<std::vector<std::uint64_t>> given_deps_;          // for each node: data, then control
};

}  // namespace

void fail_at(const ChakraTrace& trace, std::uint32_t rank, const ChakraNode& node,
             const std::string& message) {
  fail(trace.ranks[rank].path,
       "rank " + std::to_string(rank) + ", node " + std::to_string(node.id) + ": " + message);
}

ChakraTrace read_chakra_trace(const std::string& text, const std::string& path) {
  const auto [prefix, given] = parts_of(path);
  const auto path_of = [&stem = prefix](std::uint32_t rank) {
    return stem + "." + std::to_string(rank) + ".et";
  };
  ChakraTrace trace;
  trace.name = std::filesystem::path(prefix).filename().string();
  const auto is_there = [&path_of](std::uint32_t rank) {
    std::error_code error;
    return std::filesystem::exists(path_of(rank), error);
  };
  std::uint32_t ranks = 0;
  while (ranks < kMostProgramRanks && (ranks == given || is_there(ranks))) ++ranks;
  if (given >= ranks)
    fail(path, "is rank " + std::to_string(given) + "'s, and there is no " + path_of(ranks) +
                   "; allowed: all ranks");
  trace.ranks.resize(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    trace.ranks[rank].path = rank == given ? path : path_of(rank);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    FileReader(trace, rank, rank == given ? text : read_file(trace.ranks[rank].path, kLargestProgram)).read();
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const ChakraNode& node : trace.ranks[rank].nodes) {
      const bool message = node.kind == ChakraNode::Kind::send || node.kind == ChakraNode::Kind::receive;
      if (message && node.peer >= ranks) {
        fail_at(trace, rank, node,
                "the rank at the other end is " + std::to_string(node.peer) + ", and there is no " +
                    path_of(ranks) + "; allowed: 0 to " + std::to_string(ranks - 1));
      }
    }
  }
  return trace;
}

}  // namespace netsim
