// Does one declaration parse, default, limit, describe and give a schema?
#include "sim/core/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/core/plugin_loader.h"
#include "sim/core/schema.h"
#include "tests/support/paths.h"

namespace netsim::registry_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

enum class Colour { red, green };

struct Wheel {
  Bytes size = 4 * kKilobyte;
  double grip = 0.5;
};
struct Vehicle {
  bool fast = true;
  std::int64_t seats = 4;
  Time delay = kMicrosecond;
  BitRate rate = 100 * kGbps;
  std::string name = "none";
  Colour colour = Colour::red;
  Wheel wheel;
  ConfigNode engine;
  ConfigNode drivers;
};

Parameters<Wheel> wheel_parameters() {
  return Parameters<Wheel>()
      .bytes("size", &Wheel::size, {1, INT64_MAX}, "how large")
      .real("grip", &Wheel::grip, {0, 1}, "how firm");
}
Parameters<Vehicle> vehicle_parameters() {
  return Parameters<Vehicle>()
      .flag("fast", &Vehicle::fast, "whether it is fast")
      .integer("seats", &Vehicle::seats, {1, 9}, "how many")
      .time("delay", &Vehicle::delay, {kNanosecond, kSecond}, "before it starts")
      .rate("rate", &Vehicle::rate, {1, 1000 * kGbps}, "how fast")
      .text("name", &Vehicle::name, "what it is called")
      .choice("colour", &Vehicle::colour, {{"red", Colour::red}, {"green", Colour::green}}, "how it looks")
      .section("wheel", &Vehicle::wheel, wheel_parameters(), "what it stands on")
      .component("engine", &Vehicle::engine, "test_engine", "steam", "what moves it")
      .names("drivers", &Vehicle::drivers, "anyone", "who may drive it");
}

class Engine {
 public:
  static constexpr const char* kComponentKind = "test_engine";
  virtual ~Engine() = default;
  virtual std::int64_t power() const = 0;
};
struct SteamParameters {
  std::int64_t power = 10;
};
class Steam : public Engine {
 public:
  explicit Steam(SteamParameters parameters) : parameters_(parameters) {}
  std::int64_t power() const override { return parameters_.power; }

 private:
  SteamParameters parameters_;
};
Parameters<SteamParameters> steam_parameters() {
  return Parameters<SteamParameters>()
      .integer("power", &SteamParameters::power, {1, 100}, "how strong")
      .required();
}
Parameters<SteamParameters> sail_parameters() {
  return Parameters<SteamParameters>().integer("power", &SteamParameters::power, {1, INT64_MAX},
                                               "how strong");
}
const auto kMake = [](const SteamParameters& p, const ConfigNode&) { return std::make_unique<Steam>(p); };
const Registration<Engine> kSteam{"steam", "Burns coal.", steam_parameters(), kMake};
const Registration<Engine> kSail{"sail", "Needs wind.", sail_parameters(), kMake};

ConfigNode yaml(const std::string& text) { return parse_config(text, "x.yaml"); }

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}
std::string vehicle_error(const std::string& text) {
  return error_of([&] { (void)vehicle_parameters().parse(yaml(text)); });
}

TEST(Parameters, DefaultsAreTheStructs) {
  const Vehicle v = vehicle_parameters().parse(ConfigNode());
  EXPECT_TRUE(v.fast);
  EXPECT_EQ(v.delay, kMicrosecond);
  EXPECT_EQ(v.wheel.size, 4000);
  EXPECT_TRUE(v.engine.is_null());
}

TEST(Parameters, ReadsEveryType) {
  const Vehicle v = vehicle_parameters().parse(
      yaml("{fast: false, seats: 2, delay: 2 ns, rate: 1 Gbps, name: x, colour: green, wheel: {grip: 20 %}, "
           "engine: {kind: sail}}"));
  EXPECT_FALSE(v.fast);
  EXPECT_EQ(v.seats, 2);
  EXPECT_EQ(v.delay, 2 * kNanosecond);
  EXPECT_EQ(v.rate, kGbps);
  EXPECT_EQ(v.name, "x");
  EXPECT_EQ(v.colour, Colour::green);
  EXPECT_EQ(v.wheel.grip, 0.2);
  EXPECT_EQ(v.wheel.size, 4000);
  EXPECT_EQ(v.engine.find("kind")->text(), "sail");
}

