#include "sim/jobs/circuit_numbers.h"

#include <algorithm>
#include <string>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

std::uint32_t number_of(const AskedCircuits& asked, const CircuitControl* control) {
  if (control == nullptr) {
    throw InputError(asked.place, "circuits '" + asked.name +
                                      "' are asked for, but there are no optical circuits: no fabric of the "
                                      "cluster switches any, or the network is ideal");
  }
  const std::vector<std::string>& names = control->configurations();
  const auto at = std::find(names.begin(), names.end(), asked.name);
  if (at != names.end()) return static_cast<std::uint32_t>(at - names.begin());
  std::string all;
  for (const std::string& name : names) append_item(all, name);
  throw InputError(asked.place, "the optical switches have no circuits '" + asked.name + "'" +
                                    did_you_mean(asked.name, names) + "; they have: " + all);
}

}  // namespace

CircuitNumbers::CircuitNumbers(const TaskSource& source, const CircuitControl* control) {
  for (const AskedCircuits& asked : source.circuits()) numbers_.push_back(number_of(asked, control));
}

}  // namespace netsim
