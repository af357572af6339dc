#include "sim/jobs/task_scheduling.h"

namespace netsim {

LaunchTables::LaunchTables(const std::vector<std::uint32_t>& sizes) : first_{0} {
  for (const std::uint32_t size : sizes) first_.push_back(first_.back() + size);
}

void LaunchTables::set_order(RankId rank, std::uint32_t position, std::uint32_t order) {
  if (orders_.empty()) orders_.resize(first_.back(), UINT32_MAX);
  orders_[first_[rank] + position] = order;
}

void LaunchTables::set_links(RankId rank, std::uint32_t position, std::uint8_t links) {
  if (links_.empty()) links_.resize(first_.back(), 0);
  links_[first_[rank] + position] = links;
}

void LaunchTables::set_bucket(RankId rank, std::uint32_t position, std::uint32_t bucket) {
  if (buckets_.empty()) buckets_.resize(first_.back(), kNoIndex);
  buckets_[first_[rank] + position] = bucket;
}

void LaunchTables::set_bucket_size(std::uint32_t bucket, std::uint32_t tasks) {
  if (bucket_sizes_.size() <= bucket) bucket_sizes_.resize(bucket + std::size_t{1}, 0);
  bucket_sizes_[bucket] = tasks;
}

void LaunchTables::set_turn(RankId rank, std::uint32_t position, std::uint32_t sequence,
                            std::uint32_t number) {
  if (places_.empty()) places_.resize(first_.back());
  places_[first_[rank] + position] = {sequence, number};
}

void LaunchTables::set_sequence_size(std::uint32_t sequence, std::uint32_t tasks) {
  if (sequence_sizes_.size() <= sequence) sequence_sizes_.resize(sequence + std::size_t{1}, 0);
  sequence_sizes_[sequence] = tasks;
}

void LaunchTables::add_hold(RankId rank, std::uint32_t position, std::uint32_t until) {
  holds_[first_[rank] + position].push_back(until);
  awaited_.insert(first_[rank] + until);
}

std::span<const std::uint32_t> LaunchTables::holds(RankId rank, TaskId task) const {
  if (holds_.empty()) return {};
  const auto found = holds_.find(entry(rank, task));
  return found == holds_.end() ? std::span<const std::uint32_t>() : found->second;
}

LaunchTables::Turn LaunchTables::turn(RankId rank, TaskId task) const {
  if (places_.empty()) return {};
  const Place place = places_[entry(rank, task)];
  if (place.sequence == kNoIndex) return {};
  return {place.sequence, iteration(rank, task) * sequence_sizes_[place.sequence] + place.number};
}

std::uint64_t LaunchTables::order(RankId rank, TaskId task) const {
  if (orders_.empty()) return task;
  return iteration(rank, task) << 32 | orders_[entry(rank, task)];
}

}  // namespace netsim
