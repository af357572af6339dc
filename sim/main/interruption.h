// Signal handlers. They belong to the program, not to the library, because they may end the process.
#pragma once

namespace netsim {

// Installs the handlers. SIGINT, SIGTERM and SIGHUP (unless it was ignored) end the process at once with exit
// code 130 and leave no partial files. SIGPIPE and SIGXFSZ are ignored, so that writes fail instead. SIGABRT
// ends it with exit code 1, or 4 if an allocation has failed.
void catch_signals();

// Returns whether a signal has arrived. After the first call the caller must call it often and end with a
// report. A signal then ends the process only if no call follows in time; a second signal ends it at once.
bool interrupted();

// Ends the process with exit code 130 after the report, because destroying a large simulation takes another
// second.
[[noreturn]] void end_interrupted();

}  // namespace netsim
