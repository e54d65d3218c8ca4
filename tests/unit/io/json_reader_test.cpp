// Strict reading of JSON documents: what is read, and what an error says about file and field.
#include "io/json_reader.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gar/errors.hpp"

namespace gar {
namespace {

/// The error of a call; "" when it throws none.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const ParseError& error) {
    return error.what();
  }
}

void expect_parts(const std::string& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(error.find(part), std::string::npos) << "no '" << part << "' in '" << error << "'";
  }
}

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

TEST(ParseJson, TakesWhatIsValid) {
  EXPECT_EQ(parse_json(R"({"a": [1, 2.5, "x", true, null]})", "f.json").at("a").size(), 5U);
  EXPECT_EQ(parse_json("3", "f.json"), 3);
  // The same name in different objects is no repetition.
  EXPECT_EQ(parse_json(R"({"a": {"b": 1}, "c": [{"b": 2}, {"b": 3}]})", "f.json").size(), 2U);
}

TEST(ParseJson, RefusesWhatTheDocumentWouldNotShow) {
  expect_parts(error_of([] { parse_json(R"({"a": 1, "b": 2, "a": 3})", "f.json"); }), {"f.json: ", "\"a\"", "twice"});
  expect_parts(error_of([] { parse_json(R"({"o": [{"b": 1, "b": 1}]})", "f.json"); }), {"f.json: ", "\"b\""});
}

