// Writes the tree of the configuration as YAML: to_yaml() of config.h.
#include <string>
#include <string_view>

#include "sim/core/config_text.h"

namespace netsim {
namespace {

// Returns whether the text certainly reads back as the same text without quotes.
bool plain(const std::string& text) {
  constexpr std::string_view kInside =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-% ()";
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+";
  if (is_null_text(text) || text.find_first_not_of(kInside) != std::string::npos) return false;
  const bool number = text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9';
  if (kFirst.find(text[0]) == std::string_view::npos && !number) return false;
  return text.back() != ' ' && text != "..." && !text.starts_with("... ");
}

std::string quoted(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

void write_yaml(const ConfigNode& node, std::size_t indent, bool in_line, std::string& out);

// Writes the value after "key:" or "-": on the same line, or below, indented.
void write_value(const ConfigNode& node, std::size_t indent, bool after_dash, std::string& out) {
  const bool block = !node.entries().empty() || !node.items().empty();
  if (block && !after_dash) {
    out += '\n';
    write_yaml(node, indent, false, out);
  } else {
    out += ' ';
    write_yaml(node, indent, true, out);
  }
}

// `in_line` means that the first line's indentation is already written.
void write_yaml(const ConfigNode& node, std::size_t indent, bool in_line, std::string& out) {
  if (node.entries().empty() && node.items().empty()) {
    if (node.is_null()) out += "null";
    if (node.is_scalar()) out += !node.quoted() && plain(node.text()) ? node.text() : quoted(node.text());
    if (node.is_map()) out += "{}";
    if (node.is_sequence()) out += "[]";
    out += '\n';
    return;
  }
  for (const auto& [key, value] : node.entries()) {
    if (!in_line) out.append(indent, ' ');
    in_line = false;
    out += (plain(key) ? key : quoted(key)) + ":";
    write_value(value, indent + 2, false, out);
  }
  for (const ConfigNode& value : node.items()) {
    if (!in_line) out.append(indent, ' ');
    in_line = false;
    out += '-';
    write_value(value, indent + 2, true, out);
  }
}

}  // namespace

std::string to_yaml(const ConfigNode& node) {
  std::string out;
  write_yaml(node, 0, false, out);
  return out;
}

}  // namespace netsim