// Keys that a second map leaves out keep their values. A component is replaced as a whole; null is the
// default.
TEST(Parameters, AreReadOverOthers) {
  const auto parameters = vehicle_parameters();
  const Vehicle first =
      parameters.parse(yaml("{fast: false, seats: 2, colour: green, wheel: {size: 1 B, grip: 20 %}, engine: "
                            "{kind: sail, power: 3}, "
                            "drivers: Anna}"));
  const Vehicle v =
      parameters.parse_over(first, yaml("{seats: 3, wheel: {grip: 0.9}, engine: steam, drivers: null}"));
  EXPECT_FALSE(v.fast);
  EXPECT_EQ(v.seats, 3);
  EXPECT_EQ(v.colour, Colour::green);
  EXPECT_EQ(v.wheel.size, 1);
  EXPECT_EQ(v.wheel.grip, 0.9);
  EXPECT_EQ(v.engine.text(), "steam");
  EXPECT_TRUE(v.drivers.is_null());
  const Vehicle w = parameters.parse_over(first, yaml("{seats: null, colour: null, wheel: }"));
  EXPECT_EQ(w.seats, 4);
  EXPECT_EQ(w.colour, Colour::red);
  EXPECT_EQ(w.wheel.size, 1) << "an empty section says nothing";
  EXPECT_EQ(parameters.parse_over(first, ConfigNode()).seats, 2);
  EXPECT_THAT(error_of([&] { (void)parameters.parse_over(first, yaml("{sets: 3}")); }), HasSubstr("'seats'"));
  EXPECT_THAT(error_of([&] { (void)parameters.parse_over(first, yaml("{seats: 10}")); }),
              StartsWith("x.yaml:1:9: "));
  EXPECT_EQ(steam_parameters().parse_over({7}, ConfigNode()).power, 7) << "what is required was given before";
}

TEST(ParametersNames, AreOneOrSeveral) {
  const auto drivers = [](const std::string& yaml) {
    const Vehicle v = vehicle_parameters().parse(parse_config(yaml, "x.yaml"));
    std::vector<std::string> names;
    for (const ConfigNode& name : read_names(v.drivers, "anyone")) names.push_back(name.text());
    return names;
  };
  EXPECT_THAT(drivers("{}"), ElementsAre("anyone"));
  EXPECT_THAT(drivers("{drivers: Anna}"), ElementsAre("Anna"));
  EXPECT_THAT(drivers("{drivers: [Anna, Ben]}"), ElementsAre("Anna", "Ben"));
  EXPECT_THROW(drivers("{drivers: {Anna: 1}}"), ConfigError);
  EXPECT_THROW(drivers("{drivers: [Anna, [Ben]]}"), ConfigError);
}

TEST(Parameters, NullStandsForTheDefault) {
  EXPECT_EQ(vehicle_parameters().parse(yaml("seats: ~")).seats, 4);
}

TEST(Parameters, AComputedDefaultIsAbsentAndSaidInWords) {
  struct Balloon {
    std::optional<Time> delay;
    std::optional<BitRate> rate;
    std::optional<Bytes> size;
    std::optional<std::int64_t> seats;
  };
  const auto parameters = Parameters<Balloon>()
                              .time("delay", &Balloon::delay, {0, kSecond}, "by weather", "before it starts")
                              .rate("rate", &Balloon::rate, {0, kGbps}, "that of the wind", "how fast")
                              .bytes("size", &Balloon::size, {0, kGigabyte}, "by seats", "how large")
                              .integer("seats", &Balloon::seats, {0, 9}, "by size", "how many");
  EXPECT_FALSE(parameters.parse(yaml("{}")).delay.has_value());
  EXPECT_FALSE(parameters.parse(yaml("delay: ~")).delay.has_value());
  const Balloon given = parameters.parse(yaml("{delay: 0, rate: 1 Mbps, size: 0 B, seats: 0}"));
  EXPECT_EQ(given.delay, 0) << "zero is a value";
  EXPECT_EQ(given.rate, kMbps);
  EXPECT_EQ(given.size, 0);
  EXPECT_EQ(given.seats, 0);
  EXPECT_THROW((void)parameters.parse(yaml("seats: 10")), ConfigError);
  EXPECT_EQ(parameters.table()[0].default_text, "");
  EXPECT_THAT(describe_parameters(parameters.table()), HasSubstr("by weather"));
}

