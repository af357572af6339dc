// An independent program: it has its own component, makes several simulations at a time, and runs them.
//
//   consumer [PLUGIN.so ...] CONFIG.yaml WORKLOAD
//
// Prints the fingerprint of a run on one line; exits with 1 where runs that are not alone have another one.
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/plugin_loader.h"
#include "sim/core/registry.h"
#include "sim/simulation/simulation.h"
#include "sim/transport/congestion/congestion_control.h"

namespace {

// A fixed part of the line rate.
struct FractionParameters {
  double fraction = 0.5;
};

class Fraction final : public netsim::CongestionControl {
 public:
  explicit Fraction(const FractionParameters& p) : p_(p) {}
  void start(netsim::CongestionContext& c) const override {
    c.rate = static_cast<netsim::BitRate>(static_cast<double>(c.line_rate) * p_.fraction);
  }

 private:
  FractionParameters p_;
};

const netsim::Registration<netsim::CongestionControl> kRegistration{
    "fraction", "sends at a fixed part of the line rate",
    netsim::Parameters<FractionParameters>().real("fraction", &FractionParameters::fraction, {0.01, 1},
                                                  "of the line rate"),
    [](const FractionParameters& p, const netsim::ConfigNode&) { return std::make_unique<Fraction>(p); }};

std::unique_ptr<netsim::Simulation> make(const std::string& config, const std::string& workload,
                                         std::uint64_t seed) {
  netsim::SimulationSetup setup;
  setup.config = netsim::load_config(config);
  setup.workload = workload;
  setup.seed = seed;
  setup.threads = 1;
  return std::make_unique<netsim::Simulation>(std::move(setup));
}

std::uint64_t fingerprint(netsim::Simulation& simulation, const netsim::Watch& watch = {}) {
  const netsim::Results results = simulation.run(watch);
  if (results.outcome != netsim::Outcome::done) throw std::runtime_error("the run did not end");
  return results.fingerprints.results;
}

// Whether an internal check comes out as an exception, with the simulation it happened in left behind.
bool checks_throw() {
  try {
    netsim::check_failed("two == three", "consumer.cpp", 1, "");
  } catch (const netsim::InternalError&) {
    return true;
  }
  return false;
}

int act(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i) netsim::load_plugin(words[i]);
  const auto simulation = [&](std::uint64_t seed) {
    return make(words[words.size() - 2], words[words.size() - 1], seed);
  };
  const std::uint64_t one = fingerprint(*simulation(1)), two = fingerprint(*simulation(2));

  // One in each of two threads.
  const auto first = simulation(1), second = simulation(2);
  std::uint64_t first_result = 0, second_result = 0;
  std::thread other([&] { second_result = fingerprint(*second); });
  first_result = fingerprint(*first);
  other.join();
  if (first_result != one || second_result != two) return 1;

  // In turns, step by step; each tells when its iteration is over.
  const auto left = simulation(1), right = simulation(2);
  int iterations = 0;
  for (const auto* each : {&left, &right}) {
    (*each)->on_iteration([&](std::uint32_t, std::uint32_t, netsim::Time) { ++iterations; });
    (*each)->begin();
  }
  for (bool more = true; more;) {
    const bool left_goes_on = left->step(), right_goes_on = right->step();
    more = left_goes_on || right_goes_on;
  }
  if (!left->state().done || !right->state().done || iterations != 2) return 1;
  if (left->results().fingerprints.results != one || right->results().fingerprints.results != two) return 1;

  // One in the middle of the other.
  const auto outer = simulation(1), inner = simulation(2);
  std::uint64_t inner_result = 0;
  netsim::Watch watch;
  watch.interrupted = [&] {
    if (inner_result == 0) inner_result = fingerprint(*inner);
    return false;
  };
  if (fingerprint(*outer, watch) != one || inner_result != two) return 1;
  if (!checks_throw()) return 1;
  std::cout << std::hex << one << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return act(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const netsim::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.code());
  }
}
