// The runs of `--worth`: which there are, and how they are played one after another.
#pragma once

#include <functional>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/units.h"
#include "sim/report/worth.h"

namespace netsim {

// Returns the runs. `all` is the first. One without each field follows, for fields that the configured
// schedulers use and that are on. Then comes one for each such field and each age. Throws ConfigError if no
// scheduler is configured, or if none uses a field that is on.
std::vector<WorthRun> worth_runs(const ConfigNode& root, const std::vector<Time>& ages);

// Plays a run: lays its assignments over the configuration and calls record_worth().
using WorthPlayer = std::function<void(WorthRun& run)>;

// Plays all runs in their order. A ConfigError or InputError of a run after the first one makes that run
// "refused", with the message. Ends after a run that was interrupted; the others are then "not run".
void play_worth(Worth& worth, const WorthPlayer& play);

}  // namespace netsim
