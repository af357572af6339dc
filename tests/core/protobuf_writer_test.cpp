#include "sim/core/protobuf_writer.h"

#include <gtest/gtest.h>

#include "sim/core/protobuf_fields.h"

namespace netsim::protobuf_writer_test {
namespace {

// The bytes of the examples of protobuf.dev/programming-guides/encoding.
TEST(ProtobufWriter, WritesTheBytesOfTheGuide) {
  ProtobufWriter number, text, outer;
  number.varint(1, 150);
  EXPECT_EQ(number.text(), "\x08\x96\x01");
  text.bytes(2, "testing");
  EXPECT_EQ(text.text(), "\x12\x07testing");
  outer.message(3, number);
  EXPECT_EQ(outer.text(), "\x1a\x03\x08\x96\x01");
}

TEST(ProtobufWriter, WritesWhatProtobufFieldsReads) {
  ProtobufWriter writer;
  writer.varint(44, UINT64_MAX);
  writer.fixed64(47, 0x0123456789abcdef);
  writer.real(5, 0.5);
  ProtobufFields fields(writer.text());
  const auto varint = fields.next();
  ASSERT_TRUE(varint);
  EXPECT_EQ(varint->number, 44u);
  EXPECT_EQ(varint->value, UINT64_MAX);
  const auto fixed = fields.next();
  ASSERT_TRUE(fixed);
  EXPECT_EQ(fixed->number, 47u);
  EXPECT_EQ(fixed->content, std::string_view("\xef\xcd\xab\x89\x67\x45\x23\x01", 8));
  const auto real = fields.next();
  ASSERT_TRUE(real);
  EXPECT_EQ(real->content, std::string_view("\0\0\0\0\0\0\xe0\x3f", 8));
  EXPECT_TRUE(fields.at_end());
}

TEST(ProtobufWriter, BeginsAnewAfterClear) {
  ProtobufWriter writer;
  EXPECT_TRUE(writer.empty());
  writer.varint(1, 0);
  EXPECT_FALSE(writer.empty());
  writer.clear();
  EXPECT_TRUE(writer.empty());
}

}  // namespace
}  // namespace netsim::protobuf_writer_test
