#include "sim/core/xml.h"

#include <algorithm>
#include <charconv>
#include <pugixml.hpp>
#include <system_error>
#include <utility>

#include "sim/core/input_file.h"

namespace netsim {
namespace {

pugi::xml_node element(pugi::xml_node_struct* node) { return pugi::xml_node(node); }

}  // namespace

std::string XmlElement::name() const { return element(node_).name(); }

bool XmlElement::has(const char* attribute) const { return !element(node_).attribute(attribute).empty(); }

std::string XmlElement::text(const char* attribute) const {
  return element(node_).attribute(attribute).value();
}

std::int64_t XmlElement::integer(const char* attribute, Range<std::int64_t> range,
                                 std::optional<std::int64_t> absent) const {
  const std::string allowed =
      "allowed: an integer from " + std::to_string(range.minimum) + " to " + std::to_string(range.maximum);
  if (!has(attribute)) {
    if (absent) return *absent;
    fail("'" + std::string(attribute) + "' is missing; " + allowed);
  }
  const std::string given = text(attribute);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (error != std::errc() || end != given.data() + given.size() || value < range.minimum ||
      value > range.maximum) {
    fail(std::string(attribute) + " is '" + given + "'; " + allowed);
  }
  return value;
}

XmlElement XmlElement::child(const char* name) const {
  return {file_, element(node_).child(name).internal_object()};
}

std::vector<XmlElement> XmlElement::children() const {
  std::vector<XmlElement> result;
  for (const pugi::xml_node node : element(node_).children()) {
    if (node.type() == pugi::node_element) result.push_back({file_, node.internal_object()});
  }
  return result;
}

std::vector<XmlElement> XmlElement::children(const char* name) const {
  std::vector<XmlElement> result;
  for (const pugi::xml_node node : element(node_).children(name))
    result.push_back({file_, node.internal_object()});
  return result;
}

Place XmlElement::place() const {
  Place place = file_->place(element(node_).offset_debug());
  place.path = "<" + name() + ">";
  return place;
}

void XmlElement::fail(const std::string& message) const {
  file_->fail(element(node_).offset_debug(), "<" + name() + ">: " + message);
}

XmlFile::XmlFile(std::string text, std::string path)
    : text_(std::move(text)), path_(std::move(path)), document_(std::make_unique<pugi::xml_document>()) {
  const pugi::xml_parse_result parsed = document_->load_buffer(text_.data(), text_.size());
  if (!parsed) fail(parsed.offset, std::string("no XML: ") + parsed.description());
}

XmlFile::~XmlFile() = default;

XmlElement XmlFile::root(const char* name) const {
  const pugi::xml_node node = document_->child(name);
  if (node.empty()) {
    const std::string given = document_->document_element().name();
    fail(0, "expected the element '" + std::string(name) + "'" +
                (given.empty() ? "" : ", '" + given + "' was given"));
  }
  return {this, node.internal_object()};
}

Place XmlFile::place(std::ptrdiff_t offset) const {
  return place_in(text_, static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), path_);
}

void XmlFile::fail(std::ptrdiff_t offset, const std::string& message) const {
  throw InputError(place(offset), message);
}

}  // namespace netsim