TEST(Parameters, ErrorsSayWhatIsAllowed) {
  EXPECT_EQ(vehicle_error("seats: 10"), "x.yaml:1:8: seats: '10' is out of range: 1 to 9 is allowed");
  EXPECT_EQ(vehicle_error("delay: 2 s"), "x.yaml:1:8: delay: '2 s' is out of range: 1 ns to 1 s is allowed");
  EXPECT_EQ(vehicle_error("wheel: {size: 0 B}"),
            "x.yaml:1:15: wheel.size: '0 B' is out of range: at least 1 B is allowed");
  EXPECT_EQ(vehicle_error("wheel: {size: -1 B}"),
            "x.yaml:1:15: wheel.size: '-1 B' is out of range: at least 1 B is allowed");
  EXPECT_EQ(vehicle_error("colour: blue"), "x.yaml:1:9: colour: 'blue' is not one of: red, green");
  EXPECT_EQ(vehicle_error("wheel: {griip: 1}"),
            "x.yaml:1:9: wheel.griip: unknown key 'griip', did you mean 'grip'? (allowed: size, grip)");
  EXPECT_EQ(vehicle_error("wheel: 5"),
            "x.yaml:1:8: wheel: '5' stands where keys and values are expected (allowed: size, grip)");
}

TEST(Parameters, RequiredOnesMustBeThere) {
  EXPECT_EQ(error_of([] { (void)steam_parameters().parse(yaml("{}")); }),
            "x.yaml:1:1: 'power' is missing (integer): how strong");
}

TEST(Parameters, LimitsThatLimitNothingAreNotShown) {
  EXPECT_EQ(shown_limit("bytes", format_bytes(INT64_MAX)), "");
  EXPECT_EQ(shown_limit("time", format_time(kNever)), "");
  EXPECT_EQ(shown_limit("integer", "9"), "9");
  EXPECT_EQ(shown_limit("real", format_real(1e308 * 10)), "");
}

TEST(Registry, CreatesByNameMapOrDefault) {
  const auto& registry = Registry<Engine>::instance();
  EXPECT_EQ(registry.create(yaml("{kind: steam, power: 7}"), "sail")->power(), 7);
  EXPECT_EQ(registry.create(yaml("sail"), "")->power(), 10);
  EXPECT_EQ(registry.create(ConfigNode(), "sail")->power(), 10);
  EXPECT_EQ(registry.create(yaml("{power: 8}"), "sail")->power(), 8);
  EXPECT_EQ(registry.create("sail")->power(), 10);
  EXPECT_THAT(registry.names(), ElementsAre("sail", "steam"));
}

TEST(Registry, ErrorsNameTheKnown) {
  const auto& registry = Registry<Engine>::instance();
  EXPECT_EQ(
      error_of([&] { (void)registry.create(yaml("{kind: stem}"), ""); }),
      "x.yaml:1:8: kind: unknown test_engine 'stem', did you mean 'steam'? (known: sail, steam; those of a "
      "plugin need --plugin FILE)");
  EXPECT_THAT(error_of([&] { (void)registry.create(yaml("{power: 1}"), ""); }),
              HasSubstr("'kind' is missing"));
  EXPECT_THAT(error_of([&] { (void)registry.create(yaml("{kind: sail, powr: 1}"), ""); }),
              HasSubstr("did you mean 'power'?"));
}

TEST(Catalogue, ListsByKindAndName) {
  const Catalogue& catalogue = Catalogue::instance();
  EXPECT_THAT(catalogue.names("test_engine"), ElementsAre("sail", "steam"));
  EXPECT_THAT(catalogue.kinds(), ::testing::Contains("test_engine"));
  EXPECT_EQ(catalogue.find("test_engine", "steam")->summary, "Burns coal.");
  EXPECT_EQ(catalogue.find("test_engine", "diesel"), nullptr);
  const auto all = catalogue.all();
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_LT(std::make_pair(all[i - 1]->kind, all[i - 1]->name), std::make_pair(all[i]->kind, all[i]->name));
  }
}

