// ProtobufFields: divides a protobuf message into its fields without its schema (wire format:
// protobuf.dev/programming-guides/encoding).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace netsim {

class ProtobufFields {
 public:
  struct Field {
    std::uint64_t number = 0;
    unsigned type = 0;        // 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
    std::uint64_t value = 0;  // of a varint
    // Bytes of a field of type 1, 2 or 5, as many as exist of them. `value` is the number announced.
    std::string_view content;
  };

  explicit ProtobufFields(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  // Returns the next field. Returns nothing at the end, or if the bytes are no field.
  std::optional<Field> next() {
    Field field;
    const auto tag = varint();
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    field.number = *tag >> 3;
    field.type = static_cast<unsigned>(*tag & 7);
    if (field.type == 0) return with_value(field);
    if (field.type == 2) return with_content(field);
    const std::size_t width = field.type == 1 ? 8 : field.type == 5 ? 4 : 0;
    if (width == 0 || rest_.size() < width) return std::nullopt;
    field.content = take(width);
    return field;
  }
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }
  // Returns the next `count` bytes, or as many as are left.
  std::string_view take(std::uint64_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::optional<Field> with_value(Field field) {
    const auto value = varint();
    if (!value) return std::nullopt;
    field.value = *value;
    return field;
  }
  std::optional<Field> with_content(Field field) {
    const auto size = varint();
    if (!size) return std::nullopt;
    field.value = *size;
    field.content = take(*size);
    return field;
  }
  std::string_view rest_;
};

}  // namespace netsim
