#include "sim/collectives/programs/msccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "sim/collectives/programs/program_file.h"
#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/recognise.h"
#include "sim/core/text.h"
#include "sim/core/xml.h"

namespace netsim {
namespace {

struct CollectiveName {
  const char* name;
  CollectiveKind kind;
};
// The first name of a kind is written. reducescatter is used by Azure's and RCCL's interpreters.
constexpr CollectiveName kCollectiveNames[] = {{"allreduce", CollectiveKind::all_reduce},
                                               {"allgather", CollectiveKind::all_gather},
                                               {"reduce_scatter", CollectiveKind::reduce_scatter},
                                               {"reducescatter", CollectiveKind::reduce_scatter},
                                               {"alltoall", CollectiveKind::all_to_all},
                                               {"broadcast", CollectiveKind::broadcast},
                                               {"reduce", CollectiveKind::reduce},
                                               {"gather", CollectiveKind::gather},
                                               {"scatter", CollectiveKind::scatter},
                                               {"custom", CollectiveKind::custom}};

constexpr Step::Kind kStepKinds[] = {Step::Kind::nothing,
                                     Step::Kind::send,
                                     Step::Kind::receive,
                                     Step::Kind::copy,
                                     Step::Kind::reduce,
                                     Step::Kind::receive_copy_send,
                                     Step::Kind::receive_reduce_send,
                                     Step::Kind::receive_reduce_copy,
                                     Step::Kind::receive_reduce_copy_send};

constexpr std::string_view kBuffers = "ios";  // in the order of Buffer

// Returns the element of `values` that the attribute names; `msccl_name` returns an element's name.
template <class Values, class NameOf>
auto chosen(const XmlElement& element, const char* attribute, const Values& values, NameOf msccl_name) {
  const std::string given = element.text(attribute);
  std::string allowed;
  for (const auto& value : values) {
    if (given == msccl_name(value)) return value;
    append_item(allowed, msccl_name(value));
  }
  element.fail(element.has(attribute) ? fmt::format("{} is '{}'; allowed: {}", attribute, given, allowed)
                                      : fmt::format("'{}' is missing; allowed: {}", attribute, allowed));
}

// Returns the text of the program alone. Throws InputError where there are several.
std::string without_rest(std::string text, const std::string& path) {
  constexpr std::string_view kEnd = "</algo>";
  const std::size_t end = text.find(kEnd);
  if (end == std::string::npos) return text;
  if (const std::size_t second = text.find("<algo", end); second != std::string::npos)
    throw InputError(place_in(text, second, path), "a second <algo>; allowed: one program a file");
  text.resize(end + kEnd.size());
  return text;
}

class ProgramReader {
 public:
  ProgramReader(std::string text, const std::string& path)
      : file_(without_rest(std::move(text), path), path), algo_(file_.root("algo")) {}

  CollectiveProgram read() {
    read_head();
    const std::vector<XmlElement> gpus = by_id(algo_, "gpu", program_.ranks.size());
    for (std::uint32_t rank = 0; rank < program_.ranks.size(); ++rank) read_gpu(gpus[rank], rank);
    find_root();
    if (const auto fault = connect(program_)) place_of(*fault).fail(to_string(*fault));
    for (std::uint32_t rank = 0; rank < program_.ranks.size(); ++rank) check_gpu(gpus[rank], rank);
    return std::move(program_);
  }

 private:
  // ---- <algo>

  void read_head() {
    program_.name = algo_.has("name") ? algo_.text("name") : "msccl";
    program_.kind = chosen(algo_, "coll", kCollectiveNames, [](const auto& of) { return of.name; }).kind;
    program_.protocol = algo_.has("proto") ? chosen(algo_, "proto", kProtocols,
                                                    [](Protocol protocol) { return to_string(protocol); })
                                           : Protocol::simple;
    program_.chunks = number(algo_, "nchunksperloop", {1, kMostProgramChunks});
    program_.channels = number(algo_, "nchannels", {1, kMostProgramChannels});
    program_.in_place = algo_.integer("inplace", {0, 1}, 0) == 1 && program_.kind != CollectiveKind::custom;
    program_.least_bytes = size(algo_, "minBytes");
    program_.most_bytes = size(algo_, "maxBytes");
    const std::uint32_t ranks = number(algo_, "ngpus", {2, kMostProgramRanks});
    if (ranks != algo_.children("gpu").size())
      algo_.fail(fmt::format("ngpus is {}, and there are {} <gpu>", ranks, algo_.children("gpu").size()));
    program_.ranks.resize(ranks);
  }

