#include "sim/topology/files/infragraph/descriptions.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "sim/core/text.h"
#include "sim/topology/gpu_links.h"
#include "sim/topology/host_links.h"

namespace netsim::infragraph {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// Returns the number after `word`, separated by nothing, a blank, '_' or '-'. 0: there is none.
int number_after(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    std::size_t digit = at + word.size();
    if (digit < text.size() && has_any(text.substr(digit, 1), {" ", "_", "-"})) ++digit;
    int number = 0;
    while (digit < text.size() && is_digit(text[digit]) && number < 1000)
      number = 10 * number + (text[digit++] - '0');
    if (number > 0) return number;
  }
  return 0;
}

// Generation: a generation of GPUs, with the number of NVLinks of such a GPU.
struct Generation {
  int nvlinks;
  std::int64_t compute_capability;
  BitRate rate() const { return nvlinks * nvlink_rate_of(compute_capability); }  // of all its NVLinks
};
constexpr std::array<Generation, 6> kGenerations{{{0, 0}, {4, 60}, {6, 70}, {12, 80}, {18, 90}, {18, 100}}};

// Returns the generation of an xpu as an index of the table above, or 0 where it is unknown.
std::size_t generation_of_xpu(std::string_view xpu) {
  constexpr std::array<std::pair<std::string_view, std::size_t>, 12> kByName{{{"p100", 1},
                                                                              {"v100", 2},
                                                                              {"a100", 3},
                                                                              {"a800", 3},
                                                                              {"h100", 4},
                                                                              {"h200", 4},
                                                                              {"h800", 4},
                                                                              {"h20", 4},
                                                                              {"hopper", 4},
                                                                              {"b200", 5},
                                                                              {"b300", 5},
                                                                              {"blackwell", 5}}};
  for (const auto& [name, generation] : kByName) {
    if (xpu.find(name) != std::string_view::npos) return generation;
  }
  return 0;
}

std::size_t generation_of_nvlink(std::string_view link) {
  const int generation = number_after(link, "nvlink");
  return generation < static_cast<int>(kGenerations.size()) ? static_cast<std::size_t>(generation) : 0;
}

BitRate nvlink_rate(std::string_view link, std::string_view xpu) {  // 0: unknown
  const bool numbered = number_after(link, "nvlink") > 0;
  return kGenerations[numbered ? generation_of_nvlink(link) : generation_of_xpu(xpu)].rate();
}

// Returns the usable rate of one xGMI link between two Instinct GPUs, each way; 0: unknown.
BitRate xgmi_rate(std::string_view xpu) {
  constexpr std::array<std::pair<std::string_view, BitRate>, 7> kByName{{{"mi300", kGfx94xXgmi},
                                                                         {"mi325", kGfx94xXgmi},
                                                                         {"mi350", kGfx94xXgmi},
                                                                         {"mi355", kGfx94xXgmi},
                                                                         {"mi210", kMi200Xgmi},
                                                                         {"mi250", kMi200Xgmi},
                                                                         {"mi100", kVegaXgmi}}};
  for (const auto& [name, rate] : kByName) {
    if (xpu.find(name) != std::string_view::npos) return rate;
  }
  return 0;
}

BitRate pcie_rate(std::string_view text) {  // 0: unknown
  constexpr std::array<double, 7> kGigatransfers{0, 2.5, 5, 8, 16, 32, 64};
  const int generation = number_after(text, "gen");
  if (generation <= 0 || generation >= static_cast<int>(kGigatransfers.size())) return 0;
  return usable_pcie(kGigatransfers[static_cast<std::size_t>(generation)], pcie_lanes(text));
}

bool is_pcie(std::string_view text) { return has_any(text, {"pci", "cxl"}); }

bool is_scale_up(const Wire& wire, const Part& a, const Part& b) {
  const auto may = [](const Part& part) {
    return part.kind == DescribedCluster::Kind::xpu || part.kind == DescribedCluster::Kind::network_switch;
  };
  if (!may(a) || !may(b) || is_pcie(wire.text)) return false;
  const auto carries = [](std::string_view text) {
    return has_any(text, {"nvlink", "nvsw", "nvl", "xgmi", "infinity", "ualink", "scale-up", "scale_up"});
  };
  if (carries(wire.text)) return true;
  for (const Part* part : {&a, &b}) {
    if (part->kind == DescribedCluster::Kind::network_switch && is_pcie(part->text)) return false;
  }
  return a.kind == DescribedCluster::Kind::xpu || b.kind == DescribedCluster::Kind::xpu || carries(a.text) ||
         carries(b.text);
}

}  // namespace

