#include "sim/transport/network_counters.h"

namespace netsim {
namespace {

using N = NetworkCounters;
using P = PortCounters;
using Info = NetworkCounterInfo;

constexpr std::array<Info, 20> kNetworkCounters{{
    {.key = "drops", .field = &N::drops, .of_ports = &P::drops, .hashed = 2},
    {.key = "no_route", .field = &N::no_route, .of_ports = &P::no_route},
    {.key = "ecn_marks", .field = &N::ecn_marks, .of_ports = &P::ecn_marks, .hashed = 3},
    {.key = "cnps", .field = &N::cnps, .of_ports = &P::cnps, .hashed = 4},
    {.key = "pfc_pauses", .field = &N::pfc_pauses, .of_ports = &P::pauses, .hashed = 5},
    {.key = "max_queue_bytes",
     .field = &N::max_queue,
     .sum = CounterSum::largest,
     .of_ports = &P::max_queue,
     .ports = Info::Ports::switches,
     .hashed = 12},
    {.key = "max_host_queue_bytes",
     .field = &N::max_host_queue,
     .sum = CounterSum::largest,
     .of_ports = &P::max_queue,
     .ports = Info::Ports::hosts},
    {.key = "pfc_resumes", .field = &N::pfc_resumes, .hashed = 6},
    {.key = "credit_stalls", .field = &N::credit_stalls, .of_ports = &P::credit_stalls},
    {.key = "circuit_changes", .field = &N::circuit_changes},
    {.key = "lost", .field = &N::lost, .of_ports = &P::lost},
    {.key = "retransmissions", .field = &N::retransmissions, .hashed = 7},
    {.key = "retransmission_timeouts", .field = &N::timeouts},
    {.key = "bytes_delivered", .field = &N::bytes_delivered, .hashed = 10},
    {.key = nullptr, .field = &N::packets, .hashed = 1},
    {.key = nullptr, .field = &N::flows_started, .hashed = 8},
    {.key = nullptr, .field = &N::flows_done, .hashed = 9},
    {.key = nullptr, .field = &N::bytes_sent, .hashed = 11},
    {.key = nullptr, .field = &N::bytes_cancelled},
    {.key = nullptr, .field = &N::longest_timeouts, .sum = CounterSum::largest},
}};

}  // namespace

std::span<const NetworkCounterInfo> network_counters() { return kNetworkCounters; }

}  // namespace netsim
