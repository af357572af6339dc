// Does config.h read what it should, refuse what it should, and say where?
#include "sim/core/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_size.h"

namespace netsim::config_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The message of the ConfigError that `action` throws; "" if it throws none.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "one line: " << error.what();
    return error.what();
  }
  return "";
}
std::string parse_error(const std::string& text) {
  return error_of([&] { (void)parse_config(text, "x.yaml"); });
}
std::string overlay_error(const std::string& yaml, const std::string& assignment) {
  ConfigNode root = parse_config(yaml, "x.yaml");
  return error_of([&] { overlay_config(root, assignment); });
}

bool same(const ConfigNode& a, const ConfigNode& b) {
  if (a.kind() != b.kind() || a.text() != b.text()) return false;
  if (a.entries().size() != b.entries().size() || a.items().size() != b.items().size()) return false;
  for (std::size_t i = 0; i < a.entries().size(); ++i) {
    if (a.entries()[i].first != b.entries()[i].first) return false;
    if (!same(a.entries()[i].second, b.entries()[i].second)) return false;
  }
  for (std::size_t i = 0; i < a.items().size(); ++i) {
    if (!same(a.items()[i], b.items()[i])) return false;
  }
  return true;
}

TEST(Config, ReadsATree) {
  const ConfigNode root = parse_config("a: 1 us\nb:\n  - x\n  - {c: 'quoted', d: ~}\ne:\nf: []\n", "x.yaml");
  ASSERT_TRUE(root.is_map());
  ASSERT_EQ(root.entries().size(), 4U);
  EXPECT_EQ(root.find("a")->text(), "1 us");
  EXPECT_FALSE(root.find("a")->quoted());
  const ConfigNode& item = root.find("b")->items().at(1);
  EXPECT_TRUE(item.find("c")->quoted());
  EXPECT_TRUE(item.find("d")->is_null());
  EXPECT_TRUE(root.find("e")->is_null());
  EXPECT_TRUE(root.find("f")->is_sequence());
  EXPECT_EQ(root.find("nothing"), nullptr);
}

TEST(Config, NodesKnowTheirPlace) {
  const ConfigNode root = parse_config("a:\n  - x\n  - {c: 5}\nnone:\nlast: 1\n", "dir/x.yaml");
  EXPECT_EQ(root.find("a")->items().at(1).find("c")->place().to_string(), "dir/x.yaml:3:9: a.1.c");
  EXPECT_EQ(root.find("a")->items().at(1).find("c")->key_place().to_string(), "dir/x.yaml:3:6: a.1.c");
  EXPECT_EQ(root.find("none")->place().to_string(), "dir/x.yaml:4:1: none");
}

TEST(Config, AnEmptyFileIsNull) {
  for (const char* text : {"", "\n", "# a comment\n", "---\n", "\xef\xbb\xbf# byte order mark\n"}) {
    EXPECT_TRUE(parse_config(text, "x.yaml").is_null()) << text;
  }
}

TEST(Config, RefusesDuplicatesWithBothPlaces) {
  EXPECT_EQ(parse_error("a: 1\nb: 2\na: 3\n"),
            "x.yaml:3:1: a: key 'a' is given twice, the first time at x.yaml:1:1");
  EXPECT_EQ(parse_error("o: {b: 1, b: 2}"),
            "x.yaml:1:11: o.b: key 'b' is given twice, the first time at x.yaml:1:5");
}

