#include "sim/workload/trace/trace_blocks.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "sim/workload/program/program.h"

namespace netsim {
namespace {

// Returns the sum of the parts, or nothing where one of them is none or the sum is no size of a
// communication.
std::optional<Bytes> sum_of_parts(const std::vector<std::int64_t>& parts) {
  Bytes sum = 0;
  for (const std::int64_t part : parts) {
    if (part < 0 || part > ProgramLimits::kBytes - sum) return std::nullopt;
    sum += part;
  }
  return sum;
}

// Returns the bytes of each part of a buffer, or an empty list where the parts do not divide it.
std::vector<Bytes> bytes_of_parts(const SplitSizes& sizes, std::size_t members, Bytes bytes) {
  if (!sizes) return {};
  const std::vector<std::int64_t> parts = sizes->empty() ? std::vector<std::int64_t>(members, 1) : *sizes;
  const std::optional<Bytes> sum = sum_of_parts(parts);
  if (parts.size() != members || !sum || bytes < 0) return {};
  if (*sum == 0 || bytes == 0) return bytes == 0 ? std::vector<Bytes>(members, 0) : std::vector<Bytes>();
  if (bytes % *sum != 0) return {};
  std::vector<Bytes> all;
  all.reserve(members);
  for (const std::int64_t part : parts) all.push_back(part * (bytes / *sum));
  return all;
}

// Returns the bytes of an output whose rows are as long as those of the input, if the lists tell them.
std::optional<Bytes> output_bytes(const SplitSizes& in, const SplitSizes& out, Bytes in_bytes) {
  if (!in || !out || out->empty()) return std::nullopt;
  const std::optional<Bytes> rows = sum_of_parts(*in), received = sum_of_parts(*out);
  if (!rows || *rows == 0 || !received || in_bytes % *rows != 0) return std::nullopt;
  const Bytes row = in_bytes / *rows;
  if (row > 0 && *received > ProgramLimits::kBytes / row) return std::nullopt;
  return *received * row;
}

}  // namespace

SplitSizes split_sizes_in(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '[' || c == ']' || c == ',' || c == ' ') continue;
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), size);
    if (error != std::errc()) return std::nullopt;
    sizes.push_back(size);
    at = static_cast<std::size_t>(end - text.data()) - 1;
  }
  return sizes;
}

bool find_split_sizes(std::string_view inputs, SplitSizes& in, SplitSizes& out) {
  std::size_t at = inputs.find("all_to_all");
  if (at == std::string_view::npos) return false;
  for (SplitSizes* list : {&in, &out}) {
    const std::size_t begin = inputs.find('[', at), end = inputs.find(']', at);
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return true;
    *list = split_sizes_in(inputs.substr(begin, end + 1 - begin));
    at = end + 1;
  }
  return true;
}

TraceBlocks blocks_of_splits(const SplitSizes& in, const SplitSizes& out, std::size_t members, Bytes in_bytes,
                             std::optional<Bytes> out_bytes) {
  TraceBlocks blocks;
  blocks.sends = bytes_of_parts(in, members, in_bytes);
  if (!out_bytes) out_bytes = output_bytes(in, out, in_bytes);
  if (out_bytes) blocks.receives = bytes_of_parts(out, members, *out_bytes);
  return blocks;
}

std::optional<CollectiveKind> TraceTokens::add_to(TraceBlocks& blocks, std::size_t members) const {
  const auto kind =
      collective == to_string(CollectiveKind::dispatch)  ? std::optional(CollectiveKind::dispatch)
      : collective == to_string(CollectiveKind::combine) ? std::optional(CollectiveKind::combine)
                                                         : std::nullopt;
  const bool sized = token > 0 && token <= ProgramLimits::kBytes && host > 0 &&
                     host <= std::int64_t{ProgramLimits::kCountsMembers};
  const auto are_tokens = [this](const std::vector<std::int64_t>& row, std::size_t size) {
    return row.size() == size && std::all_of(row.begin(), row.end(), [this](std::int64_t bytes) {
             return bytes >= 0 && bytes <= ProgramLimits::kBytes && bytes % token == 0;
           });
  };
  if (!kind || !sized || !are_tokens(blocks.sends, members) || !are_tokens(copies, members))
    return std::nullopt;
  const auto width = static_cast<std::size_t>(host);
  if (!are_tokens(to_hosts, (members + width - 1) / width)) return std::nullopt;
  blocks.tokens = {token, static_cast<std::uint32_t>(host), copies, to_hosts};
  return kind;
}