TEST(Catalogue, ANameTakenTwiceIsAnErrorThatNamesBothPlaces) {
  Catalogue catalogue;
  catalogue.add({"wheel", "round", "rolls", {}, "one.cpp:1"});
  catalogue.add({"wheel", "square", "does not", {}, "one.cpp:2"});
  EXPECT_EQ(error_of([&] { catalogue.check(); }), "no error");
  catalogue.add({"wheel", "round", "rolls better", {}, "two.cpp:7"});
  EXPECT_EQ(error_of([&] { catalogue.check(); }),
            "wheel 'round' is registered twice: one.cpp:1 and two.cpp:7");
  EXPECT_EQ(error_of([&] { catalogue.freeze(); }),
            "wheel 'round' is registered twice: one.cpp:1 and two.cpp:7");
  EXPECT_EQ(catalogue.find("wheel", "round")->summary, "rolls") << "the first one stays";
}

TEST(Catalogue, NothingIsAddedOnceItIsFrozen) {
  Catalogue catalogue;
  catalogue.add({"wheel", "round", "rolls", {}, "one.cpp:1"});
  catalogue.freeze();
  EXPECT_TRUE(catalogue.frozen());
  catalogue.add({"wheel", "square", "does not", {}, "two.cpp:7"});
  EXPECT_EQ(error_of([&] { catalogue.check(); }),
            "wheel 'square' is registered too late, after a component was made: two.cpp:7");
  EXPECT_THAT(catalogue.names("wheel"), ElementsAre("round"));
}

// ---- Parameters that are keys of another component

struct Pair {
  std::int64_t first = 1, second = 2;
  ConfigNode engines;
};
Parameters<Pair> pair_of(const char* section, const char* key, std::int64_t Pair::*member) {
  return Parameters<Pair>().section(section, Parameters<Pair>().integer(key, member, {0, 99}, "a number"),
                                    std::string("with ") + key);
}

class Vessel {
 public:
  static constexpr const char* kComponentKind = "test_vessel";
  Vessel(const Pair& given, const ConfigNode& map) : pair(given), where(map) {}
  virtual ~Vessel() = default;
  Pair pair;
  ConfigNode where;
};
std::unique_ptr<Vessel> make_vessel(const Pair& pair, const ConfigNode& where) {
  return std::make_unique<Vessel>(pair, where);
}
const Registration<Vessel> kRudder{
    "test_rudder", "steers",
    KeysOf<Pair>{"test_vessel", "test_ship", pair_of("hull", "rudders", &Pair::first)}, make_vessel};
const Registration<Vessel> kShip{"test_ship", "swims",
                                 pair_of("hull", "decks", &Pair::second)
                                     .component_list("engines", &Pair::engines, "test_engine", "in a row"),
                                 make_vessel};
const Registration<Vessel> kAnchor{
    "test_anchor", "holds", KeysOf<Pair>{"test_vessel", "test_ship", pair_of("chain", "links", &Pair::first)},
    make_vessel};

TEST(KeysOf, AreInTheTableOfTheOtherComponent) {
  const ComponentInfo* ship = Catalogue::instance().find("test_vessel", "test_ship");
  ASSERT_EQ(ship->parameters.size(), 3U);
  EXPECT_EQ(ship->parameters[0].name, "hull");
  EXPECT_EQ(ship->parameters[0].doc, "with decks");
  ASSERT_EQ(ship->parameters[0].children.size(), 2U);
  EXPECT_EQ(ship->parameters[0].children[1].name, "rudders");
  EXPECT_EQ(ship->parameters[2].name, "chain");
  EXPECT_THAT(Catalogue::instance().chosen_names("test_vessel"), ElementsAre("test_ship"));
  EXPECT_THAT(Catalogue::instance().names("test_vessel"),
              ElementsAre("test_anchor", "test_rudder", "test_ship"));
}