TEST(Config, RefusesWhatYamlHasAndWeDoNot) {
  EXPECT_THAT(parse_error("a: &x [ *x ]"), AllOf(StartsWith("x.yaml:1:4: a: "), HasSubstr("anchor")));
  EXPECT_THAT(parse_error("a: *x"), StartsWith("x.yaml:1:4: "));
  EXPECT_THAT(parse_error("a: {b: 1}\nc:\n  <<: {d: 2}\n"),
              AllOf(StartsWith("x.yaml:3:3: c: "), HasSubstr("merge key")));
  EXPECT_THAT(parse_error("a: 1\n---\nb: 2\n"), AllOf(StartsWith("x.yaml:2"), HasSubstr("second document")));
  EXPECT_THAT(parse_error("a: !!str 1"), AllOf(StartsWith("x.yaml:1:4: a: "), HasSubstr("tag")));
  EXPECT_THAT(parse_error("? [a, b]\n: 1\n"), HasSubstr("as a key"));
  EXPECT_THAT(parse_error(": 1\n"), HasSubstr("key is missing"));
  EXPECT_THAT(parse_error("'': 1\n"), HasSubstr("empty key"));
  EXPECT_THAT(parse_error("a:\n\t- b\n"), AllOf(StartsWith("x.yaml:2:1: "), HasSubstr("tab")));
  EXPECT_THAT(parse_error("a: b: c"), AllOf(StartsWith("x.yaml:1:5: "), HasSubstr("not YAML")));
  EXPECT_THAT(parse_error("# c\n%TAG ! x\n---\na: 1\n"),
              AllOf(StartsWith("x.yaml:2:1: "), HasSubstr("directive")));
  EXPECT_THAT(parse_error("a: ! 'x'"), HasSubstr("tag"));
  EXPECT_THAT(parse_error("a: 1\n...\nb: 2\n"), HasSubstr("follows the end of the document"));
  EXPECT_NE(parse_error("{a: 1}}"), "");
  EXPECT_NE(parse_error("a: [1]]"), "");
  EXPECT_NE(parse_error("a:\n  b: 1\n c: 2\n"), "");
  EXPECT_NE(parse_error("a: 1\n b: 2\n"), "");
  EXPECT_NE(parse_error("a: [1\nb: 2\n"), "");
}

// yaml-cpp takes what follows an open quote, to the end of the file, for its text.
TEST(Config, RefusesQuotesThatAreNotClosed) {
  for (const char* quote : {"'", "\""}) {
    for (const char* rest : {"", "\n", "open", "open\n", "open\nb: 1\n", "\\\\", "''"}) {
      EXPECT_THAT(parse_error(std::string("\u00b5: ") + quote + rest),
                  AllOf(StartsWith("x.yaml:1:"), HasSubstr(":")))
          << quote << rest;
    }
  }
  EXPECT_EQ(parse_error("\u00b5: 'open\nb: 1\n"),
            "x.yaml:1:5: \u00b5: the quote that opens here is never closed");
  EXPECT_THAT(parse_error("'open: 1\n"), HasSubstr("never closed"));
  const ConfigNode root =
      parse_config("\xef\xbb\xbf\u00b5: 'it''s'\r\nb: \"a \\\" \\\\\"\n\"c\": ''\n", "x.yaml");
  EXPECT_EQ(root.find("\u00b5")->text(), "it's");
  EXPECT_EQ(root.find("b")->text(), "a \" \\");
  EXPECT_EQ(root.find("c")->text(), "");
}

