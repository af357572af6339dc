// A star for tests of the network: YAML of hosts at one switch, without congestion control.
#pragma once

#include <string>

namespace netsim::test {

// `network` and `transport` are the text of these sections, the latter after a comma. `links`: rate and
// delay.
inline std::string star(int hosts, const std::string& network, const std::string& transport = "",
                        const std::string& links = "rate: 100 Gbps, delay: 1 us") {
  return "topology: {kind: star, hosts: " + std::to_string(hosts) + ", " + links +
         "}\ntransport: {congestion_control: none" + transport + "}\nnetwork: {" + network + "}\n";
}

}  // namespace netsim::test