TEST(ParseJson, BoundsDepthAndLength) {
  EXPECT_EQ(error_of([] { parse_json(nested(199), "f.json"); }), "");
  expect_parts(error_of([] { parse_json(nested(202), "f.json"); }), {"f.json: ", "nested", "200"});
  expect_parts(error_of([] { parse_json(nested(100'000), "f.json"); }), {"f.json: ", "nested"});
  const std::string spaces(std::size_t{16} << 20U, ' ');
  expect_parts(error_of([&] { parse_json(spaces + "1", "f.json"); }), {"f.json: ", "16777217", "16777216"});
  EXPECT_EQ(error_of([&] { parse_json(spaces.substr(1) + "1", "f.json"); }), "");
}

TEST(ParseJson, SaysWhereTheTextIsBroken) {
  expect_parts(error_of([] { parse_json("{\n\"a\" 1}", "f.json"); }), {"f.json: not valid JSON: ", "line 2"});
  for (const std::string text : {"", "{", "[1,]", "{\"a\":}", "nul", "1 2", "\"\xff\""}) {
    EXPECT_EQ(error_of([&] { parse_json(text, "f.json"); }).find("f.json: not valid JSON: "), 0U) << text;
  }
}

TEST(PeekSchema, FindsTheOutermostOne) {
  EXPECT_EQ(peek_schema(R"({"schema": "gar.plan/1", "x": 1})"), "gar.plan/1");
  EXPECT_EQ(peek_schema(R"({"x": [1, {"schema": "inner"}], "y": {"schema": "inner"}, "schema": "outer"})"), "outer");
  // What follows is not read, so it need not be valid.
  EXPECT_EQ(peek_schema(R"({"schema": "gar.plan/1", broken)"), "gar.plan/1");
}

TEST(PeekSchema, IsEmptyWhereThereIsNone) {
  for (const std::string text : {"", "3", "[]", "{}", R"({"x": {"schema": "inner"}})", R"({"schema": 3})",
                                 R"(["schema", "x"])", R"({"schema": {"schema": "x"}})", "{broken", "\x7f"}) {
    EXPECT_EQ(peek_schema(text), "") << text;
  }
  EXPECT_EQ(peek_schema(nested(100'000)), "");
}

class Place : public ::testing::Test {
 protected:
  /// The value behind "a" in {"o": [0, {"a": VALUE}]}.
  JsonPlace place(const std::string& value) {
    document_ = parse_json(R"({"o": [0, {"a": )" + value + "}]}", source_);
    return JsonPlace(document_, source_).at("o", "").items("")[1].at("a", "");
  }
  std::string refusal(const std::string& value, const std::function<void(const JsonPlace&)>& read) {
    return error_of([&] { read(place(value)); });
  }

 private:
  std::string source_ = "f.json";
  nlohmann::json document_;
};

TEST_F(Place, KnowsItsPath) {
  EXPECT_EQ(place("1").path(), "o[1].a");
  EXPECT_EQ(place("1").source(), "f.json");
  expect_parts(error_of([&] { place("1").fail("is odd"); }), {"f.json: o[1].a: is odd"});
  const std::string source = "g.json";
  const nlohmann::json document = 3;
  expect_parts(error_of([&] { JsonPlace(document, source).fail("is odd"); }), {"g.json: document: is odd"});
}

TEST_F(Place, Numbers) {
  EXPECT_EQ(place("2.5").number(), 2.5);
  EXPECT_EQ(place("0").number(), 0);
  EXPECT_EQ(place("-3").number(-3, 3), -3);
  EXPECT_EQ(place("3").number(-3, 3), 3);
  for (const char* value : {"-1", "true", "\"1\"", "null", "[1]", "{}"}) {
    expect_parts(refusal(value, [](const JsonPlace& p) { (void)p.number(); }), {"f.json: o[1].a: is "});
  }
  expect_parts(refusal("4", [](const JsonPlace& p) { (void)p.number(-3, 3.5); }), {"is 4", "-3", "3.5"});
  EXPECT_EQ(place("1e-300").number(), 0);
  expect_parts(refusal("1e31", [](const JsonPlace& p) { (void)p.number(); }), {"is 1e+31", "1e+30"});
}

TEST_F(Place, WholeNumbersHoweverTheyAreWritten) {
  for (const char* four : {"4", "4.0", "4e0", "0.4e1"}) EXPECT_EQ(place(four).whole(4, 4), 4) << four;
  EXPECT_EQ(place("-7").whole(-7, 0), -7);
  EXPECT_EQ(place("9007199254740992").whole(0, std::int64_t{1} << 53), std::int64_t{1} << 53);
  for (const char* value : {"4.5", "3", "6", "1e300", "-1e300", "18446744073709551615", "\"4\"", "true"}) {
    expect_parts(refusal(value, [](const JsonPlace& p) { (void)p.whole(4, 5); }), {"o[1].a: is ", "from 4 to 5"});
  }
}

TEST_F(Place, TextsAndTruths) {
  EXPECT_EQ(place(R"("a \"word\"")").text(), "a \"word\"");
  expect_parts(refusal("3", [](const JsonPlace& p) { (void)p.text(); }), {"o[1].a: is 3"});
  EXPECT_TRUE(place("true").boolean());
  EXPECT_FALSE(place("false").boolean());
  expect_parts(refusal("1", [](const JsonPlace& p) { (void)p.boolean(); }), {"o[1].a: is 1", "true or false"});
}

// What a file holds is not what a terminal shall obey.
TEST_F(Place, ErrorsArePrintable) {
  const std::string error = refusal(R"("\u001b[2J")", [](const JsonPlace& p) { (void)p.number(); });
  EXPECT_EQ(error.find('\x1b'), std::string::npos);
  expect_parts(error, {"o[1].a: is \""});
}

TEST_F(Place, ListsAndObjects) {
  EXPECT_EQ(place("[1, 2]").items("numbers").size(), 2U);
  EXPECT_EQ(place("[]").items("numbers").size(), 0U);
  EXPECT_EQ(place("[1, 2]").items("numbers")[1].path(), "o[1].a[1]");
  expect_parts(refusal("{}", [](const JsonPlace& p) { (void)p.items("numbers"); }), {"is an object", "numbers"});
  expect_parts(refusal("[]", [](const JsonPlace& p) { p.expect_fields({"x"}); }), {"is a list", "x"});
}

TEST_F(Place, Fields) {
  EXPECT_EQ(place(R"({"x": 1})").find("x")->path(), "o[1].a.x");
  EXPECT_FALSE(place(R"({"x": 1})").find("y").has_value());
  EXPECT_EQ(error_of([&] { place(R"({"x": 1, "y": 2})").expect_fields({"x", "y", "z"}); }), "");
  expect_parts(error_of([&] {
                 place(R"({"x": 1, "q": 2})").expect_fields({"x", "y"});
               }),
               {"o[1].a: ", "\"q\"", "x, y"});
  expect_parts(error_of([&] { (void)place(R"({"x": 1})").at("y", "a number"); }), {"o[1].a: ", "\"y\"", "a number"});
}

TEST(CheckSchema, TellsNewerOnesFromOthers) {
  const std::string source = "f.json";
  constexpr std::string_view kSchemas[] = {"gar.plan/1"};
  const auto check = [&](const std::string& text) {
    const nlohmann::json document = parse_json(text, source);
    return error_of([&] { check_schema(JsonPlace(document, source), kSchemas, "gar plan -o"); });
  };
  EXPECT_EQ(check(R"({"schema": "gar.plan/1"})"), "");
  EXPECT_EQ(check(R"({"schema": "gar.plan/1", "gar_version": "0.1"})"), "");
  expect_parts(check(R"({"schema": "gar.plan/2"})"), {"f.json: schema: ", "gar.plan/2", "newer"});
  for (const char* other : {"gar.plan/0", "gar.plan/1x", "gar.plan/", "gar.planet/1", "gar.topology/2", ""}) {
    const std::string error = check(R"({"schema": ")" + std::string(other) + "\"}");
    expect_parts(error, {"f.json: schema: ", "gar.plan/1", "gar plan -o"});
    EXPECT_EQ(error.find("newer"), std::string::npos) << error;
  }
  expect_parts(check("[]"), {"f.json: document: is a list", "gar.plan/1"});
  expect_parts(check("{}"), {"\"schema\"", "gar.plan/1"});
  expect_parts(check(R"({"schema": 1})"), {"schema: is 1"});
  expect_parts(check(R"({"schema": "gar.plan/1", "gar_version": 1})"), {"gar_version: is 1"});
}

}  // namespace
}  // namespace gar