// yaml-cpp takes byte 4 for the end of the file, and would ignore the rest without a message.
TEST(Config, RefusesControlCharactersAndWhatIsNotUtf8) {
  EXPECT_THAT(parse_error("a: 1\nb\x04: 2\n"),
              AllOf(StartsWith("x.yaml:2:2: "), HasSubstr("control character 4")));
  EXPECT_THAT(parse_error(std::string("a: \0", 4)), HasSubstr("control character 0"));
  for (const char* bytes :
       {"\xff", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\x80"}) {
    EXPECT_EQ(parse_error(std::string("a: ") + bytes), "x.yaml:1:4: this is not UTF-8 text");
  }
  EXPECT_EQ(parse_config("a: \u00b5\u20ac\U0001f600", "x.yaml").find("a")->text(), "\u00b5\u20ac\U0001f600");
}

TEST(Config, RefusesDocumentsThatAreTooLarge) {
  EXPECT_THAT(parse_error(std::string((4 << 20) + 1, ' ')), HasSubstr("4 MiB"));
  std::string many = "[";
  for (int i = 0; i < 100'000; ++i) many += "1,";
  EXPECT_THAT(parse_error(many + "]"), HasSubstr("more than 100000 values"));
}

TEST(Config, RefusesDeepNesting) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(parse_error(nested(64)), "");
  EXPECT_THAT(parse_error(nested(65)), HasSubstr("deeper than 64"));
  EXPECT_NE(parse_error(nested(10'000)), "");
  std::string block;
  for (std::size_t i = 0; i < 70; ++i) block += std::string(i, ' ') + "a:\n";
  EXPECT_THAT(parse_error(block), HasSubstr("deeper than 64"));
}

// Large documents that could make a parser recurse, or look back over and over.
TEST(Config, HostileDocumentsEndSoon) {
  const auto repeated = [](const std::string& piece) {
    std::string text;
    while (text.size() + piece.size() <= test::by_size(1U << 20, 1U << 18, 1U << 17)) text += piece;
    return text;
  };
  for (const char* piece : {"[",      "{",   "- ",   "? ", "a: ", "'",   "\"",    "[a, ",   "{a: ",  "a",
                            " ",      "\n",  "#",    "!",  "&a ", "%",   "---\n", "\"\\\n", "- a\n", "|\n",
                            "k: v\n", "a\n", "a:\n", "|",  ">",   "'' ", ", ",    "]",      "\r",    "\\"}) {
    SCOPED_TRACE(piece);
    (void)parse_error(repeated(piece));  // returns: the test's time limit is what a hang would meet
  }
}

TEST(Config, AWrongFileIsAnError) {
  EXPECT_THROW((void)load_config("does/not/exist.yaml"), IoError);
  EXPECT_THROW((void)load_config(std::filesystem::temp_directory_path().string()), IoError);
  try {
    (void)load_config("does/not/exist.yaml");
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), "'does/not/exist.yaml': cannot be read: No such file or directory");
  }
}

TEST(Config, AFileOverTheLimitIsAnError) {
  const auto path = std::filesystem::temp_directory_path() / "netsim_config_test_large.yaml";
  std::ofstream(path) << std::string((4 << 20) + 1, '#');
  EXPECT_THAT(error_of([&] { (void)load_config(path.string()); }), HasSubstr("4 MiB"));
  std::filesystem::remove(path);
}

TEST(Config, UnknownKeysNameTheNearest) {
  const ConfigNode root = parse_config("transport:\n  mtuu: 1\n", "x.yaml");
  EXPECT_EQ(error_of([&] {
              root.find("transport")->allow_keys({"mtu", "window"});
            }),
            "x.yaml:2:3: transport.mtuu: unknown key 'mtuu', did you mean 'mtu'? (allowed: mtu, window)");
  EXPECT_EQ(error_of([&] { root.find("transport")->allow_keys({"window", "mtuu"}); }), "");
  EXPECT_EQ(error_of([&] {
              root.find("transport")->find("mtuu")->allow_keys({"a", "b"});
            }),
            "x.yaml:2:9: transport.mtuu: '1' stands where keys and values are expected (allowed: a, b)");
  EXPECT_EQ(error_of([&] { ConfigNode().allow_keys({}); }), "");
}

TEST(Config, MessagesShowWhatTheyQuoteOnOneLine) {
  const Place place{"x\x1b[31m.yaml", 2, 3, "a"};
  EXPECT_STREQ(ConfigError(place, "'b\n\xc2\x9b\xff'").what(),
               "x\\x1b[31m.yaml:2:3: a: 'b\\n\\xc2\\x9b\\xff'");
}

TEST(Config, EscapesMakeNoControlCharacters) {
  for (const char* value : {"\\e[31m", "\\0", "\\x7f", "\\x9b", "\\u0085"}) {
    const std::string quoted = "\"a" + std::string(value) + "\"";
    EXPECT_THAT(parse_error("k: " + quoted),
                AllOf(StartsWith("x.yaml:1:4: k: "), HasSubstr("control character")));
    EXPECT_THAT(parse_error(quoted + ": 1"), HasSubstr("control character")) << "a key";
  }
  EXPECT_THAT(parse_error("a: \xc2\x9b"), HasSubstr("control character 155"));
  EXPECT_EQ(parse_config("k: \"\\u00e9\"", "x.yaml").find("k")->text(), "\u00e9");
}

TEST(Overlay, SetsAndAdds) {
  ConfigNode root = parse_config("a:\n  b: 1\n  l: [1, {x: 2}]\n", "x.yaml");
  overlay_config(root, "a.b=2 us");
  overlay_config(root, "a.l.1.x=[3, 4]");
  overlay_config(root, "n.e.w={k: v}");
  overlay_config(root, "q=\"= #\"");
  EXPECT_EQ(to_yaml(root),
            "a:\n  b: 2 us\n  l:\n    - 1\n    - x:\n        - 3\n        - 4\nn:\n  e:\n    w:\n      k: "
            "v\nq: \"= #\"\n");
  EXPECT_EQ(root.find("a")->find("b")->place().to_string(), "--set: a.b");
  EXPECT_EQ(root.find("n")->find("e")->find("w")->find("k")->place().to_string(), "--set: n.e.w.k");
  EXPECT_EQ(root.find("n")->place().to_string(), "--set: n");
}

TEST(Overlay, ABareComponentNameTakesParameters) {
  ConfigNode root = parse_config("congestion_control: dcqcn\n", "x.yaml");
  overlay_config(root, "congestion_control.g=1/256");
  EXPECT_EQ(to_yaml(root), "congestion_control:\n  kind: dcqcn\n  g: 1/256\n");
  EXPECT_EQ(root.find("congestion_control")->find("kind")->place().to_string(),
            "x.yaml:1:21: congestion_control.kind");
}

TEST(Overlay, WorksOnAnEmptyConfiguration) {
  ConfigNode root;
  overlay_config(root, "seed=7");
  EXPECT_EQ(to_yaml(root), "seed: 7\n");
  overlay_config(root, "seed=null");
  EXPECT_TRUE(root.find("seed")->is_null());
}

TEST(Overlay, RefusesMalformedAssignments) {
  for (const char* wrong : {"a", "", "=1", "a.=1", ".a=1", "a..b=1", "a=", "a=  "}) {
    EXPECT_THAT(overlay_error("a: 1", wrong), AllOf(StartsWith("--set: '"), HasSubstr("path.to.key=value")))
        << wrong;
  }
  for (const char* wrong :
       {"z=#x", "z=a: b", "z=- a", "z=[1", "z={a: 1, a: 2}", "z=&a 1", "z=1\n---\n2", "z='"}) {
    EXPECT_THAT(overlay_error("a: 1", wrong), StartsWith("--set")) << wrong;
  }
  EXPECT_EQ(overlay_error("a: {l: [1, 2]}", "a.l.2=3"),
            "--set: a.l.2: 'a.l' is a list: '2' is not one of its items (0 to 1)");
  EXPECT_THAT(overlay_error("l: []", "l.x=3"), HasSubstr("it is empty"));
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_THAT(overlay_error("", deep + "=1"), HasSubstr("too long path"));
}

// ---- properties ----

ConfigNode tree(int depth);

std::string any_text() {
  static const std::vector<std::string> pieces = {
      "a",  "Z",  "0", "9", " ",      ":", "#", "-", "'",      "\"",     "\\",  "\n",
      "\t", "{",  "]", ",", "?",      "!", "&", "*", "\u00b5", "\u20ac", "%",   "~",
      "|",  "\r", "@", ".", "\u00e9", "=", "<", "/", "null",   "---",    "...", "true"};
  std::string text;
  for (int i = *rc::gen::inRange(0, 8); i > 0; --i) text += *rc::gen::elementOf(pieces);
  return text;
}

ConfigNode any_map(int depth) {
  ConfigNode node = ConfigNode::map({});
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
    node.at_or_add(any_text() + std::to_string(i)) = tree(depth - 1);
  return node;
}

ConfigNode tree(int depth) {
  const int kind = depth > 0 ? *rc::gen::inRange(0, 4) : *rc::gen::inRange(0, 2);
  if (kind == 0) return {};
  if (kind == 1) return ConfigNode::scalar(any_text(), {});
  if (kind == 2) return any_map(depth);
  ConfigNode node = ConfigNode::sequence({});
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) node.push_back(tree(depth - 1));
  return node;
}

TEST(ConfigProperty, WrittenYamlReadsBackTheSame) {
  EXPECT_TRUE(rc::check("to_yaml then parse_config", [] {
    ConfigNode node = tree(4);
    const std::string yaml = to_yaml(node);
    const ConfigNode again = parse_config(yaml, "again.yaml");
    if (node.is_scalar() && !again.is_scalar()) RC_FAIL("scalar root: " + yaml);
    if (!same(node, again)) RC_FAIL(yaml);
    RC_ASSERT(to_yaml(again) == yaml);
  }));
}

const std::string kValid =
    "# a cluster\n"
    "seed: 1\n"
    "topology:\n"
    "  kind: fat_tree\n"
    "  k: 8\n"
    "  link: {rate: 200 Gbps, delay: \"1 us\"}\n"
    "transport:\n"
    "  mtu: 4096 B\n"
    "  congestion_control: {kind: dcqcn, g: 1/256}\n"
    "network:\n"
    "  switch:\n"
    "    buffer: '32 MB'\n"
    "    alpha: 0.125\n"
    "jobs:\n"
    "  - name: first job\n"
    "    ranks: [0, 1, 2, 3]\n"
    "  - |\n"
    "    literal\n"
    "    text\n"
    "  - >-\n"
    "    folded\n";

void mutate(std::string& text) {
  static const std::vector<std::string> pieces = {"[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  ":",
                                                  ": ",
                                                  "- ",
                                                  "? ",
                                                  "\n",
                                                  "\n\n",
                                                  " ",
                                                  "  ",
                                                  "\t",
                                                  "#",
                                                  "'",
                                                  "\"",
                                                  "|",
                                                  ">",
                                                  "&a ",
                                                  "*a",
                                                  "!",
                                                  "!!",
                                                  "<<:",
                                                  "%",
                                                  "---",
                                                  "...",
                                                  "@",
                                                  "`",
                                                  "\\x4",
                                                  ",",
                                                  "~",
                                                  "\\u",
                                                  "\x04",
                                                  "\xff",
                                                  "\r\n",
                                                  "\x80",
                                                  "key: ",
                                                  "\xef\xbb\xbf",
                                                  "%TAG ! x\n---\n",
                                                  "\"\\ud800\""};
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
  const auto length = std::min(*rc::gen::inRange<std::size_t>(0, 12), text.size() - at);
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      text.insert(at, *rc::gen::elementOf(pieces));
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.replace(at, length, *rc::gen::elementOf(pieces));
      break;
    default:
      text.insert(at, text.substr(*rc::gen::inRange<std::size_t>(0, text.size() + 1), 30));
      break;
  }
}

