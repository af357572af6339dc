// A file in XML as elements that know their place, so that whoever reads one can say where it is wrong.
// pugixml stays inside xml.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/parameters.h"

namespace pugi {
struct xml_node_struct;
class xml_document;
}  // namespace pugi

namespace netsim {

class XmlFile;

// An element of an XmlFile, which must outlive it. One that was made without an element is false, and has
// neither attributes nor children.
class XmlElement {
 public:
  XmlElement() = default;
  explicit operator bool() const { return node_ != nullptr; }

  std::string name() const;
  bool has(const char* attribute) const;
  // "" where there is no such attribute.
  std::string text(const char* attribute) const;
  // InputError where it is no integer in the range, or absent and no value stands for that.
  std::int64_t integer(const char* attribute, Range<std::int64_t> range,
                       std::optional<std::int64_t> absent = std::nullopt) const;

  // The first child of that name.
  XmlElement child(const char* name) const;
  // Elements only, in the order of the file; all of them, or those of that name.
  std::vector<XmlElement> children() const;
  std::vector<XmlElement> children(const char* name) const;

  // Where it begins, for messages about it later on.
  Place place() const;
  // The InputError "file:line:column: <name>: message".
  [[noreturn]] void fail(const std::string& message) const;

 private:
  friend class XmlFile;
  XmlElement(const XmlFile* file, pugi::xml_node_struct* node) : file_(file), node_(node) {}

  const XmlFile* file_ = nullptr;
  pugi::xml_node_struct* node_ = nullptr;
};

class XmlFile {
 public:
  // InputError for what is no XML; `path` stands for it in messages.
  XmlFile(std::string text, std::string path);
  ~XmlFile();
  XmlFile(const XmlFile&) = delete;
  XmlFile& operator=(const XmlFile&) = delete;

  // The outermost element; InputError where it has another name.
  XmlElement root(const char* name) const;
  // The InputError at a byte of the text.
  [[noreturn]] void fail(std::ptrdiff_t offset, const std::string& message) const;
  Place place(std::ptrdiff_t offset) const;

 private:
  std::string text_, path_;
  std::unique_ptr<pugi::xml_document> document_;
};

}  // namespace netsim
