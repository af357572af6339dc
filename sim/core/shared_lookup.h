// SharedLookup: remembers results of a cache that all sets share, so that one set needs no lock to ask again.
// The cache has `key(parts...)`, which names an entry, and `get(parts...)`, whose result lives as long as the
// cache. Any thread may call get().
#pragma once

#include <map>
#include <type_traits>

namespace netsim {

template <class Cache>
class SharedLookup {
 public:
  explicit SharedLookup(Cache& cache) : cache_(cache) {}
  template <class... Parts>
  const typename Cache::Value& get(const Parts&... parts) {
    const auto& key = Cache::key(parts...);
    const auto known = known_.find(key);
    return known != known_.end() ? *known->second : *known_.emplace(key, &cache_.get(parts...)).first->second;
  }

 private:
  Cache& cache_;
  std::map<typename Cache::Key, const typename Cache::Value*> known_;
};

}  // namespace netsim
