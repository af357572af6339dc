// The chunks that the messages of a Chakra trace carry: those that the trace names, or those that follow from
// the dependencies of its messages.
#pragma once

#include <memory>
#include <optional>

#include "sim/collectives/programs/chakra_messages.h"

namespace netsim {

// Returns whether all sends and receives name their chunks.
bool says_chunks(const ChakraMessages& messages);
// Returns the named chunks as those of a collective of this kind; nullopt: they do not fit. Throws InputError
// for a wrong number.
std::optional<ChakraChunks> said_chunks(const ChakraMessages& messages, CollectiveKind kind);

// ChakraInterpretations: how a trace that names no chunks may be read as a collective of one kind.
class ChakraInterpretations {
 public:
  static constexpr int kWays = 2;
  // Throws InputError where a send waits for several receives, so that the message that it passes on is not
  // determined.
  ChakraInterpretations(const ChakraMessages& messages, CollectiveKind kind);
  ~ChakraInterpretations();
  // Returns the first interpretation of the trace, the second, ...; nullopt where an interpretation does not
  // fit.
  std::optional<ChakraChunks> chunks(int way);

 private:
  class Guess;
  std::unique_ptr<Guess> guess_;
};

}  // namespace netsim
