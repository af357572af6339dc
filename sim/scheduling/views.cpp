#include "sim/scheduling/views.h"

#include <array>
#include <string>
#include <utility>

namespace netsim {
namespace {

struct NamedField {
  ViewField field;
  ViewSettings ViewTable::*settings;
  std::string_view name;
  std::string_view doc;
};

constexpr std::array<NamedField, kViewFields> kNamedFields{{
    {ViewField::topology, &ViewTable::topology, "topology",
     "the ports that a flow passes, its other paths, and the rates of links"},
    {ViewField::loads, &ViewTable::loads, "loads", "the share of each link's rate that packets used"},
    {ViewField::queues, &ViewTable::queues, "queues", "the bytes that wait at each port"},
    {ViewField::rates, &ViewTable::rates, "rates",
     "the rate at which congestion control lets each flow send"},
    {ViewField::failures, &ViewTable::failures, "failures", "links and hosts that are down"},
    {ViewField::circuits, &ViewTable::circuits, "circuits", "circuits that are set up"},
    {ViewField::stalls, &ViewTable::stalls, "stalls",
     "which communication waits for which peer, and for how long"},
    {ViewField::sizes, &ViewTable::sizes, "sizes",
     "the bytes of each flow: all of them, and those that are left"},
    {ViewField::coming, &ViewTable::coming, "coming",
     "communications that will begin, with their expected times"},
    {ViewField::deadlines, &ViewTable::deadlines, "deadlines",
     "the times by which communications and jobs should end"},
    {ViewField::slack, &ViewTable::slack, "slack",
     "how much later a communication may end without a delay of its job"},
    {ViewField::phases, &ViewTable::phases, "phases", "when in an iteration a job computes and sends"},
    {ViewField::jobs, &ViewTable::jobs, "jobs",
     "how much of each job is done, and how long an iteration takes"},
}};

const Parameters<ViewSettings>& settings_parameters() {
  using P = ViewSettings;
  static const auto parameters =
      Parameters<P>()
          .flag("on", &P::on, "whether schedulers see this information at all")
          .time("age", &P::age, {0, 10'000 * kSecond},
                "a decision sees values that are at least so old; 0 is the present")
          .time("every", &P::every, {0, 10'000 * kSecond},
                "the values are taken at multiples of this time; 0 takes them at each scheduling interval");
  return parameters;
}

}  // namespace

std::string_view name_of(ViewField field) { return kNamedFields[static_cast<std::size_t>(field)].name; }

const ViewSettings& ViewTable::operator[](ViewField field) const {
  return this->*kNamedFields[static_cast<std::size_t>(field)].settings;
}

std::vector<ViewField> fields_in(ViewFields set) {
  std::vector<ViewField> fields;
  fields.reserve(kViewFields);
  for (const NamedField& named : kNamedFields) {
    if (set.has(named.field)) fields.push_back(named.field);
  }
  return fields;
}

ViewFields ViewTable::on(ViewFields set) const {
  ViewFields result;
  for (const ViewField field : fields_in(set)) {
    if ((*this)[field].on) result = result | ViewFields{field};
  }
  return result;
}

const Parameters<ViewTable>& view_parameters() {
  static const auto parameters = [] {
    Parameters<ViewTable> all;
    for (const NamedField& named : kNamedFields)
      all.section(std::string(named.name), named.settings, settings_parameters(), std::string(named.doc));
    return all;
  }();
  return parameters;
}

}  // namespace netsim
