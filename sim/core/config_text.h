// Limits and texts that the loader, the overlays and the tree of the configuration share (config.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sim/core/config.h"

namespace netsim {

// Limits of a document. Every node keeps its path, and YAML itself ends simple keys at 1024 characters.
inline constexpr std::size_t kMaxConfigBytes = 4 << 20;
inline constexpr std::size_t kMaxConfigDepth = 64;
inline constexpr std::size_t kMaxConfigKey = 128;    // bytes
inline constexpr std::size_t kMaxConfigPath = 1024;  // bytes

// Returns whether YAML reads the plain text as null.
bool is_null_text(std::string_view text);
// Returns the dotted path of an entry or item `name` of the node at `path`.
std::string joined_path(const std::string& path, const std::string& name);
// Returns a text for a message: its first 60 bytes, if it has more.
std::string shortened(std::string_view text);
// Returns the place of byte `offset` of a text.
Place text_place(const std::string& name, std::string_view text, std::size_t offset);
// Refuses control characters and bytes that are not UTF-8. yaml-cpp takes byte 4 for the end of the file and
// silently replaces bytes that are not UTF-8. Throws a ConfigError at the byte's place in `name`.
void check_characters(std::string_view text, const std::string& name);
// Throws a ConfigError at `place` if `what`, the document or the file, has more bytes than are allowed.
void check_config_size(std::size_t bytes, const Place& place, const char* what);

}  // namespace netsim
