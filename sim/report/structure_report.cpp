#include "sim/report/structure_report.h"

#include <fmt/format.h>

#include <iterator>

#include "sim/core/config.h"

namespace netsim {
namespace {

constexpr std::size_t kIndent = 19;

std::string rate_text(BitRate rate) {
  return rate == 0 ? "0 b/s" : human_count(static_cast<double>(rate)) + "b/s";
}

void line(std::string& text, const char* label, const std::string& what, std::size_t width) {
  fmt::format_to(std::back_inserter(text), "{:<{}}{}\n", label, kIndent,
                 wrapped(what, kIndent, kIndent, width));
}

std::string tier_text(const Structure::Tier& tier) {
  std::string text =
      fmt::format("tier {}: {} {} of {} ports, {} down", tier.tier, tier.switches,
                  tier.switches == 1 ? "switch" : "switches", tier.radix, rate_text(tier.down));
  if (tier.across > 0) text += ", " + rate_text(tier.across) + " between them";
  if (tier.up > 0)
    text += fmt::format(", {} up (oversubscription {:.4g})", rate_text(tier.up), tier.oversubscription());
  return text;
}

std::string links_text(const Structure& structure, bool in_host) {
  std::string text;
  for (const Structure::Links& links : structure.links) {
    if (links.in_host != in_host) continue;
    text += fmt::format("{}{} x {} {}", text.empty() ? "" : ", ", links.count, format_rate(links.rate),
                        to_string(links.kind));
  }
  return text;
}

std::string distance_text(const Structure& structure) {
  std::string text = fmt::format("at most {}, {:.3g} on average{}", structure.diameter, structure.mean_hops,
                                 structure.sampled ? " (of a sample)" : "");
  if (structure.unreachable_pairs > 0)
    text += fmt::format("; no route through the fabric for {} ordered pairs of NICs",
                        structure.unreachable_pairs);
  return text;
}

std::string optical_text(const Structure& structure) {
  std::string text = fmt::format("{}, {} circuits", structure.optical_switches, structure.circuits);
  if (structure.configurations > 1) {
    text += fmt::format(" at the start, {} in up to {} configurations of each", structure.possible_circuits,
                        structure.configurations);
  }
  return text;
}

}  // namespace

std::string render_structure(const Structure& structure, std::size_t width) {
  std::string text;
  line(text, "cluster",
       fmt::format("{} hosts, {} GPUs, {} NICs", structure.hosts, structure.gpus, structure.nics), width);
  for (std::size_t i = 0; i < structure.tiers.size(); ++i)
    line(text, i == 0 ? "switches" : "", tier_text(structure.tiers[i]), width);
  line(text, "links", links_text(structure, false), width);
  const std::string inside = links_text(structure, true);
  if (!inside.empty()) line(text, "links in hosts", inside, width);
  if (structure.optical_switches > 0) line(text, "optical switches", optical_text(structure), width);
  line(text, "hops between NICs", distance_text(structure), width);
  if (!structure.channels.empty()) line(text, "virtual channels", structure.channels, width);
  const double part = structure.injection > 0 ? 2 * static_cast<double>(structure.bisection) /
                                                    static_cast<double>(structure.injection)
                                              : 0;
  line(text, "bisection",
       fmt::format("{}, {:.3g} of the rate of half of the NICs", rate_text(structure.bisection), part),
       width);
  if (structure.failing_links > 0) {
    line(text, "faults",
         fmt::format("{} links fail; while all of them are down the bisection is {}", structure.failing_links,
                     rate_text(structure.bisection_left)),
         width);
  }
  line(text, "cables", fmt::format("{}, {} transceivers", structure.cables, structure.transceivers()), width);
  return text;
}

}  // namespace netsim