  static std::uint32_t number(const XmlElement& element, const char* attribute, Range<std::int64_t> range,
                              std::optional<std::int64_t> absent = std::nullopt) {
    return static_cast<std::uint32_t>(element.integer(attribute, range, absent));
  }
  static std::optional<Bytes> size(const XmlElement& element, const char* attribute) {
    if (!element.has(attribute)) return std::nullopt;
    return element.integer(attribute, {0, INT64_MAX});
  }

  // Returns the children in the order of their ids, which are 0 to count - 1.
  static std::vector<XmlElement> by_id(const XmlElement& parent, const char* name, std::size_t count) {
    std::vector<XmlElement> result(count);
    for (const XmlElement& child : parent.children()) {
      if (child.name() != name) {
        if (child.name() == "copy" && parent.name() == "gpu") continue;
        child.fail(fmt::format("unknown in <{}>; allowed: <{}>", parent.name(), name));
      }
      const auto id =
          static_cast<std::size_t>(child.integer("id", {0, static_cast<std::int64_t>(count) - 1}));
      if (result[id]) child.fail(fmt::format("id {} is there twice", id));
      result[id] = child;
    }
    return result;
  }

  // Finds the root, for kinds that have one.
  void find_root() {
    if (!has_root(program_.kind)) return;
    const auto last = static_cast<std::int64_t>(program_.ranks.size()) - 1;
    program_.root = number(algo_, "root", {0, last}, likely_root());
  }

  std::uint32_t likely_root() const {
    const bool sender = info_of(program_.kind).goal.contributors == ChunkRanks::root;
    const auto may_be = [&](const ProgramRank& rank) {
      return std::none_of(rank.blocks.begin(), rank.blocks.end(), [&](const CollectiveProgramBlock& block) {
        return std::any_of(block.steps.begin(), block.steps.end(),
                           [&](const Step& step) { return sender ? receives(step.kind) : sends(step.kind); });
      });
    };
    const auto first = std::find_if(program_.ranks.begin(), program_.ranks.end(), may_be);
    return first == program_.ranks.end() ? 0 : static_cast<std::uint32_t>(first - program_.ranks.begin());
  }

  // ---- <gpu>

  void read_gpu(const XmlElement& gpu, std::uint32_t rank) {
    ProgramRank& result = program_.ranks[rank];
    result.scratch_chunks = number(gpu, "s_chunks", {0, kMostProgramChunks}, 0);
    const std::vector<XmlElement> blocks = by_id(gpu, "tb", gpu.children("tb").size());
    for (const XmlElement& block : blocks) result.blocks.push_back(read_block(block));
    CollectiveProgramBlock copies;
    for (const XmlElement& copy : gpu.children("copy")) add_copy(copy, rank, copies);
    if (!copies.steps.empty()) result.blocks.push_back(std::move(copies));
  }

  void add_copy(const XmlElement& element, std::uint32_t rank, CollectiveProgramBlock& copies) const {
    Step step;
    step.kind = Step::Kind::copy;
    step.source = {Buffer::input, number(element, "i_off", {0, kMostProgramChunks})};
    step.destination = {Buffer::output, number(element, "o_off", {0, kMostProgramChunks})};
    if (!program_.in_place || first_in_output(rank) + step.source.chunk != step.destination.chunk)
      copies.steps.push_back(step);
  }
  // Returns where the rank's input begins in its output, where both are one memory.
  std::uint32_t first_in_output(std::uint32_t rank) const {
    const bool part = program_.kind == CollectiveKind::all_gather;
    return part ? rank * (program_.chunks / static_cast<std::uint32_t>(program_.ranks.size())) : 0;
  }

  // Checks that need a valid program.
  void check_gpu(const XmlElement& gpu, std::uint32_t rank) const {
    const ProgramPlan plan(program_);
    check_chunks(gpu, "i_chunks", plan, rank, Buffer::input);
    check_chunks(gpu, "o_chunks", plan, rank, Buffer::output);
    const std::vector<XmlElement> blocks = by_id(gpu, "tb", gpu.children("tb").size());
    std::vector<std::vector<XmlElement>> steps;
    steps.reserve(blocks.size());
    for (const XmlElement& block : blocks) steps.push_back(block.children("step"));
    for (std::size_t block = 0; block < steps.size(); ++block) {
      for (std::size_t index = 0; index < steps[block].size(); ++index) {
        const Step& step = program_.ranks[rank].blocks[block].steps[index];
        if (step.after_block >= steps.size()) continue;
        if (steps[step.after_block][step.after_step].integer("hasdep", {0, 1}, 1) == 0) {
          steps[block][index].fail(fmt::format("waits for step {} of thread block {}, whose hasdep is '0'",
                                               step.after_step, step.after_block));
        }
      }
    }
  }

