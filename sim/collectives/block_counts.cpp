#include "sim/collectives/block_counts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim {
namespace {

Bytes sum_of(std::span<const Bytes> row) { return std::accumulate(row.begin(), row.end(), Bytes{0}); }

std::uint64_t digest_of(std::uint64_t digest, std::span<const Bytes> counts) {
  for (const Bytes count : counts) digest = hash_combine(digest, static_cast<std::uint64_t>(count));
  return digest;
}

}  // namespace

BlockCounts::BlockCounts(std::uint32_t members, std::vector<Bytes> rows, TokenBytes tokens)
    : members_(members),
      digest_(digest_of(members, rows)),
      rows_(std::move(rows)),
      tokens_(std::move(tokens)) {
  NETSIM_CHECK(rows_.size() == std::size_t{members} * members, "counts of members x members blocks");
  if (has_tokens()) {
    NETSIM_CHECK(tokens_.host > 0 && tokens_.copies.size() == rows_.size() &&
                     tokens_.to_hosts.size() == std::size_t{members} * hosts(),
                 "counts of tokens for members and hosts");
    digest_ = digest_of(digest_of(digest_, tokens_.copies), tokens_.to_hosts);
    digest_ = hash_combine(hash_combine(digest_, static_cast<std::uint64_t>(tokens_.token)), tokens_.host);
  }
  for (std::uint32_t member = 0; member < members; ++member) {
    if (has_tokens()) {
      const std::span<const Bytes> all = hosts() == 1 ? std::span<const Bytes>(rows_) : tokens_.to_hosts;
      const std::size_t width = all.size() / members;
      busiest_ = std::max(busiest_, sum_of(all.subspan(member * width, width)));
      continue;
    }
    Bytes out = 0, in = 0;
    for (std::uint32_t other = 0; other < members; ++other) {
      if (other == member) continue;
      out += of(member, other);
      in += of(other, member);
    }
    busiest_ = std::max({busiest_, out, in});
  }
}

}  // namespace netsim
