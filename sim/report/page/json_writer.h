// JsonWriter: writes JSON piece by piece, for documents that are too large to be built as a tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "sim/core/units.h"

namespace netsim {

// The text is compact and can stand in a script element of HTML: `<` is written as an escape. Bytes that are
// no UTF-8 are replaced. Numbers have as many digits as needed to read the same number back.
class JsonWriter {
 public:
  // Write a value: an element of the open array, or after key() a field of the open object.
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(double number);  // null if it is not finite
  void value(bool truth);
  template <class Integer>
  requires std::is_integral_v<Integer>
  void value(Integer number) { integer(static_cast<std::int64_t>(number)); }
  void null();

  void key(std::string_view name);
  template <class Value>
  void field(std::string_view name, const Value& of_field) {
    key(name);
    value(of_field);
  }
  // Write an object or array with what `body` writes.
  template <class Body>
  void object(const Body& body) {
    open('{');
    body();
    close('}');
  }
  template <class Body>
  void array(const Body& body) {
    open('[');
    body();
    close(']');
  }
  template <class Body>
  void object(std::string_view name, const Body& body) {
    key(name);
    object(body);
  }
  template <class Body>
  void array(std::string_view name, const Body& body) {
    key(name);
    array(body);
  }
  // Writes a field with an array of the elements of a list.
  template <class List>
  void list(std::string_view name, const List& elements) {
    array(name, [&] {
      for (const auto& element : elements) value(element);
    });
  }
  // Writes a field {"s": seconds, "text": "82.7 ms"}.
  void seconds(std::string_view name, double time);
  void seconds(std::string_view name, Time time) { seconds(name, to_seconds(time)); }

  const std::string& text() const { return text_; }

 private:
  void integer(std::int64_t number);
  void separate();
  void open(char bracket);
  void close(char bracket);

  std::string text_;
  bool first_ = true;  // no comma is needed before the next value or key
};

}  // namespace netsim
