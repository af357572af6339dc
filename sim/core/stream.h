// Stream: the streams of a rank on which its tasks run.
#pragma once

#include <array>
#include <cstdint>

namespace netsim {

// Stream: the CUDA-like streams of a rank. Tasks of one stream run in program order. The exposed time of a
// communication is reported under its stream. `io` goes to and from storage. `offload` goes to and from the
// host's memory, and includes the work of its CPUs.
enum class Stream : std::uint8_t { compute, tp, pp, dp, ep, cp, io, offload };
inline constexpr int kStreams = 8;
inline constexpr std::array kCommunicationStreams{Stream::tp, Stream::pp, Stream::dp,     Stream::ep,
                                                  Stream::cp, Stream::io, Stream::offload};
const char* to_string(Stream stream);

}  // namespace netsim