  static void check_chunks(const XmlElement& gpu, const char* attribute, const ProgramPlan& plan,
                           std::uint32_t rank, Buffer buffer) {
    const std::uint32_t there = chunks_of(plan, rank, buffer);
    if (!gpu.has(attribute)) return;
    const std::uint32_t given = number(gpu, attribute, {0, kMostProgramChunks});
    if (given != 0 && given != there) {
      gpu.fail(fmt::format("{} is '{}'; allowed: {}, as nchunksperloop says, or 0 where it is not used",
                           attribute, given, there));
    }
    if (given == 0 && uses(plan.program().ranks[rank], buffer))
      gpu.fail(fmt::format("{} is '0', but steps use that buffer; allowed: {}", attribute, there));
  }

  static bool uses(const ProgramRank& rank, Buffer buffer) {
    return std::any_of(rank.blocks.begin(), rank.blocks.end(), [buffer](const CollectiveProgramBlock& block) {
      return std::any_of(block.steps.begin(), block.steps.end(), [buffer](const Step& step) {
        return (reads_source(step.kind) && step.source.buffer == buffer) ||
               (writes_destination(step.kind) && step.destination.buffer == buffer);
      });
    });
  }

  // ---- <tb>, <step>

  CollectiveProgramBlock read_block(const XmlElement& element) const {
    const auto peer = [&](const char* attribute) {
      const auto last = static_cast<std::int64_t>(program_.ranks.size()) - 1;
      const std::int64_t rank = element.integer(attribute, {-1, last});
      return rank < 0 ? kNoIndex : static_cast<std::uint32_t>(rank);
    };
    CollectiveProgramBlock block;
    block.send_peer = peer("send");
    block.receive_peer = peer("recv");
    block.channel = number(element, "chan", {0, std::int64_t{program_.channels} - 1});
    for (const XmlElement& step : element.children()) {
      if (step.name() != "step") step.fail("unknown in <tb>; allowed: <step>");
      block.steps.push_back(read_step(step, static_cast<std::int64_t>(block.steps.size())));
    }
    return block;
  }

  static Step read_step(const XmlElement& element, std::int64_t index) {
    if (const std::int64_t s = element.integer("s", {0, UINT32_MAX}); s != index)
      element.fail(fmt::format("s is '{}'; allowed: {}, because steps are numbered from 0", s, index));
    Step step;
    step.kind = chosen(element, "type", kStepKinds, [](Step::Kind kind) { return to_string(kind); });
    if (step.kind != Step::Kind::nothing) step.count = number(element, "cnt", {1, kMostProgramChunks});
    if (reads_source(step.kind)) step.source = read_chunk(element, "srcbuf", "srcoff");
    if (writes_destination(step.kind)) step.destination = read_chunk(element, "dstbuf", "dstoff");
    const std::int64_t after = element.integer("depid", {-1, INT32_MAX}, -1);
    if (after < 0) return step;
    step.after_block = static_cast<std::uint32_t>(after);
    step.after_step = number(element, "deps", {0, INT32_MAX});
    return step;
  }

  static ChunkAt read_chunk(const XmlElement& element, const char* buffer, const char* offset) {
    const char name = chosen(element, buffer, kBuffers, [](char c) { return std::string(1, c); });
    return {static_cast<Buffer>(kBuffers.find(name)), number(element, offset, {0, kMostProgramChunks})};
  }

  // ---- Places of errors

  // Returns the element of a fault, or the one around it.
  XmlElement place_of(const ProgramFault& fault) const {
    if (fault.rank == kNoIndex) return algo_;
    const XmlElement gpu = with_id(algo_, "gpu", fault.rank);
    if (fault.block >= gpu.children("tb").size()) return gpu;
    const XmlElement block = with_id(gpu, "tb", fault.block);
    return fault.step == kNoIndex ? block : block.children("step")[fault.step];
  }
  static XmlElement with_id(const XmlElement& parent, const char* name, std::uint32_t id) {
    return by_id(parent, name, parent.children(name).size())[id];
  }