BitRate usable_pcie(double gigatransfers, int lanes) {
  const double coded = gigatransfers <= 5 ? 0.8 : gigatransfers <= 32 ? 128.0 / 130 : 236.0 / 256;
  PcieParameters pcie;
  pcie.pcie_rate = static_cast<BitRate>(gigatransfers * lanes * coded + 0.5) * kGbps;
  return pcie.pcie().rate;
}

int pcie_lanes(std::string_view text) {
  for (const int lanes : {16, 8, 4, 2, 1}) {
    if (number_after(text, "x") == lanes) return lanes;
  }
  return 16;
}

std::int64_t compute_capability_of(const Part& part) {
  return part.kind == DescribedCluster::Kind::xpu
             ? kGenerations[generation_of_xpu(part.text)].compute_capability
             : 0;
}

void learn_generation(const DescribedCluster::Link& link, const Wire& wire, DescribedCluster& cluster) {
  const std::size_t generation = link.scale_up ? generation_of_nvlink(wire.text) : 0;
  if (generation == 0) return;
  for (const std::uint32_t end : {link.a, link.b}) {
    DescribedCluster::Node& node = cluster.nodes[end];
    if (node.kind == DescribedCluster::Kind::xpu && node.compute_capability == 0)
      node.compute_capability = kGenerations[generation].compute_capability;
  }
}

DescribedCluster::Link described(std::uint32_t at_a, std::uint32_t at_b, const Wire& wire, const Part& a,
                                 const Part& b, bool inside, const Place& place) {
  DescribedCluster::Link link{at_a,       at_b, inside && is_scale_up(wire, a, b), wire.rate, {},
                              wire.delay, place};
  if (link.rate || !inside) return link;
  const bool of_xpu = a.kind == DescribedCluster::Kind::xpu || b.kind == DescribedCluster::Kind::xpu;
  if (link.scale_up) {
    const std::string& xpu = a.kind == DescribedCluster::Kind::xpu ? a.text : b.text;
    const BitRate together = nvlink_rate(wire.text, xpu), each = xgmi_rate(xpu);
    if (together != 0) link.together = together;
    const bool direct = a.kind == DescribedCluster::Kind::xpu && b.kind == DescribedCluster::Kind::xpu;
    if (together == 0 && each != 0 && direct) link.rate = each;
  } else if (of_xpu && (a.kind == DescribedCluster::Kind::cpu || b.kind == DescribedCluster::Kind::cpu) &&
             has_any(wire.text, {"c2c"})) {
    link.rate = 8 * 225 * kGbps;
  } else if (a.kind != DescribedCluster::Kind::cpu || b.kind != DescribedCluster::Kind::cpu) {
    BitRate rate = pcie_rate(wire.text);
    for (const Part* part : {&a, &b}) {
      if (rate == 0 && is_pcie(part->text)) rate = pcie_rate(part->text);
    }
    if (rate != 0) link.rate = rate;
  }
  return link;
}

DescribedCluster::Kind kind_of(std::string_view choice) {
  return choice == "xpu"      ? DescribedCluster::Kind::xpu
         : choice == "cpu"    ? DescribedCluster::Kind::cpu
         : choice == "nic"    ? DescribedCluster::Kind::nic
         : choice == "switch" ? DescribedCluster::Kind::network_switch
                              : DescribedCluster::Kind::other;
}

DescribedCluster::Kind kind_of_custom(const std::string& type) {
  const std::string lowered = lower_case(type);
  if (lowered == "gpu" || lowered == "npu") return DescribedCluster::Kind::xpu;
  return lowered.ends_with("switch") ? DescribedCluster::Kind::network_switch : kind_of(lowered);
}

void rate_by_capability(DescribedCluster& cluster) {
  for (DescribedCluster::Link& link : cluster.links) {
    if (!link.scale_up || link.rate || link.together) continue;
    const DescribedCluster::Node &a = cluster.nodes[link.a], &b = cluster.nodes[link.b];
    const std::int64_t capability =
        a.kind == DescribedCluster::Kind::xpu ? a.compute_capability : b.compute_capability;
    const auto known = std::find_if(kGenerations.rbegin(), kGenerations.rend(), [&](const Generation& one) {
      return one.compute_capability <= capability;
    });
    if (known->nvlinks > 0) link.together = known->rate();
  }
}

}  // namespace netsim::infragraph