TEST(KeysOf, AreReadFromTheMapOfTheOtherComponent) {
  const Registry<Vessel>& registry = Registry<Vessel>::instance();
  const ConfigNode node =
      parse_config("kind: test_ship\nhull: {decks: 3, rudders: 4}\nchain:\n  links: 50\n", "ship.yaml");
  EXPECT_EQ(registry.create(node, "")->pair.second, 3);
  EXPECT_EQ(registry.create_named("test_rudder", node)->pair.first, 4);
  const auto anchor = registry.create_named("test_anchor", node);
  EXPECT_EQ(anchor->pair.first, 50);
  EXPECT_NE(anchor->where.find("hull"), nullptr) << "a component sees the whole map";
  EXPECT_EQ(registry.create_named("test_rudder", parse_config("hull:\nchain: {links: 1}", "s"))->pair.first,
            1);
}

TEST(KeysOf, AreCheckedAtTheirPlace) {
  const Registry<Vessel>& registry = Registry<Vessel>::instance();
  const auto made = [&](const std::string& name, const std::string& text) {
    return error_of([&] { (void)registry.create_named(name, parse_config(text, "s.yaml")); });
  };
  EXPECT_THAT(made("test_ship", "hull:\n  rudder: 3\n"),
              AllOf(StartsWith("s.yaml:2:3"), HasSubstr("'rudders'")));
  EXPECT_THAT(made("test_ship", "hull: {decks: 1}\nchian: {}\n"), HasSubstr("'chain'"));
  EXPECT_THAT(made("test_rudder", "hull: {decks: 1,\n  rudders: 100}"),
              AllOf(StartsWith("s.yaml:2:12"), HasSubstr("0 to 99")));
  EXPECT_THAT(made("test_rudder", "hull: 7"), StartsWith("s.yaml:1:7"));
}

TEST(KeysOf, AreAddedInWhateverOrderAndRefusedWhereTheyAreTaken) {
  const ParameterTable table = pair_of("hull", "decks", &Pair::first).table();
  for (const bool first : {false, true}) {
    Catalogue catalogue;
    if (first) catalogue.add({"ship", "brig", "swims", table, "a.cpp:1"});
    catalogue.add({"part", "mast", "stands", pair_of("hull", "masts", &Pair::first).table(), "b.cpp:2",
                   "ship", "brig"});
    if (!first) catalogue.add({"ship", "brig", "swims", table, "a.cpp:1"});
    EXPECT_EQ(error_of([&] { catalogue.check(); }), "no error");
    EXPECT_EQ(catalogue.find("ship", "brig")->parameters[0].children.size(), 2U);
    catalogue.add({"part", "other", "is one too many", table, "c.cpp:3", "ship", "brig"});
    EXPECT_EQ(error_of([&] { catalogue.check(); }),
              "part 'other' has the key 'hull.decks' of ship 'brig', which is taken: c.cpp:3");
  }
}

TEST(Registry, FreezesTheCatalogueWhenTheFirstComponentIsMade) {
  (void)Registry<Engine>::instance().create("sail");
  EXPECT_TRUE(Catalogue::instance().frozen());
  EXPECT_THAT(error_of([] { (void)load_plugin(netsim_binary()); }), HasSubstr("is no plugin of netsim"));
  // The library has the mark in it, and no line behind it.
  const std::string library = netsim_binary().substr(0, netsim_binary().rfind('/')) + "/libnetsim.so";
  EXPECT_THAT(error_of([&] { (void)load_plugin(library); }), HasSubstr("is no plugin of netsim"));
}

TEST(Registration, KnowsItsPlace) {
  EXPECT_THAT(Catalogue::instance().find("test_engine", "steam")->source, HasSubstr("registry_test.cpp:"));
}

TEST(Describe, IsATable) {
  EXPECT_EQ(describe({"kind", "name", "What it is.", steam_parameters().table()}),
            "kind.name\n  What it is.\n\n"
            "  parameter  type     default   allowed   what it is\n"
            "  power      integer  required  1 to 100  how strong\n");
  EXPECT_EQ(describe({"kind", "name", "What it is.", {}}), "kind.name\n  What it is.\n\n  no parameters\n");
  const std::string text = describe_parameters(vehicle_parameters().table());
  EXPECT_THAT(text, HasSubstr("  delay       time       1 us      1 ns to 1 s      before it starts\n"));
  EXPECT_THAT(text, HasSubstr("  wheel.size  bytes      4 KB      >= 1 B"));
  EXPECT_THAT(text, HasSubstr("red | green"));
  EXPECT_THAT(text, HasSubstr("a test_engine"));
}