  XmlFile file_;
  XmlElement algo_;
  CollectiveProgram program_;
};

// ---- Writing

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&' || c == '<' || c == '>' || c == '"' || static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("&#{};", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

const char* msccl_name(CollectiveKind kind) {
  for (const CollectiveName& known : kCollectiveNames) {
    if (known.kind == kind) return known.name;
  }
  return "custom";
}

std::int64_t peer_of(std::uint32_t rank) { return rank == kNoIndex ? -1 : std::int64_t{rank}; }

class ProgramWriter {
 public:
  explicit ProgramWriter(const CollectiveProgram& program) : program_(program), plan_(program) {}

  std::string write() {
    add("<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" "
        "inplace=\"{:d}\" outofplace=\"{:d}\"",
        escaped(program_.name), to_string(program_.protocol), program_.channels, program_.chunks,
        program_.ranks.size(), msccl_name(program_.kind), program_.in_place, !program_.in_place);
    if (program_.least_bytes) add(" minBytes=\"{}\"", *program_.least_bytes);
    if (program_.most_bytes) add(" maxBytes=\"{}\"", *program_.most_bytes);
    if (has_root(program_.kind)) add(" root=\"{}\"", program_.root);
    add(">\n");
    for (std::uint32_t rank = 0; rank < program_.ranks.size(); ++rank) add_gpu(rank);
    add("</algo>\n");
    return std::move(text_);
  }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  void add_gpu(std::uint32_t rank) {
    add("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", rank,
        chunks_of(plan_, rank, Buffer::input), chunks_of(plan_, rank, Buffer::output),
        chunks_of(plan_, rank, Buffer::scratch));
    const std::vector<CollectiveProgramBlock>& blocks = program_.ranks[rank].blocks;
    const std::vector<std::vector<bool>> awaited = steps_awaited(blocks);
    for (std::size_t id = 0; id < blocks.size(); ++id) {
      const CollectiveProgramBlock& block = blocks[id];
      add("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", id, peer_of(block.send_peer),
          peer_of(block.receive_peer), block.channel);
      for (std::size_t index = 0; index < block.steps.size(); ++index)
        add_step(block.steps[index], index, awaited[id][index]);
      add("    </tb>\n");
    }
    add("  </gpu>\n");
  }

  static std::vector<std::vector<bool>> steps_awaited(const std::vector<CollectiveProgramBlock>& blocks) {
    std::vector<std::vector<bool>> awaited;
    awaited.reserve(blocks.size());
    for (const CollectiveProgramBlock& block : blocks) awaited.emplace_back(block.steps.size(), false);
    for (const CollectiveProgramBlock& block : blocks) {
      for (const Step& step : block.steps) {
        if (step.after_block != kNoIndex) awaited[step.after_block][step.after_step] = true;
      }
    }
    return awaited;
  }

  // Writes a step. A buffer that a step does not use repeats the one that it uses, as in msccl-tools.
  void add_step(const Step& step, std::size_t index, bool awaited) {
    const bool nothing = step.kind == Step::Kind::nothing;
    const ChunkAt source = reads_source(step.kind) ? step.source : step.destination;
    const ChunkAt destination = writes_destination(step.kind) ? step.destination : step.source;
    const auto offset = [&](ChunkAt at) { return nothing ? -1 : std::int64_t{at.chunk}; };
    const auto buffer = [](ChunkAt at) { return kBuffers[static_cast<std::size_t>(at.buffer)]; };
    const bool waits = step.after_block != kNoIndex;
    add("      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" "
        "depid=\"{}\" deps=\"{}\" hasdep=\"{:d}\"/>\n",
        index, to_string(step.kind), buffer(source), offset(source), buffer(destination), offset(destination),
        nothing ? 0 : step.count, waits ? std::int64_t{step.after_block} : -1,
        waits ? std::int64_t{step.after_step} : -1, awaited);
  }

  const CollectiveProgram& program_;
  ProgramPlan plan_;
  std::string text_;
};

const FormatRegistration kMscclXmlFormat{
    {.name = "msccl_xml",
     .what = "a program of MSCCL (XML)",
     .use = Format::Use::part,
     .matches = [](const Excerpt& file) { return file.xml_root() == "algo"; },
     .component = "msccl",
     .advice = kProgramAdvice,
     .endings = {".xml"}}};

}  // namespace

CollectiveProgram read_msccl_xml(std::string text, const std::string& path) {
  return ProgramReader(std::move(text), path).read();
}

std::string write_msccl_xml(const CollectiveProgram& program) { return ProgramWriter(program).write(); }

}  // namespace netsim
