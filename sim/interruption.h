// Signal handlers. They belong to the program, not to the library, because they may end the process.
#pragma once

namespace netsim {

// Installs the handlers. SIGINT, SIGTERM and SIGHUP (unless it was ignored) end the process at once with exit
// code 130, whatever it does, and leave no partial files. SIGPIPE and SIGXFSZ are ignored, so that writing
// fails instead. Whoever cannot go on (SIGABRT) has exit code 1, or 4 where an allocation has failed.
void catch_signals();

// Returns whether a signal has come. From the first call on the caller looks often and ends with a report.
// So a signal ends the process only where no look follows in time; a second one ends it at once.
bool interrupted();

// Ends the process with exit code 130 after the report: destroying a large simulation takes a second more.
[[noreturn]] void end_interrupted();

}  // namespace netsim
