// Reads instances of coflows from its standard input and prints what the rules decide, one line for each.
//
// An instance is a line of numbers. It begins with the numbers of links, coflows and flows. The capacity of
// each link in bit/s and the weight of each coflow follow. Each flow then has its bytes left, its coflow and
// its two links.
//
// The answer is a line of numbers, too. It has the order of SEBF, and the rates by MADD in this order without
// and with backfill. The order of BSSI and its bound in seconds follow.
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/scheduling/flow/rules/coflow_rates.h"
#include "sim/scheduling/flow/rules/sincronia.h"

namespace netsim {
namespace {

struct Instance {
  std::vector<BitRate> capacity;
  std::vector<double> weights;
  std::vector<std::uint32_t> links;  // two of each flow
  std::vector<RuleFlow> flows;
};

Instance read_instance(const std::string& line) {
  std::istringstream in(line);
  std::size_t links = 0, coflows = 0, flows = 0;
  in >> links >> coflows >> flows;
  Instance instance;
  instance.capacity.resize(links);
  instance.weights.resize(coflows);
  instance.links.resize(2 * flows);
  instance.flows.resize(flows);
  for (BitRate& capacity : instance.capacity) in >> capacity;
  for (double& weight : instance.weights) in >> weight;
  for (std::size_t i = 0; i < flows; ++i) {
    in >> instance.flows[i].left >> instance.flows[i].group >> instance.links[2 * i] >>
        instance.links[2 * i + 1];
    instance.flows[i].links = std::span(instance.links).subspan(2 * i, 2);
  }
  if (!in) throw std::runtime_error("not an instance: " + line);
  return instance;
}

template <class Number>
void print(const std::vector<Number>& numbers) {
  for (const Number number : numbers) std::cout << number << ' ';
}

void answer(const Instance& instance) {
  const auto coflows = static_cast<std::uint32_t>(instance.weights.size());
  const auto order = sebf_order(instance.capacity, instance.flows, coflows);
  print(order);
  print(madd_rates(instance.capacity, instance.flows, order, Backfill::none));
  print(madd_rates(instance.capacity, instance.flows, order, Backfill::in_order));
  const CoflowOrder bssi = bssi_order(instance.capacity, instance.flows, instance.weights);
  print(bssi.order);
  std::cout << std::setprecision(std::numeric_limits<double>::max_digits10) << bssi.bound << std::endl;
}

}  // namespace
}  // namespace netsim

int main() {
  for (std::string line; std::getline(std::cin, line);) netsim::answer(netsim::read_instance(line));
}
