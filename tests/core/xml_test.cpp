// Tests that an element reports its content, and the place of errors in it.
#include "sim/core/xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/errors.h"
#include "tests/support/mutations.h"

namespace netsim::xml_test {
namespace {

using ::testing::StartsWith;

constexpr const char* kShelf = R"(<?xml version="1.0"?>
<!-- of tests -->
<shelf width="80">
  <book id="2" title="A &amp; B"/>
  text <box/>
  <book id="x"/>
</shelf>
)";

template <class Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(Xml, GivesElementsAndAttributes) {
  const XmlFile file(kShelf, "shelf.xml");
  const XmlElement shelf = file.root("shelf");
  EXPECT_EQ(shelf.name(), "shelf");
  EXPECT_EQ(shelf.integer("width", {1, 80}), 80);
  EXPECT_EQ(shelf.integer("height", {1, 80}, 7), 7);
  EXPECT_EQ(shelf.children().size(), 3U);
  ASSERT_EQ(shelf.children("book").size(), 2U);
  EXPECT_EQ(shelf.child("book").text("title"), "A & B");
  EXPECT_TRUE(shelf.child("book").has("id"));
  EXPECT_FALSE(shelf.child("box").has("id"));
  EXPECT_EQ(shelf.child("box").text("id"), "");
}

TEST(Xml, AnElementThatIsNotThereHasNothing) {
  const XmlFile file(kShelf, "shelf.xml");
  const XmlElement none = file.root("shelf").child("lamp");
  EXPECT_FALSE(none);
  EXPECT_EQ(none.text("id"), "");
  EXPECT_EQ(none.integer("id", {0, 9}, 3), 3);
  EXPECT_TRUE(none.children().empty());
}

TEST(Xml, SaysWhereSomethingIsWrong) {
  const XmlFile file(kShelf, "shelf.xml");
  const XmlElement shelf = file.root("shelf");
  EXPECT_EQ(error_of([&] {
              shelf.children("book")[1].integer("id", {0, 9});
            }),
            "shelf.xml:6:4: <book>: id is 'x'; allowed: an integer from 0 to 9");
  EXPECT_EQ(error_of([&] {
              shelf.integer("width", {1, 79});
            }),
            "shelf.xml:3:2: <shelf>: width is '80'; allowed: an integer from 1 to 79");
  EXPECT_EQ(error_of([&] {
              shelf.integer("height", {1, 79});
            }),
            "shelf.xml:3:2: <shelf>: 'height' is missing; allowed: an integer from 1 to 79");
  EXPECT_EQ(error_of([&] { file.root("desk"); }),
            "shelf.xml:1:1: expected the element 'desk', 'shelf' was given");
  EXPECT_THAT(error_of([] { XmlFile("<a>\n  <b></a>", "b.xml"); }), StartsWith("b.xml:2:"));
  EXPECT_THAT(error_of([] { XmlFile("", "b.xml"); }), StartsWith("b.xml:1:1: no XML: "));
}

TEST(Xml, RefusesWhatIsBroken) {
  test::expect_sane(kShelf, [](const std::string& text) { XmlFile(text, "shelf.xml").root("shelf"); });
}

}  // namespace
}  // namespace netsim::xml_test
