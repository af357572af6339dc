// Calls something that is nowhere, so the system cannot load it.
#include "sim/core/plugin.h"

NETSIM_PLUGIN

int nowhere_to_be_found();

int answer() { return nowhere_to_be_found(); }
