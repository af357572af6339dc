// Ids: numbers of GPUs, hosts, ranks, tasks and other things, as a type for each of them. All count from 0.
#pragma once

#include <compare>
#include <cstdint>
#include <type_traits>

namespace netsim {

// Id: the number of one kind of thing. A plain number becomes an id where one is expected, and an id becomes
// its number where one is needed, such as an index. An id of one kind never becomes an id of another, and two
// ids of different kinds cannot be compared. It has the size of its number.
template <class Kind>
class Id {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Makes the id that stands for no thing.
  constexpr Id() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a number is an id where one is expected
  constexpr Id(std::uint32_t number) : number_(number) {}
  template <class Other>
  Id(Id<Other>) = delete;
  // NOLINTNEXTLINE(google-explicit-constructor): an id is an index
  constexpr operator std::uint32_t() const { return number_; }

  static constexpr Id none() { return Id(); }
  constexpr bool is_none() const { return number_ == kNone; }
  constexpr Id& operator++() {
    ++number_;
    return *this;
  }

 private:
  std::uint32_t number_ = kNone;
};

template <class A, class B>
requires(!std::is_same_v<A, B>) bool operator==(Id<A>, Id<B>) = delete;
template <class A, class B>
requires(!std::is_same_v<A, B>) std::strong_ordering operator<=>(Id<A>, Id<B>) = delete;

using GpuId = Id<struct GpuKind>;       // a GPU or drive of the cluster
using HostId = Id<struct HostKind>;     // a host of the cluster
using RankId = Id<struct RankKind>;     // a rank of one job
using JobId = Id<struct JobKind>;       // a job of the run
using TaskId = Id<struct TaskOfRank>;   // a task of one rank; rises in program order
using GroupId = Id<struct GroupOfJob>;  // a group of ranks of one job, which all its members know by it

// The path hint of a message without one: routing chooses its path (TransferTraits::path_hint).
inline constexpr std::uint32_t kNoPathHint = UINT32_MAX;

}  // namespace netsim
