// ProtobufWriter: writes the fields of one protobuf message without its schema (wire format:
// protobuf.dev/programming-guides/encoding). protobuf_fields.h reads them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace netsim {

class ProtobufWriter {
 public:
  // These append a field with this number.
  void varint(std::uint32_t number, std::uint64_t value) {
    append_varint(std::uint64_t{number} << 3);
    append_varint(value);
  }
  void fixed64(std::uint32_t number, std::uint64_t value) {
    append_varint(std::uint64_t{number} << 3 | 1);
    for (unsigned shift = 0; shift < 64; shift += 8) text_ += static_cast<char>(value >> shift & 0xff);
  }
  void real(std::uint32_t number, double value) { fixed64(number, std::bit_cast<std::uint64_t>(value)); }
  // Appends a text, or a message that is written already.
  void bytes(std::uint32_t number, std::string_view content) {
    append_varint(std::uint64_t{number} << 3 | 2);
    append_varint(content.size());
    text_ += content;
  }
  void message(std::uint32_t number, const ProtobufWriter& content) { bytes(number, content.text_); }

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  // Removes all fields and keeps the memory.
  void clear() { text_.clear(); }

 private:
  void append_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7f) | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

}  // namespace netsim
