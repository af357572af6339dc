// XmlFile: an XML file as elements with their places, so that errors can name them. pugixml is used in
// xml.cpp only.
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

// XmlElement: an element of an XmlFile, which must outlive it. One constructed without an element converts to
// false, and has neither attributes nor children.
class XmlElement {
 public:
  XmlElement() = default;
  explicit operator bool() const { return node_ != nullptr; }

  std::string name() const;
  bool has(const char* attribute) const;
  // Returns the attribute's text, or "" if there is no such attribute.
  std::string text(const char* attribute) const;
  // Returns the attribute as an integer in the range, or `absent` if it is missing. Throws InputError if it
  // is no such integer, or is missing without a value for `absent`.
  std::int64_t integer(const char* attribute, Range<std::int64_t> range,
                       std::optional<std::int64_t> absent = std::nullopt) const;

  // Returns the first child with that name.
  XmlElement child(const char* name) const;
  // Return the child elements in the order of the file: all of them, or those with that name.
  std::vector<XmlElement> children() const;
  std::vector<XmlElement> children(const char* name) const;

  // Returns where the element begins, for later messages about it.
  Place place() const;
  // Throws the InputError "file:line:column: <name>: message".
  [[noreturn]] void fail(const std::string& message) const;

 private:
  friend class XmlFile;
  XmlElement(const XmlFile* file, pugi::xml_node_struct* node) : file_(file), node_(node) {}

  const XmlFile* file_ = nullptr;
  pugi::xml_node_struct* node_ = nullptr;
};

class XmlFile {
 public:
  // Throws InputError if `text` is no XML; `path` names it in messages.
  XmlFile(std::string text, std::string path);
  ~XmlFile();
  XmlFile(const XmlFile&) = delete;
  XmlFile& operator=(const XmlFile&) = delete;

  // Returns the outermost element. Throws InputError if it has another name.
  XmlElement root(const char* name) const;
  // Throws an InputError at a byte of the text.
  [[noreturn]] void fail(std::ptrdiff_t offset, const std::string& message) const;
  Place place(std::ptrdiff_t offset) const;

 private:
  std::string text_, path_;
  std::unique_ptr<pugi::xml_document> document_;
};

}  // namespace netsim