// Every typed reading of every value: each returns or throws ConfigError.
void read_everything(const ConfigNode& node) {
  const auto attempt = [&](auto read) {
    try {
      (void)read(node);
    } catch (const ConfigError&) {
    }
  };
  attempt(read_bool), attempt(read_integer), attempt(read_real), attempt(read_text);
  attempt(read_time), attempt(read_bytes), attempt(read_rate);
  for (const auto& [key, value] : node.entries()) read_everything(value);
  for (const ConfigNode& value : node.items()) read_everything(value);
}

TEST(ConfigProperty, AnyTextIsReadOrRefused) {
  EXPECT_TRUE(rc::check("mutations of a valid file", [] {
    std::string text = kValid;
    for (int i = *rc::gen::inRange(1, 8); i > 0; --i) mutate(text);
    try {
      const ConfigNode node = parse_config(text, "x.yaml");
      read_everything(node);
      RC_ASSERT(same(node, parse_config(to_yaml(node), "again.yaml")));
    } catch (const ConfigError& error) {
      RC_ASSERT(std::string(error.what()).find('\n') == std::string::npos);
      RC_ASSERT(std::string(error.what()).substr(0, 6) == "x.yaml");
    }
  }));
}

TEST(ConfigProperty, AnyOverlayIsAppliedOrRefused) {
  EXPECT_TRUE(rc::check("mutations of a valid assignment", [] {
    std::string text =
        *rc::gen::element<std::string>("topology.link.rate=400 Gbps", "jobs.0.ranks.1={a: [1, 2]}");
    for (int i = *rc::gen::inRange(1, 5); i > 0; --i) mutate(text);
    ConfigNode root = parse_config(kValid, "x.yaml");
    try {
      overlay_config(root, text);
      RC_ASSERT(same(root, parse_config(to_yaml(root), "again.yaml")));
    } catch (const ConfigError& error) {
      RC_ASSERT(std::string(error.what()).find('\n') == std::string::npos);
    }
  }));
}

}  // namespace
}  // namespace netsim::config_test
