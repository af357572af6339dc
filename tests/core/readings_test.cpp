// Are values with units read exactly, written exactly, and refused with a helpful message?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <string>

#include "sim/core/config.h"
#include "sim/core/parameters.h"

namespace netsim::readings_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ConfigNode value(const std::string& text) { return ConfigNode::scalar(text, {"f.yaml", 3, 9, "a.b"}); }

template <class Read>
std::string error_of(Read read, const ConfigNode& node) {
  try {
    (void)read(node);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}
template <class Read>
std::string error_of(Read read, const std::string& text) {
  return error_of(read, value(text));
}

TEST(Readings, Time) {
  EXPECT_EQ(read_time(value("1 us")), kMicrosecond);
  EXPECT_EQ(read_time(value("300ns")), 300 * kNanosecond);
  EXPECT_EQ(read_time(value("1.5 s")), 1500 * kMillisecond);
  EXPECT_EQ(read_time(value(".5 ms")), 500 * kMicrosecond);
  EXPECT_EQ(read_time(value("0.3 ns")), 300);
  EXPECT_EQ(read_time(value("2 \u00b5s")), 2 * kMicrosecond);
  EXPECT_EQ(read_time(value("2 \u03bcs")), 2 * kMicrosecond);
  EXPECT_EQ(read_time(value("0")), 0);
  EXPECT_EQ(read_time(value("0.0")), 0);
  EXPECT_EQ(read_time(value("9223372036854775807 ps")), INT64_MAX);
  EXPECT_EQ(read_time(value("9223372.036854775807 s")), INT64_MAX);
  EXPECT_EQ(read_time(value("1.000000000000000000000000000000000000000000000000 us")), kMicrosecond);
}

TEST(Readings, Bytes) {
  EXPECT_EQ(read_bytes(value("32 MB")), 32'000'000);
  EXPECT_EQ(read_bytes(value("32 MiB")), 33'554'432);
  EXPECT_EQ(read_bytes(value("1.5 KiB")), 1536);
  EXPECT_EQ(read_bytes(value("1 KB")), 1000);
  EXPECT_EQ(read_bytes(value("1kB")), 1000);
  EXPECT_EQ(read_bytes(value("2 TiB")), 2199023255552);
  EXPECT_EQ(read_bytes(value("0.00000095367431640625 MiB")), 1);
}

TEST(Readings, Rate) {
  for (const char* text : {"400 Gbps", "400 Gb/s", "400 Gbit/s", "50 GB/s", "0.4 Tbps", "400000000000 bps"}) {
    EXPECT_EQ(read_rate(value(text)), 400 * kGbps) << text;
  }
  EXPECT_EQ(read_rate(value("300 GB/s")), 2400 * kGbps);
  EXPECT_EQ(read_rate(value("1 GiB/s")), 8589934592);
}

TEST(Readings, UnitsThatAreWrongAreNamed) {
  EXPECT_EQ(
      error_of(read_rate, "400"),
      "f.yaml:3:9: a.b: '400' needs a unit: bps, Kbps, Mbps, Gbps, Tbps or B/s, KB/s, MB/s, GB/s, TB/s");
  EXPECT_EQ(error_of(read_time, "400 Gbps"),
            "f.yaml:3:9: a.b: '400 Gbps': 'Gbps' is a unit of a rate, not of a time (a time has s, ms, us, "
            "ns or ps)");
  EXPECT_THAT(error_of(read_rate, "400 GB"), HasSubstr("'GB' is a unit of a size, not of a rate"));
  EXPECT_THAT(error_of(read_rate, "400 gbps"), HasSubstr("did you mean 'Gbps'?"));
  EXPECT_THAT(error_of(read_rate, "400 GBps"), Not(HasSubstr("did you mean"))) << "8 times as much";
  EXPECT_THAT(error_of(read_bytes, "1 M"), HasSubstr("'M' is not a unit"));
  EXPECT_THAT(error_of(read_time, "1 us us"), HasSubstr("'us us' is not a unit"));
}

TEST(Readings, QuantitiesThatAreNotWholeOrDoNotFit) {
  EXPECT_THAT(error_of(read_time, "0.5 ps"), HasSubstr("not a whole number of ps"));
  EXPECT_THAT(error_of(read_bytes, "0.3 KiB"), HasSubstr("not a whole number of B"));
  EXPECT_THAT(error_of(read_rate, "1.0000000001 Gbps"), HasSubstr("not a whole number of bps"));
  EXPECT_THAT(error_of(read_time, "9223372036854775808 ps"),
              HasSubstr("too large: at most 9223372.036854775807 s"));
  EXPECT_THAT(error_of(read_time, std::string(1000, '9') + " s"), HasSubstr("too large"));
  EXPECT_THAT(error_of(read_time, "0." + std::string(1000, '9') + " s"), HasSubstr("too many digits"));
  EXPECT_THAT(error_of(read_time, "-1 us"), HasSubstr("is negative: a time is 0 or more"));
  EXPECT_THAT(error_of(read_time, "1e3 us"), HasSubstr("exponents are not allowed"));
  EXPECT_THAT(error_of(read_time, "010 us"), HasSubstr("leading zero"));
}

TEST(Readings, QuantitiesThatAreNone) {
  for (const char* text :
       {"", " ", "abc", "1. us", ". us", "us", "inf", ".inf", "nan", "never", "+1 us", "0x10 ns", "- us"}) {
    EXPECT_THAT(error_of(read_time, text),
                AllOf(StartsWith("f.yaml:3:9: a.b: '"), Not(HasSubstr("no error"))))
        << text;
  }
}

TEST(Readings, AnotherShapeThanAScalar) {
  EXPECT_EQ(
      error_of(read_time, ConfigNode::map({"f.yaml", 1, 1, "a"})),
      "f.yaml:1:1: a: keys and values are given: a time with its unit (s, ms, us, ns or ps) is expected");
  EXPECT_THAT(error_of(read_integer, ConfigNode::sequence({})),
              HasSubstr("a list is given: an integer is expected"));
  EXPECT_THAT(error_of(read_text, ConfigNode()), HasSubstr("no value is given: text is expected"));
}

TEST(Readings, Integer) {
  EXPECT_EQ(read_integer(value("0")), 0);
  EXPECT_EQ(read_integer(value("-5")), -5);
  EXPECT_EQ(read_integer(value("-9223372036854775808")), INT64_MIN);
  EXPECT_EQ(read_integer(value("9223372036854775807")), INT64_MAX);
  for (const char* text :
       {"", "-", "+1", "1.0", "1e3", "0x10", "1_000", "1 000", "yes", "abc", "--1", "1 "}) {
    EXPECT_EQ(error_of(read_integer, text), std::string("f.yaml:3:9: a.b: '") + text + "' is not an integer");
  }
  EXPECT_THAT(error_of(read_integer, "010"), HasSubstr("octal"));
  EXPECT_THAT(error_of(read_integer, "9223372036854775808"), HasSubstr("too large"));
  EXPECT_THAT(error_of(read_integer, "-9223372036854775809"), HasSubstr("too small"));
}

TEST(Readings, Real) {
  EXPECT_EQ(read_real(value("0.25")), 0.25);
  EXPECT_EQ(read_real(value("-1e-3")), -1e-3);
  EXPECT_EQ(read_real(value("1/8")), 0.125);
  EXPECT_EQ(read_real(value("-1/256")), -1.0 / 256);
  EXPECT_EQ(read_real(value("1 / 8")), 0.125);
  EXPECT_EQ(read_real(value("20 %")), 0.2);
  EXPECT_EQ(read_real(value("0.1%")), 0.001) << "rounded once";
  EXPECT_EQ(read_real(value(".5")), 0.5);
  EXPECT_EQ(read_real(value("7")), 7);
  for (const char* text : {"", "-", "nan", ".nan", "inf", "-.inf", "1e", "1e+", "0x10", "5 us", "1/", "/2",
                           "1/2/3", "%", "1e2 %", "1 %%", "1."}) {
    EXPECT_THAT(error_of(read_real, text), HasSubstr("is not a number")) << text;
  }
  EXPECT_THAT(error_of(read_real, "1e400"), HasSubstr("too large or too small"));
  EXPECT_THAT(error_of(read_real, "1/0"), HasSubstr("divides by zero"));
  EXPECT_THAT(error_of(read_real, "010.5"), HasSubstr("leading zero"));
}

TEST(Readings, Bool) {
  EXPECT_TRUE(read_bool(value("true")));
  EXPECT_FALSE(read_bool(value("false")));
  for (const char* text : {"yes", "no", "on", "off", "True", "1", ""}) {
    EXPECT_THAT(error_of(read_bool, text), HasSubstr("write true or false")) << text;
  }
}

TEST(Readings, WritersPickTheNicestUnit) {
  EXPECT_EQ(format_time(kMicrosecond), "1 us");
  EXPECT_EQ(format_time(1500 * kNanosecond), "1.5 us");
  EXPECT_EQ(format_time(0), "0 ps");
  EXPECT_EQ(format_time(-kNanosecond), "-1 ns");
  EXPECT_EQ(format_time(INT64_MIN), "-9223372.036854775808 s");
  EXPECT_EQ(format_bytes(4096), "4 KiB");
  EXPECT_EQ(format_bytes(32 * kMegabyte), "32 MB");
  EXPECT_EQ(format_bytes(4158), "4158 B");
  EXPECT_EQ(format_rate(400 * kGbps), "400 Gbps");
  EXPECT_EQ(format_rate(2400 * kGbps), "2.4 Tbps");
}

// Values of all magnitudes, round ones among them.
std::int64_t any_quantity() {
  const auto bits = *rc::gen::arbitrary<std::uint64_t>();
  const auto shift = *rc::gen::inRange(1, 64);
  auto result = static_cast<std::int64_t>(bits >> shift);
  for (int i = *rc::gen::inRange(0, 10); i > 0 && result < INT64_MAX / 10; --i) result *= 10;
  return result;
}

TEST(ReadingsProperty, WhatIsWrittenReadsBackExactly) {
  EXPECT_TRUE(rc::check("format, then read", [] {
    const std::int64_t given = any_quantity();
    RC_ASSERT(read_time(value(format_time(given))) == given);
    RC_ASSERT(read_bytes(value(format_bytes(given))) == given);
    RC_ASSERT(read_rate(value(format_rate(given))) == given);
    RC_ASSERT(read_integer(value(std::to_string(given))) == given);
    const double real = static_cast<double>(given) / 65536;
    RC_ASSERT(read_real(value(format_real(real))) == real);
  }));
}

TEST(ReadingsProperty, AnyRealReadsBackExactly) {
  EXPECT_TRUE(rc::check("format_real, then read_real", [] {
    const double real = *rc::gen::arbitrary<double>();
    RC_PRE(std::isfinite(real));
    RC_ASSERT(read_real(value(format_real(real))) == real);
  }));
}

TEST(ReadingsProperty, ShiftedDecimalsAreTheSameValue) {
  EXPECT_TRUE(rc::check("n ns = n/1000 us", [] {
    const auto whole = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
    const auto part = *rc::gen::inRange<std::int64_t>(0, 1000);
    std::string digits = std::to_string(1000 + part).substr(1);
    RC_ASSERT(read_time(value(std::to_string(whole) + "." + digits + " us")) ==
              whole * kMicrosecond + part * kNanosecond);
    RC_ASSERT(read_bytes(value(std::to_string(whole) + "." + digits + " KB")) == whole * 1000 + part);
  }));
}

}  // namespace
}  // namespace netsim::readings_test
