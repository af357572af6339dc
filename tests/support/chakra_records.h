// Records of Chakra execution traces, byte by byte, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace netsim::test {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value > 0x7f; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}
inline std::string integer_field(std::uint64_t field, std::uint64_t value) {
  return varint(field << 3) + varint(value);
}
inline std::string bytes_field(std::uint64_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}
inline std::string record(const std::string& message) { return varint(message.size()) + message; }

// ChakraRecord: a node of schema 1.0.0.
struct ChakraRecord {
  std::uint64_t id = 0;
  std::uint64_t type = 4;
  std::vector<std::uint64_t> data = {}, control = {};
  std::vector<std::pair<std::string, std::uint64_t>> numbers = {};
  std::vector<std::pair<std::string, std::string>> texts = {};
  std::uint64_t start = 0, duration = 0;
  std::string name = "node";
  std::string inputs = {};  // values of its inputs

  std::string bytes() const {
    std::string out = integer_field(1, id) + bytes_field(2, name) + integer_field(3, type);
    std::string packed;
    for (const std::uint64_t other : control) packed += varint(other);
    if (!packed.empty()) out += bytes_field(4, packed);
    for (const std::uint64_t other : data) out += integer_field(5, other);  // unpacked, as proto3 may be too
    out += integer_field(6, start) + integer_field(7, duration);
    if (!inputs.empty()) out += bytes_field(8, bytes_field(1, inputs));
    std::uint64_t field = 7;  // each of the types of integers that writers use
    for (const auto& [key, value] : numbers) {
      out += bytes_field(10, bytes_field(1, key) + integer_field(field, value));
      field = field == 13 ? 7 : field + 2;
    }
    for (const auto& [key, value] : texts)
      out += bytes_field(10, bytes_field(1, key) + bytes_field(29, value));
    return record(out);
  }
};

}  // namespace netsim::test
