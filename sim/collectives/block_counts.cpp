#include "sim/collectives/block_counts.h"

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim {

BlockCounts::BlockCounts(std::uint32_t members, std::vector<Bytes> rows)
    : members_(members), digest_(members), rows_(std::move(rows)) {
  NETSIM_CHECK(rows_.size() == std::size_t{members} * members, "counts of members x members blocks");
  for (std::uint32_t member = 0; member < members; ++member) {
    Bytes out = 0, in = 0;
    for (std::uint32_t other = 0; other < members; ++other) {
      digest_ = hash_combine(digest_, static_cast<std::uint64_t>(of(member, other)));
      if (other == member) continue;
      out += of(member, other);
      in += of(other, member);
    }
    busiest_ = std::max({busiest_, out, in});
  }
}

}  // namespace netsim
