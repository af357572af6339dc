// Tests that dispatch and combine move exactly the tokens of their counts, each once if the algorithm says
// so. Both ends of every connection agree on sizes. The time is that of the slowest ports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <memory>

#include "sim/collectives/execution/executor.h"
#include "sim/core/errors.h"
#include "sim/workload/routing/token_section.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/test_size.h"

namespace netsim::tokens_test {
namespace {

using test::make_plan;
using test::PacketCollectives;
using test::request_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr BitRate kRate = 8 * kGbps;  // 1 ns a byte
constexpr std::uint32_t kPerHost = 4;

struct Tokens {
  std::int64_t per_rank = 100;
  std::int64_t experts = 0;  // 0: three a rank
  std::uint32_t seed = 1;
};
// Drawn with all experts alike.
BlockCounts drawn(TokenSection section, std::uint32_t ranks, std::uint32_t seed) {
  section.router = parse_config("{kind: zipf, exponent: 0, seed: " + std::to_string(seed) + "}", "test.yaml");
  return count_tokens(section, ranks, ConfigNode());
}
BlockCounts counts_of(std::uint32_t ranks, const Tokens& tokens) {
  TokenSection section;
  section.per_rank = tokens.per_rank;
  section.bytes = 1000;
  section.experts.count = tokens.experts == 0 ? 3 * ranks : tokens.experts;
  section.experts.top_k = std::min<std::int64_t>(section.experts.count, 4);
  section.ranks_per_host = kPerHost;
  return drawn(section, ranks, tokens.seed);
}

std::string section_of(const std::string& algorithm) {
  return "dispatch: " + algorithm + "\ncombine: " + algorithm + "\n";
}

struct Played {
  Played(const BlockCounts& counts, CollectiveKind kind, const std::string& section,
         FakeEndpoint::Link inside, FakeEndpoint::Link between)
      : members(everyone(counts.members())),
        endpoint(loop, counts.members(), kPerHost, inside, between),
        done(loop),
        executor(Executor::create(loop, endpoint, parse_config(section, "test.yaml"), 100'000)) {
    executor->set_listener(&done);
    auto request = request_of(kind, members, counts.busiest());
    request.counts = &counts;
    for (request.index = 0; request.index < members.size(); ++request.index) {
      executor->start(members[request.index], request);
      promised.push_back(executor->scale_out_bytes(members[request.index], request));
    }
    loop.run();
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> moved() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> bytes;
    for (const auto& [message, time] : endpoint.sent) {
      if (!message.credit) bytes[{message.source, message.destination}] += message.bytes;
    }
    return bytes;
  }

  EventLoop loop;
  std::vector<GpuId> members;
  FakeEndpoint endpoint;
  Completions done;
  std::unique_ptr<Executor> executor;
  std::vector<Bytes> promised;
};

// Between hosts each token goes once, and only between ranks of the same number. Within a host a rank gets
// tokens from all hosts through its neighbours.
TEST(Deepep, SendsEachTokenOnceToAHostAndThereToItsRanks) {
  EXPECT_TRUE(rc::check("bytes between any two ranks are as counted", [] {
    const std::uint32_t hosts = *rc::gen::inRange<std::uint32_t>(2, 5), ranks = hosts * kPerHost;
    const BlockCounts counts = counts_of(
        ranks, {*rc::gen::element<std::int64_t>(1, 7, 300), 0, *rc::gen::inRange<std::uint32_t>(1, 1000)});
    const auto kind = *rc::gen::element(CollectiveKind::dispatch, CollectiveKind::combine);
    const std::string channels = std::to_string(*rc::gen::element(1, 3, 12));
    const std::string buffer = *rc::gen::element<std::string>("32", "128");
    const Played played(
        counts, kind,
        section_of("{kind: deepep, group: 4, channels: " + channels + ", buffer: " + buffer + "}"),
        {kRate, 0}, {kRate, 1000});
    RC_ASSERT(played.done.done.size() == ranks);
    RC_ASSERT(played.executor->waiting(1).empty());
    std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> expected;
    const auto add = [&](std::uint32_t from, std::uint32_t to, Bytes bytes) {
      if (from == to || bytes == 0) return;
      expected[kind == CollectiveKind::dispatch ? std::pair(from, to) : std::pair(to, from)] += bytes;
    };
    for (std::uint32_t owner = 0; owner < ranks; ++owner) {
      for (std::uint32_t host = 0; host < hosts; ++host) {
        const std::uint32_t counterpart = host * kPerHost + owner % kPerHost;
        add(owner, counterpart, counts.to_host(owner, host));
        for (std::uint32_t to = host * kPerHost; to < (host + 1) * kPerHost; ++to) {
          if (to != counterpart) add(counterpart, to, counts.of(owner, to));
        }
      }
    }
    RC_ASSERT(played.moved() == expected);
    std::vector<Bytes> out(ranks, 0);
    for (const auto& [message, time] : played.endpoint.sent) {
      RC_ASSERT(message.credit || message.bytes % 1000 == 0);  // whole tokens
      if (played.endpoint.reach(message.source, message.destination) == Reach::scale_out)
        out[message.source] += message.bytes;
    }
    RC_ASSERT(out == played.promised);
  }));
}

TEST(Deepep, OnOneHostSendsEachTokenOnceToARank) {
  const BlockCounts counts = counts_of(4, {});
  for (const auto kind : {CollectiveKind::dispatch, CollectiveKind::combine}) {
    const Played played(counts, kind, section_of("deepep"), {kRate, 0}, {});
    const auto moved = played.moved();
    for (std::uint32_t from = 0; from < 4; ++from) {
      for (std::uint32_t to = 0; to < 4; ++to) {
        if (from == to) continue;
        const bool out = kind == CollectiveKind::dispatch;
        EXPECT_EQ(moved.at(out ? std::pair(from, to) : std::pair(to, from)), counts.of(from, to));
      }
    }
  }
}

TEST(DeepepLowLatency, SendsAMessageForEachTokenAndExpert) {
  const BlockCounts counts = counts_of(8, {50, 16});
  for (const auto kind : {CollectiveKind::dispatch, CollectiveKind::combine}) {
    const Played played(counts, kind, section_of("deepep_low_latency"), {kRate, 0}, {kRate, 1000});
    std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> copies;
    for (const auto& [message, time] : played.endpoint.sent) {
      EXPECT_EQ(message.bytes, 1000);
      copies[{message.source, message.destination}] += 1000;
    }
    Bytes more = 0;  // than once to a rank
    for (std::uint32_t from = 0; from < 8; ++from) {
      for (std::uint32_t to = 0; to < 8; ++to) {
        if (from == to) continue;
        const bool out = kind == CollectiveKind::dispatch;
        EXPECT_EQ((copies[out ? std::pair(from, to) : std::pair(to, from)]), counts.copies(from, to));
        more += counts.copies(from, to) - counts.of(from, to);
      }
    }
    EXPECT_GT(more, 0);
  }
}

// If NVLink costs nothing, the NICs are never idle. The time is that of the busiest NIC plus its latencies,
// and the path of the last chunk over NVLink.
TEST(Deepep, TakesTheTimeOfTheBusiestNic) {
  const BlockCounts counts = counts_of(16, {2000});
  Bytes most = 0;
  for (std::uint32_t owner = 0; owner < 16; ++owner) {
    Bytes sum = 0;
    for (std::uint32_t host = 0; host < 4; ++host) sum += host == owner / 4 ? 0 : counts.to_host(owner, host);
    most = std::max(most, sum);
  }
  const Played dispatched(
      counts, CollectiveKind::dispatch,
      section_of("{kind: deepep, group: 4, hop_latency: 0 s, hop_latency_net: 0 s, warp_rate: 0 bps, buffer: "
                 "100000}"),
      {0, 0}, {kRate, 0});
  EXPECT_EQ(dispatched.done.last(), most * kNanosecond);
  const Played late(
      counts, CollectiveKind::dispatch,
      section_of("{kind: deepep, group: 4, hop_latency: 1 us, hop_latency_net: 10 us, warp_rate: 0 "
                 "bps, buffer: 100000}"),
      {0, 0}, {kRate, 0});
  // The barriers before, one message between hosts and one within.
  EXPECT_EQ(late.done.last(), most * kNanosecond + 2 * 11 * kMicrosecond + 11 * kMicrosecond);
}

// Tokens of a skewed router: the weight of an expert falls with its number.
BlockCounts skewed(std::uint32_t ranks, const std::string& exponent) {
  TokenSection section;
  section.per_rank = 300;
  section.bytes = 1000;
  section.experts.count = 3 * ranks;
  section.experts.top_k = 4;
  section.ranks_per_host = kPerHost;
  section.router = parse_config("{kind: zipf, exponent: " + exponent + "}", "test.yaml");
  return count_tokens(section, ranks, ConfigNode());
}

// Returns the most bytes that a NIC sends to other hosts. A combine returns what a dispatch has brought.
Bytes busiest_nic(const BlockCounts& counts, CollectiveKind kind, bool each_copy) {
  std::vector<Bytes> sent(counts.members(), 0);
  for (std::uint32_t owner = 0; owner < counts.members(); ++owner) {
    for (std::uint32_t to = 0; to < counts.members(); ++to) {
      if (owner / kPerHost == to / kPerHost) continue;
      const std::uint32_t sender = kind == CollectiveKind::dispatch ? owner : to;
      if (each_copy) {
        sent[sender] += counts.copies(owner, to);
      } else if (owner % kPerHost == to % kPerHost) {
        sent[sender] += counts.to_host(owner, to / kPerHost);
      }
    }
  }
  return *std::max_element(sent.begin(), sent.end());
}

// In a combine the GPUs with the popular experts send most. The more they do, the longer it takes.
TEST(Tokens, SkewedOnesTakeTheTimeOfTheBusiestNic) {
  for (const bool low_latency : {false, true}) {
    const std::string section = section_of(
        low_latency ? "{kind: deepep_low_latency, base_latency: 0 s, hop_latency: 0 s, hop_latency_net: 0 s}"
                    : "{kind: deepep, group: 4, hop_latency: 0 s, hop_latency_net: 0 s, warp_rate: 0 bps, "
                      "combine_warp_rate: 0 bps, buffer: 100000, nvl_buffer: 100000}");
    Time combine = 0;
    for (const char* exponent : {"0", "0.5", "1", "2"}) {
      const BlockCounts counts = skewed(16, exponent);
      for (const auto kind : {CollectiveKind::dispatch, CollectiveKind::combine}) {
        const Played played(counts, kind, section, {0, 0}, {kRate, 0});
        EXPECT_EQ(played.done.last(), busiest_nic(counts, kind, low_latency) * kNanosecond) << exponent;
        if (kind != CollectiveKind::combine) continue;
        EXPECT_GT(played.done.last(), combine) << exponent;
        combine = played.done.last();
      }
    }
  }
}

// All tokens are rank 7's, and each of them was at all four ranks of host 0. So ranks 0 to 2 send to rank 3,
// and rank 3 sends the sums to rank 7, in 1 us each. It runs ahead of rank 7 by the buffer between hosts. And
// ranks 0 to 2 run ahead of it by the buffer within their host.
TEST(Deepep, GpusRunAheadOfASlowOneByTheBuffers) {
  constexpr int kTokens = 500;
  std::vector<Bytes> rows(64, 0), to_hosts(16, 0);
  for (std::uint32_t rank = 0; rank < kPerHost; ++rank) rows[7 * 8 + rank] = Bytes{kTokens} * 1000;
  to_hosts[7 * 2] = Bytes{kTokens} * 1000;
  const BlockCounts counts(8, rows, {.token = 1000, .host = kPerHost, .copies = rows, .to_hosts = to_hosts});
  for (const int buffer : {2, 64}) {
    for (const int inside : {16, 256}) {
      const std::string kernels =
          "{kind: deepep, group: 4, hop_latency: 0 s, hop_latency_net: 0 s, combine_warp_rate: 0 bps, "
          "channels: 1, chunk: 1, buffer: " +
          std::to_string(buffer) + ", nvl_buffer: " + std::to_string(inside) + "}";
      const Played played(counts, CollectiveKind::combine, section_of(kernels), {0, 0}, {kRate, 0});
      const auto us = [&](std::uint32_t rank) {
        return static_cast<double>(played.done.of(rank, 5).ended) / kMicrosecond;
      };
      EXPECT_NEAR(us(7), kTokens, .01 * kTokens);
      EXPECT_NEAR(us(3), kTokens - buffer, .01 * kTokens);
      for (std::uint32_t rank = 0; rank < 3; ++rank)
        EXPECT_NEAR(us(rank), kTokens - buffer - inside, .01 * kTokens) << buffer << " " << inside;
    }
  }
}

// Sizes and numbers of messages agree only where both ends count the same.
TEST(Tokens, BothEndsOfAConnectionCountTheSame) {
  for (const char* algorithm : {"direct", "{kind: deepep, group: 4}", "{kind: deepep, group: 1}",
                                "{kind: deepep, group: 8}", "deepep_low_latency"}) {
    for (const auto kind : {CollectiveKind::dispatch, CollectiveKind::combine}) {
      for (const std::uint32_t ranks : {4U, 8U, 24U}) {
        const auto plan = make_plan(algorithm, kind, ranks);
        using End = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
        std::map<End, std::vector<Counted>> sent, received;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          for (std::uint32_t block = 0; block < plan->blocks(rank); ++block) {
            for (std::uint32_t index = 0; index < plan->steps(rank, block); ++index) {
              const Step step = plan->step(rank, block, index);
              if (sends(step.kind))
                sent[{rank, block, step.to.rank, step.to.block}].push_back(plan->counted(rank, step));
              if (receives(step.kind))
                received[{step.from.rank, step.from.block, rank, block}].push_back(plan->counted(rank, step));
            }
          }
        }
        EXPECT_EQ(sent, received) << algorithm << " " << to_string(kind) << " " << ranks;
      }
    }
  }
}

// H800 on rails of 400 Gb/s, as configs/collectives/deepep.yaml has them. Seconds of the whole.
double seconds_on_h800(std::uint32_t hosts, CollectiveKind kind, const std::string& algorithm,
                       const BlockCounts& counts, const std::string& host = "hgx_h800") {
  const std::string leaves = std::to_string(std::max(hosts, 2U));
  PacketCollectives h800(
      "topology: {kind: rail_optimized, hosts_per_leaf: " + leaves + ", units: 1, spines: " + leaves +
      ", link: infiniband, rate: 400 Gbps}\nhost: " + host + "\nhosts: " + std::to_string(hosts) +
      "\nnetwork: {switch: {flow_control: credits, marker: none}}\ntransport: {framing: "
      "infiniband, congestion_control: none, acknowledge: {every: 1}, queue_pairs: 12}\n"
      "collectives: {dispatch: " +
      algorithm + ", combine: " + algorithm + "}\n");
  const auto members = everyone(8 * hosts);
  auto request = request_of(kind, members, counts.busiest());
  request.counts = &counts;
  return static_cast<double>(h800.run(request)) / kSecond;
}

BlockCounts deepseek_tokens(std::uint32_t hosts, std::int64_t per_rank, Bytes bytes, std::int64_t experts) {
  TokenSection section;
  section.per_rank = per_rank;
  section.bytes = bytes;
  section.experts.count = experts;
  return drawn(section, 8 * hosts, 1);
}

// DeepEP's README: 128 tokens, us. The kernel's other time is taken from the first of them.
TEST(DeepepLowLatency, TakesWhatDeepepMeasured) {
  const struct {
    std::uint32_t hosts;
    double dispatch, combine;
  } measured[] = {{1, 77, 114}, {2, 118, 195}, {4, 155, 273}};
  for (const auto& one : measured) {
    const auto time_of = [&](CollectiveKind kind, Bytes bytes) {
      return 1e6 * seconds_on_h800(one.hosts, kind, "deepep_low_latency",
                                   deepseek_tokens(one.hosts, 128, bytes, 288));
    };
    EXPECT_NEAR(time_of(CollectiveKind::dispatch, 7408) / one.dispatch, 1, .1) << one.hosts;
    EXPECT_NEAR(time_of(CollectiveKind::combine, 14336) / one.combine, 1, .1) << one.hosts;
  }
}

// DeepEP's normal kernels reach the bandwidths that DeepEP measured with 4,096 tokens over two and four
// hosts. They are in GB/s, where a token counts once for each host that it goes to.
TEST(Deepep, TakesWhatDeepepMeasuredBetweenHosts) {
  const auto rate = [](std::uint32_t hosts, CollectiveKind kind, Bytes bytes, const std::string& algorithm) {
    const BlockCounts counts = deepseek_tokens(hosts, 4096, bytes, 256);
    return static_cast<double>(counts.busiest()) / 1e9 / seconds_on_h800(hosts, kind, algorithm, counts);
  };
  EXPECT_NEAR(rate(2, CollectiveKind::dispatch, 7392, "deepep") / 43, 1, .05);
  if (test::full_size()) {
    EXPECT_NEAR(rate(2, CollectiveKind::combine, 14336, "deepep") / 43, 1, .05);
    EXPECT_NEAR(rate(4, CollectiveKind::dispatch, 7392, "deepep") / 58, 1, .1);
  }
  // Between two hosts it is the warps that pass tokens on: neither NVLink nor NICs.
  EXPECT_GT(rate(2, CollectiveKind::dispatch, 7392, "{kind: deepep, warp_rate: 0 bps}") / 43, 1.25);
  EXPECT_NEAR(rate(2, CollectiveKind::dispatch, 7392, "{kind: deepep, warp_rate: 6.138 Gbps}") / 21.5, 1,
              .07);
}

// Within one host, in GB/s of pairs of token and rank. The kernels' share of NVLink is from H20, whose NVLink
// is that of H100 (DeepEP's issue 16).
TEST(Deepep, TakesWhatDeepepMeasuredWithinAHost) {
  const auto rate = [](const std::string& host, CollectiveKind kind, Bytes bytes) {
    const BlockCounts counts = deepseek_tokens(1, 4096, bytes, 256);
    return static_cast<double>(counts.busiest()) / 1e9 / seconds_on_h800(1, kind, "deepep", counts, host);
  };
  EXPECT_NEAR(rate("dgx_h100", CollectiveKind::dispatch, 7392) / 337, 1, .02);
  EXPECT_NEAR(rate("hgx_h800", CollectiveKind::dispatch, 7392) / 153, 1, .05);
  EXPECT_NEAR(rate("hgx_h800", CollectiveKind::combine, 14336) / 158, 1, .06);
}

// Kernels of SGLang 0.5.6 on H100 (configs/collectives/deepep_h100.yaml).
constexpr const char* kH100Dispatch = "{kind: deepep, warp_rate: 27.6 Gbps, host_rate: 95 Gbps, channels: ";
constexpr const char* kH100Combine =
    "{kind: deepep, combine_warp_rate: 21.5 Gbps, combine_host_rate: 73 Gbps, channels: ";

// AIConfigurator's table: what 1,024 or 512 tokens take more than one, in us, by hosts and multiprocessors.
// Few multiprocessors are limited by the warps that pass tokens on over two hosts, and by those that prepare
// them for hosts over four. Many are limited by NICs.
TEST(Deepep, TakesWhatWasMeasuredOnH100ByMultiprocessors) {
  struct Row {
    std::uint32_t hosts, channels;
    std::int64_t tokens;
    double dispatch, combine;
  };
  std::vector<Row> rows = {{2, 2, 512, 511.1 - 26.8, 1305 - 49.0}, {2, 12, 1024, 235.4 - 27.3, 540.8 - 50.9}};
  if (test::full_size()) {
    rows.push_back({4, 2, 512, 633.4 - 38.7, 1606 - 61.1});
    rows.push_back({4, 6, 1024, 537.8 - 38.9, 1175 - 60.1});
    rows.push_back({4, 12, 1024, 496.9 - 37.8, 967 - 60.6});
  }
  for (const Row& row : rows) {
    const auto us = [&](CollectiveKind kind, const std::string& kernels, Bytes bytes, std::int64_t tokens) {
      return 1e6 * seconds_on_h800(row.hosts, kind, kernels + std::to_string(row.channels) + ", chunk: 8}",
                                   deepseek_tokens(row.hosts, tokens, bytes, 256), "dgx_h100");
    };
    const auto more = [&](CollectiveKind kind, const std::string& kernels, Bytes bytes) {
      return us(kind, kernels, bytes, row.tokens) - us(kind, kernels, bytes, 1);
    };
    EXPECT_NEAR(more(CollectiveKind::dispatch, kH100Dispatch, 7392) / row.dispatch, 1, .2)
        << row.hosts << " hosts, " << row.channels << " channels";
    EXPECT_NEAR(more(CollectiveKind::combine, kH100Combine, 14336) / row.combine, 1, .2)
        << row.hosts << " hosts, " << row.channels << " channels";
  }
}

// Where a channel prepares no more than 8 Gb/s for two hosts, each connection has 4 Gb/s: 2 us a token.
TEST(Deepep, ConnectionsShareTheRateAtWhichAChannelPrepares) {
  const BlockCounts counts = counts_of(2 * kPerHost, {.per_rank = 400});
  Bytes most = 0;
  for (std::uint32_t rank = 0; rank < counts.members(); ++rank)
    most = std::max(most, counts.to_host(rank, rank < kPerHost ? 1 : 0));
  for (const int channels : {1, 2, 4}) {
    const std::string kernels =
        "{kind: deepep, group: 4, hop_latency: 0 s, hop_latency_net: 0 s, warp_rate: "
        "0 bps, chunk: 1, buffer: 4096, host_rate: 8 Gbps, channels: " +
        std::to_string(channels) + "}";
    const Played played(counts, CollectiveKind::dispatch, section_of(kernels), {100 * kGbps, 0},
                        {100 * kGbps, 0});
    const double preparing = static_cast<double>(most) * 2000 / channels;  // in ps
    EXPECT_NEAR(static_cast<double>(played.loop.now()) / preparing, 1, .1) << channels;
  }
}

// All tokens of a rank for the others leave it at `local_rate`, whichever ranks they are for.
TEST(DeepepLowLatency, StoresInAHostAtTheRateOfAllWarps) {
  for (const double exponent : {0.0, 1.0}) {
    TokenSection section;
    section.per_rank = 200;
    section.bytes = 1000;
    section.experts.count = 12;
    section.experts.top_k = 4;
    section.ranks_per_host = kPerHost;
    section.router = parse_config("{kind: zipf, exponent: " + std::to_string(exponent) + "}", "test.yaml");
    const BlockCounts counts = count_tokens(section, kPerHost, ConfigNode());
    Bytes most = 0;
    for (std::uint32_t rank = 0; rank < kPerHost; ++rank) {
      Bytes sent = 0;
      for (std::uint32_t to = 0; to < kPerHost; ++to) sent += to == rank ? 0 : counts.copies(rank, to);
      most = std::max(most, sent);
    }
    const Played played(counts, CollectiveKind::dispatch,
                        section_of("{kind: deepep_low_latency, base_latency: 0 s, hop_latency: 0 s, "
                                   "local_rate: 4 Gbps}"),
                        {kRate * 8, 0}, {kRate, 0});
    const double storing = static_cast<double>(most) * 2000;  // in ps
    EXPECT_NEAR(static_cast<double>(played.loop.now()) / storing, 1, .02) << exponent;
  }
}

TEST(Deepep, RefusesCountsOfOtherHosts) {
  const BlockCounts counts = counts_of(16, {});
  EXPECT_THAT(
      [&] { Played(counts, CollectiveKind::dispatch, section_of("{kind: deepep, group: 8}"), {}, {}); },
      ThrowsMessage<InputError>(
          HasSubstr("'deepep' sends each token once to 8 ranks, the workload counts it once for 4")));
  EXPECT_THAT([] { make_plan("{kind: deepep, group: 8}", CollectiveKind::combine, 12); },
              ThrowsMessage<InputError>(HasSubstr("needs a multiple of its group, 8")));
  EXPECT_THAT([] { test::make_algorithm("{kind: deepep, chunk: 16, buffer: 31}"); },
              ThrowsMessage<ConfigError>(HasSubstr("31 tokens are too few for chunks of 16 (allowed: 32")));
}

}  // namespace
}  // namespace netsim::tokens_test
