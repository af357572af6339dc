// ButterflyPlan: log2(p) exchanges between pairs of ranks, the pattern of recursive halving and doubling and
// of swing. The source is Thakur, Rabenseifner, Gropp, Int. J. of High Performance Computing Applications 19,
// 2005, sections 4.1, 4.4, 4.5.
//
// Each of 2^k members has a position of k bits. Its partner in exchange e has the same first e bits and the
// other bit e. In a halving, both partners hold sums of the part of the buffer that belongs to their first e
// bits. Each sends the half that belongs to the other and adds the received half to its own. A doubling is
// the same backwards, with copies. Alternatively they exchange the whole buffer.
//
// With other numbers of ranks, the even ones of the first 2 (p - 2^k) ranks are no members. Each sends its
// part to the next rank, which acts for both, and gets the result from it. That takes two more steps of up to
// the whole buffer each.
//
// Each slice of the buffer has one thread block. Its steps are a send and a receive for each exchange.
#pragma once

#include "sim/collectives/algorithms/regular_plan.h"

namespace netsim {

class ButterflyPlan : public RegularPlan {
 public:
  // Exchange: an all_reduce by halving and doubling (`parts`), or by exchanges of the whole buffer (`whole`).
  enum class Exchange : std::uint8_t { parts, whole };

  ButterflyPlan(const char* algorithm, CollectiveKind kind, std::uint32_t ranks, Exchange exchange,
                std::uint32_t slices = 1);

  std::uint32_t chunks() const override;
  std::uint32_t largest_count() const override;
  bool in_place() const override { return true; }
  // With one slice this is MPI's algorithm, which exchanges with one rank at a time (MPI_Sendrecv). Several
  // slices use several ports.
  bool serial_sends() const override { return slices_ == 1; }
  std::uint32_t blocks(std::uint32_t) const override { return slices_; }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override;
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override;

 protected:
  // Return the position of member 0 to 2^bits - 1, and its partner in an exchange. A plan with other
  // positions and partners than those of a hypercube supports only an all_reduce of 2^bits ranks.
  virtual std::uint32_t position(std::uint32_t /*slice*/, std::uint32_t member) const { return member; }
  virtual std::uint32_t partner(std::uint32_t /*slice*/, std::uint32_t member, std::uint32_t exchange) const {
    return member ^ 1U << (bits_ - 1 - exchange);
  }
  std::uint32_t bits() const { return bits_; }

 private:
  struct Chunks {
    std::uint32_t first = 0, count = 0;
  };
  struct Halves {
    Chunks mine, other;
  };
  std::uint32_t pairs() const { return ranks_ - (1U << bits_); }
  bool stands_aside(std::uint32_t rank) const { return rank < 2 * pairs() && rank % 2 == 0; }
  std::uint32_t member_of(std::uint32_t rank) const { return rank < 2 * pairs() ? rank / 2 : rank - pairs(); }
  std::uint32_t rank_of(std::uint32_t member) const {
    return member < pairs() ? 2 * member + 1 : member + pairs();
  }
  bool halves() const { return kind_ != CollectiveKind::all_gather && exchange_ == Exchange::parts; }
  bool doubles() const { return kind_ != CollectiveKind::reduce_scatter && exchange_ == Exchange::parts; }
  std::uint32_t exchanges() const { return bits_ * (halves() && doubles() ? 2 : 1); }
  std::uint32_t first_chunk(std::uint32_t position) const;
  Chunks chunks_at(std::uint32_t slice, std::uint32_t position, std::uint32_t positions) const;
  Chunks everything() const { return {0, chunks()}; }
  Halves halves_at(std::uint32_t slice, std::uint32_t member, std::uint32_t exchange) const;
  Chunks handed_over(std::uint32_t aside) const;
  Chunks handed_back(std::uint32_t aside) const;
  Step with_neighbour(std::uint32_t rank, std::uint32_t neighbour, bool back) const;
  Step exchange_step(std::uint32_t member, std::uint32_t slice, std::uint32_t index) const;

  std::uint32_t bits_ = 0;
  Exchange exchange_;
  std::uint32_t slices_;
};

}  // namespace netsim
