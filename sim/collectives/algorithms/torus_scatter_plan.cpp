#include "sim/collectives/algorithms/torus_scatter_plan.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace netsim {

TorusScatterPlan::TorusScatterPlan(const char* algorithm, CollectiveKind kind, TorusTrees trees)
    : RegularPlan(algorithm, kind, trees.positions()), trees_(std::move(trees)) {
  order_pieces();
  received_ = sent_;
  chain_additions();
}

// Returns the number of links from each position to the root, by number().
std::vector<std::uint32_t> TorusScatterPlan::depths() const {
  std::vector<std::uint32_t> depth(number(ranks_, 0), 0), next;
  for (std::uint32_t tree = 0; tree < trees_.count(); ++tree) {
    next = {0};
    while (!next.empty()) {
      const std::uint32_t position = next.back();
      next.pop_back();
      const TreeNode node = trees_.node(position, tree);
      for (std::uint32_t i = 0; i < node.child_count; ++i) {
        depth[number(node.children[i], tree)] = depth[number(position, tree)] + 1;
        next.push_back(node.children[i]);
      }
    }
  }
  return depth;
}

void TorusScatterPlan::order_pieces() {
  const std::vector<std::uint32_t> depth = depths();
  // Pieces whose sums are complete, by link. The first one has the longest path, then the least number.
  using Ready = std::set<std::pair<std::uint32_t, std::size_t>>;
  std::vector<Ready> ready(trees_.links());
  std::vector<std::uint32_t> missing(depth.size(), 0);  // children whose addends have not come yet
  const auto add = [&](std::uint32_t position, std::uint32_t tree) {
    const std::size_t piece = number(position, tree);
    ready[trees_.link_up(position, tree)].insert({UINT32_MAX - depth[piece], piece});
  };
  for (std::uint32_t position = 1; position < ranks_; ++position) {
    for (std::uint32_t tree = 0; tree < trees_.count(); ++tree) {
      missing[number(position, tree)] = trees_.node(position, tree).child_count;
      if (missing[number(position, tree)] == 0) add(position, tree);
    }
  }
  places_.resize(depth.size());
  sent_.resize(trees_.links());
  std::vector<Piece> now;  // pieces that are sent in the slot
  for (std::uint32_t slot = 0; slot == 0 || !now.empty(); ++slot) {
    now.clear();
    for (std::uint32_t link = 0; link < trees_.links(); ++link) {
      if (ready[link].empty()) continue;
      const std::size_t piece = ready[link].begin()->second;
      ready[link].erase(ready[link].begin());
      now.push_back({static_cast<std::uint32_t>(piece / trees_.count()),
                     static_cast<std::uint32_t>(piece % trees_.count())});
      places_[piece] = {slot, link, static_cast<std::uint32_t>(sent_[link].size())};
      sent_[link].push_back(now.back());
    }
    for (const Piece& piece : now) {
      const std::uint32_t parent = trees_.along(piece.position, trees_.link_up(piece.position, piece.tree));
      if (parent != 0 && --missing[number(parent, piece.tree)] == 0) add(parent, piece.tree);
    }
  }
}

// The additions to a piece happen in the order of the slots in which its children send, then of their links.
void TorusScatterPlan::chain_additions() {
  for (std::uint32_t position = 1; position < ranks_; ++position) {
    for (std::uint32_t tree = 0; tree < trees_.count(); ++tree) {
      const TreeNode node = trees_.node(position, tree);
      std::vector<Place> children;
      children.reserve(node.child_count);
      for (std::uint32_t i = 0; i < node.child_count; ++i)
        children.push_back(places_[number(node.children[i], tree)]);
      std::sort(children.begin(), children.end(), [](const Place& a, const Place& b) {
        return std::tie(a.slot, a.link) < std::tie(b.slot, b.link);
      });
      const auto wait = [](Piece& piece, const Place& before) {
        piece.after_link = before.link;
        piece.after_step = before.index;
      };
      for (std::size_t i = 1; i < children.size(); ++i)
        wait(received_[children[i].link][children[i].index], children[i - 1]);
      const Place& own = places_[number(position, tree)];
      if (!children.empty()) wait(sent_[own.link][own.index], children.back());
    }
  }
}

Step TorusScatterPlan::step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const {
  const bool is_sent = block < trees_.links();
  const std::uint32_t link = is_sent ? block : block - trees_.links();
  const Piece& piece = (is_sent ? sent_ : received_)[link][index];
  // A rank at a position relative to the root is the root's position away from it.
  const std::uint32_t position = is_sent ? piece.position : trees_.along(piece.position, link);
  const std::uint32_t root = trees_.relative(rank, position);
  Step step;
  step.kind = is_sent ? Step::Kind::send : Step::Kind::receive_reduce_copy;
  step.source = step.destination = chunk(root, piece.tree);
  if (is_sent) {
    step.to = {trees_.along(rank, link), receiving(link)};
  } else {
    step.from = {trees_.along(rank, trees_.opposite(link)), link};
  }
  if (piece.after_link != kNoIndex) {
    step.after_block = receiving(piece.after_link);
    step.after_step = piece.after_step;
  }
  return step;
}

}  // namespace netsim
