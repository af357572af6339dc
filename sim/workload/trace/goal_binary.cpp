#include <fmt/format.h>

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/workload/program/program.h"
#include "sim/workload/trace/goal_schedule.h"

namespace netsim {
namespace {

// GoalBinary: reads the form of txt2bin. All numbers are little-endian and packed. The magic number, the
// number of ranks and the largest cpu and nic come first. A table has the begin and end of each rank's part,
// counted from behind the magic number. The parts are read in the order of the file, one at a time.
class GoalBinary {
 public:
  explicit GoalBinary(const InputSet::File& file) : file_(file.path), stream_(file) {}

  GoalSchedule read() {
    load(kMagicBytes + 6, "the header");
    const std::uint64_t magic = number(0, 8);
    if (magic == kConsumed)
      fail(0, "was overwritten by a run of LogGOPSim with --save-mem; allowed: a new file of txt2bin");
    if (magic != kMagic) fail(0, fmt::format("the magic number is {}; allowed: {}", magic, kMagic));
    const std::uint64_t ranks = number(8, 4);
    if (ranks < 1 || ranks > ProgramLimits::kRanks)
      fail(8, fmt::format("has {} ranks; allowed: 1 to {}", ranks, ProgramLimits::kRanks));
    load(ranks * 16, "the table of ranks");
    std::vector<Part> parts(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      parts[rank] = {number(rank * 16, 8), number(rank * 16 + 8, 8), rank};
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
    GoalSchedule schedule;
    schedule.ranks.resize(ranks);
    for (const Part& part : parts) read_part(part, schedule.ranks[part.rank], ranks);
    return schedule;
  }

 private:
  static constexpr std::uint64_t kMagic = 4223, kConsumed = 2342, kMagicBytes = 8, kNodeBytes = 39;
  struct Part {
    std::uint64_t begin = 0, end = 0;
    std::size_t rank = 0;
  };

  void read_part(const Part& part, GoalRank& rank, std::uint64_t ranks) {
    const std::uint64_t read = read_to_ - kMagicBytes;
    if (part.begin < read || part.end < part.begin || part.begin > kMost || part.end > kMost)
      fail(read_to_,
           fmt::format("the part of rank {} is from byte {} to {} behind the magic number; allowed: "
                       "from {} on, without overlaps",
                       part.rank, part.begin, part.end, read));
    skip(part.begin - read);
    load(part.end - part.begin, fmt::format("the part of rank {}", part.rank));
    if (bytes_.size() < 8) fail(begin_, fmt::format("the part of rank {} has no counts", part.rank));
    const std::uint64_t nodes = number(0, 4), roots = number(4, 4), first = 8 + roots * 4;
    const std::uint64_t edges_at = first + nodes * kNodeBytes;
    if (edges_at > bytes_.size())
      fail(begin_, fmt::format("rank {} has {} nodes and {} roots, which need {} bytes, and its part has {}",
                               part.rank, nodes, roots, edges_at, bytes_.size()));
    rank.ops.reserve(nodes);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      const std::uint64_t at = first + i * kNodeBytes;
      rank.ops.push_back(operation(at, ranks));
      read_edges(at + 23, edges_at, i, nodes, rank.ends);
      read_edges(at + 31, edges_at, i, nodes, rank.starts);
    }
  }

  GoalOp operation(std::uint64_t at, std::uint64_t ranks) const {
    GoalOp op;
    const std::uint64_t kind = number(at + 4, 1), size = number(at + 9, 8);
    if (kind < 1 || kind > 3) fail(begin_ + at + 4, fmt::format("the type is {}; allowed: 1 to 3", kind));
    op.kind = static_cast<GoalOp::Kind>(kind);
    const bool calc = op.kind == GoalOp::Kind::calc;
    const auto most =
        static_cast<std::uint64_t>(calc ? ProgramLimits::kKernelTime / kNanosecond : ProgramLimits::kBytes);
    if (size > most) fail(begin_ + at + 9, fmt::format("the size is {}; allowed: 0 to {}", size, most));
    op.size = static_cast<std::int64_t>(size);
    op.cpu = static_cast<std::uint8_t>(number(at + 21, 1));
    if (calc) return op;
    op.nic = static_cast<std::uint8_t>(number(at + 22, 1));
    op.peer = static_cast<std::uint32_t>(number(at + 5, 4));
    op.tag = static_cast<std::uint32_t>(number(at + 17, 4));
    const bool any = op.kind == GoalOp::Kind::receive;
    if (op.peer >= ranks && !(any && op.peer == kAnyGoal))
      fail(begin_ + at + 5, fmt::format("the peer is {}; allowed: 0 to {}", op.peer, ranks - 1));
    if (!any && op.tag == kAnyGoal) fail(begin_ + at + 17, "a send with any tag; allowed: one of its own");
    return op;
  }

  // Reads which operations wait for operation `earlier`: their number and the position of the first.
  void read_edges(std::uint64_t at, std::uint64_t edges_at, std::uint32_t earlier, std::uint64_t nodes,
                  std::vector<GoalRank::Edge>& edges) {
    const std::uint64_t count = number(at, 4), first = number(at + 4, 4);
    if (count > 0 && edges_at + (first + count) * 4 > bytes_.size())
      fail(begin_ + at, fmt::format("{} dependents from {} on are behind the end of the part", count, first));
    for (std::uint64_t i = first; i < first + count; ++i) {
      const std::uint64_t later = number(edges_at + i * 4, 4);
      if (later >= nodes)
        fail(begin_ + edges_at + i * 4,
             fmt::format("the dependent is {}; allowed: 0 to {}", later, nodes - 1));
      edges.emplace_back(static_cast<std::uint32_t>(later), earlier);
    }
    if ((edges_ += count) > ProgramLimits::kDependencies)
      fail(begin_ + at, fmt::format("more than {} dependencies", ProgramLimits::kDependencies));
  }

  // Reads the next bytes of the file to bytes_.
  void load(std::uint64_t count, const std::string& what) {
    begin_ = read_to_;
    bytes_.clear();
    while (bytes_.size() < count) {
      const std::size_t had = bytes_.size();
      const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(count - had, kPiece));
      bytes_.resize(had + want);
      const std::size_t got = stream_.read(bytes_.data() + had, want);
      read_to_ += got;
      if (got < want) fail(read_to_, fmt::format("the file ends within {}", what));
    }
  }
  void skip(std::uint64_t count) {
    while (count > 0) {
      const std::uint64_t piece = std::min(count, kPiece);
      load(piece, "a gap before the part of a rank");
      count -= piece;
    }
  }
  std::uint64_t number(std::uint64_t at, std::size_t count) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[at + i])} << (8 * i);
    return value;
  }
  [[noreturn]] void fail(std::uint64_t offset, const std::string& message) const {
    fail_file(file_, fmt::format("offset {}: {}", offset, message));
  }

  static constexpr std::uint64_t kPiece = 1 << 20, kMost = std::uint64_t{1} << 50;
  std::string file_;
  InputStream stream_;
  std::vector<char> bytes_;  // the bytes that are looked at, from offset begin_ on
  std::uint64_t begin_ = 0, read_to_ = 0;
  std::uint64_t edges_ = 0;  // read so far
};

}  // namespace

GoalSchedule parse_goal_binary(const InputSet::File& file) { return GoalBinary(file).read(); }

}  // namespace netsim