TraceBlocks blocks_of_member(const BlockCounts& counts, std::uint32_t member) {
  TraceBlocks blocks;
  const auto row_of = [member](std::span<const Bytes> rows, std::size_t width) {
    const auto row = rows.subspan(member * width, width);
    return std::vector<Bytes>(row.begin(), row.end());
  };
  blocks.sends = row_of(counts.rows(), counts.members());
  blocks.receives.reserve(counts.members());
  for (std::uint32_t source = 0; source < counts.members(); ++source)
    blocks.receives.push_back(counts.of(source, member));
  if (!counts.has_tokens()) return blocks;
  const TokenBytes& tokens = counts.tokens();
  blocks.tokens = {tokens.token, tokens.host, row_of(tokens.copies, counts.members()),
                   row_of(tokens.to_hosts, counts.hosts())};
  return blocks;
}

void GatheredBlocks::add(std::size_t member, Bytes bytes, std::shared_ptr<const TraceBlocks> blocks) {
  bytes_ += bytes;
  blocks_[member] = blocks == nullptr ? std::make_shared<TraceBlocks>() : std::move(blocks);
}

bool GatheredBlocks::complete() const {
  return std::all_of(blocks_.begin(), blocks_.end(),
                     [](const auto& blocks) { return blocks != nullptr && !blocks->sends.empty(); });
}

bool GatheredBlocks::agrees() const {
  if (!complete()) return true;
  for (std::size_t member = 0; member < blocks_.size(); ++member) {
    const std::vector<Bytes>& receives = of(member).receives;
    for (std::size_t source = 0; source < receives.size(); ++source) {
      if (source != member && receives[source] != of(source).sends[member]) return false;
    }
  }
  return true;
}

bool GatheredBlocks::has_equal_tokens() const {
  return std::all_of(blocks_.begin(), blocks_.end(), [&](const auto& blocks) {
    return blocks != nullptr && blocks->tokens.token == of(0).tokens.token &&
           blocks->tokens.host == of(0).tokens.host;
  });
}

BlockCounts GatheredBlocks::counts() const {
  const auto members = static_cast<std::uint32_t>(blocks_.size());
  const auto all = static_cast<Bytes>(members) * members;
  if (!complete()) {
    const std::vector<Bytes> equal(std::size_t{members} * members, std::max<Bytes>(bytes_ / all, 1));
    return BlockCounts(members, equal);
  }
  std::vector<Bytes> rows;
  rows.reserve(static_cast<std::size_t>(all));
  TokenBytes tokens{of(0).tokens.token, of(0).tokens.host, {}, {}};
  for (std::size_t member = 0; member < members; ++member) {
    const TraceBlocks& blocks = of(member);
    rows.insert(rows.end(), blocks.sends.begin(), blocks.sends.end());
    tokens.copies.insert(tokens.copies.end(), blocks.tokens.copies.begin(), blocks.tokens.copies.end());
    tokens.to_hosts.insert(tokens.to_hosts.end(), blocks.tokens.to_hosts.begin(),
                           blocks.tokens.to_hosts.end());
  }
  BlockCounts counts(members, rows, tokens);
  if (counts.busiest() > 0 || counts.has_tokens()) return counts;
  rows[1] = 1;
  return BlockCounts(members, std::move(rows));
}

}  // namespace netsim