TEST(Schema, NestsSectionsAndRefersToComponents) {
  Catalogue catalogue;
  catalogue.add({"test_engine", "steam", "Burns coal.", steam_parameters().table()});
  catalogue.add({"test_engine", "sail", "Needs wind.", sail_parameters().table()});
  const ParameterTable top = {section_info("vehicle", vehicle_parameters().table(), "the vehicle"),
                              component_info("spare", "test_engine", "", "another engine")};
  const std::string text = json_schema(top, catalogue);
  const auto schema = nlohmann::json::parse(text);
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["additionalProperties"], false);
  const auto& vehicle = schema["properties"]["vehicle"]["anyOf"][0]["properties"];
  EXPECT_EQ(vehicle["seats"]["anyOf"][0]["maximum"], 9);
  EXPECT_EQ(vehicle["seats"]["default"], 4);
  EXPECT_EQ(vehicle["delay"]["default"], "1 us");
  EXPECT_EQ(vehicle["colour"]["anyOf"][0]["enum"], (nlohmann::json{"red", "green"}));
  EXPECT_EQ(vehicle["engine"]["anyOf"][0]["anyOf"][1]["$ref"], "#/$defs/test_engine.steam");
  EXPECT_EQ(vehicle["drivers"]["anyOf"][0]["anyOf"][1]["type"], "array");
  const auto& kind = schema["$defs"]["test_engine"]["oneOf"];
  EXPECT_EQ(kind[0]["enum"], (nlohmann::json{"sail", "steam"}));
  EXPECT_EQ(kind[1]["allOf"][0]["$ref"], "#/$defs/test_engine.sail");
  EXPECT_EQ(kind[1]["allOf"][1]["required"], nlohmann::json::array({"kind"}));
  EXPECT_EQ(schema["$defs"]["test_engine.steam"]["properties"]["kind"]["const"], "steam");
  EXPECT_EQ(schema["$defs"]["test_engine.steam"]["required"], nlohmann::json::array({"power"}));
  EXPECT_EQ(text, json_schema(top, catalogue)) << "deterministic";
}

TEST(Schema, AllowsSectionsOfAnyName) {
  struct Garage {
    ConfigNode places;
  };
  const auto garage = Parameters<Garage>().sections("places", &Garage::places, wheel_parameters().table(),
                                                    "what stands where");
  const auto schema = nlohmann::json::parse(json_schema(garage.table(), Catalogue()));
  const auto& places = schema["properties"]["places"]["anyOf"][0];
  EXPECT_EQ(places["type"], "object");
  EXPECT_EQ(places["additionalProperties"]["properties"]["grip"]["default"], 0.5);
  EXPECT_EQ(places["additionalProperties"]["additionalProperties"], false);
  EXPECT_EQ(garage.parse(yaml("places: {left: {grip: 1}}")).places.entries().size(), 1U);
  EXPECT_EQ(describe_parameters(garage.table()).find("grip"), std::string::npos) << "they have any names";
}

TEST(Schema, AllowsListsOfAnyName) {
  struct Crew {
    ConfigNode teams;
  };
  const auto crew = Parameters<Crew>().lists_by_name("teams", &Crew::teams, "who works together");
  const auto schema = nlohmann::json::parse(json_schema(crew.table(), Catalogue()));
  const auto& teams = schema["properties"]["teams"]["anyOf"][0];
  EXPECT_EQ(teams["type"], "object");
  EXPECT_EQ(teams["additionalProperties"]["type"][0], "array");
  EXPECT_EQ(crew.parse(yaml("teams: {left: [1, 2]}")).teams.entries().size(), 1U);
}

TEST(Schema, ReferencesAreNeverDangling) {
  const auto schema =
      nlohmann::json::parse(json_schema({component_info("a", "absent", "none", "")}, Catalogue()));
  EXPECT_EQ(schema["$defs"]["absent"], true);
  EXPECT_EQ(schema["$defs"]["absent.none"], true);
}

}  // namespace
}  // namespace netsim::registry_test
