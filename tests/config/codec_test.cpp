#include "easydel/config/codec.h"

#include <gtest/gtest.h>

namespace easydel::config {
namespace {

enum class Colour { red, green, blue };
constexpr auto choices(Colour) {
  return std::array{Choice{Colour::red, "red"}, Choice{Colour::green, "light_green"}.also("lime"),
                    Choice{Colour::blue, "blue"}.not_built()};
}

// The error of `text` read as a T; empty: none, and it is written back as `text`, or as `written`.
template <class T>
std::string wrong(const char* text, const char* written = nullptr) {
  const std::string path = "key", remedy = "expected something else";
  Problems problems("file");
  T out{};
  const bool read = Codec<T>::read(parse_yaml(text), out, {path, problems, remedy});
  EXPECT_EQ(read, problems.empty()) << text;
  if (read) {
    EXPECT_EQ(to_yaml_flow(Codec<T>::write(out)), written ? written : text);
    return "";
  }
  const Problem first = problems.sorted()[0];
  return first.path + ": " + first.what + (first.remedy == remedy ? "" : " / " + first.remedy);
}

TEST(Codec, ReadsIntegersWithinTheirType) {
  EXPECT_EQ(wrong<int64_t>("-7"), "");
  EXPECT_EQ(wrong<int64_t>("1e3", "1000"), "");
  EXPECT_EQ(wrong<int8_t>("-128"), "");
  EXPECT_EQ(wrong<int8_t>("-129"), "key: -129 is out of range");
  EXPECT_EQ(wrong<uint8_t>("-1"), "key: -1 is out of range");
  EXPECT_EQ(wrong<uint64_t>("9223372036854775807"), "");
  EXPECT_EQ(wrong<int64_t>("1.5"), "key: '1.5' is not an integer");
  EXPECT_EQ(wrong<int64_t>("'1'"), "key: '1' is not an integer / expected something else; the quotes make it a string");
  EXPECT_EQ(wrong<int64_t>("null"), "key: null is not an integer");
}

TEST(Codec, ReadsNumbersAndFlags) {
  EXPECT_EQ(wrong<double>("0.25"), "");
  EXPECT_EQ(wrong<double>("{a: 1}"), "key: a map is not a number");
  EXPECT_EQ(wrong<bool>("true"), "");
  EXPECT_EQ(wrong<bool>("on"), "key: 'on' is not true or false / 'on' is a string in YAML 1.2; write true");
  EXPECT_EQ(wrong<bool>("N"), "key: 'N' is not true or false / 'N' is a string in YAML 1.2; write false");
}

TEST(Codec, ReadsStringsButNoFlags) {
  EXPECT_EQ(wrong<std::string>("word"), "");
  EXPECT_EQ(wrong<std::string>("12", "\"12\""), "");
  EXPECT_EQ(wrong<std::string>("[a]"), "key: a list is not a string");
  EXPECT_EQ(wrong<std::string>("true"),
            "key: true is not a string / expected something else; write \"true\" to give the word as a string");
  EXPECT_EQ(wrong<std::filesystem::path>("a/b"), "");
}

TEST(Codec, ReadsChoicesUnderAllTheirNames) {
  EXPECT_EQ(wrong<Colour>("red"), "");
  EXPECT_EQ(wrong<Colour>("Light-Green", "light_green"), "");
  EXPECT_EQ(wrong<Colour>("LIME", "light_green"), "");
  EXPECT_EQ(wrong<Colour>("blue"), "key: 'blue' is not built yet / built: red, light_green");
  EXPECT_EQ(wrong<Colour>("limes"), "key: unknown value 'limes' / did you mean 'lime'? expected something else");
  EXPECT_EQ(wrong<Colour>("mauve"), "key: unknown value 'mauve'");
  EXPECT_EQ(wrong<Colour>("[red]"), "key: a list is not a string");
  EXPECT_EQ(Codec<Colour>::expects(), "one of: red, light_green");
  EXPECT_EQ(to_json(Codec<Colour>::schema()), R"({"enum": ["red", "light_green", "lime"]})");
}

TEST(Codec, ReadsWhatMayBeLeftOut) {
  EXPECT_EQ(wrong<std::optional<int64_t>>("null"), "");
  EXPECT_EQ(wrong<std::optional<int64_t>>("3"), "");
  EXPECT_EQ(wrong<std::optional<int64_t>>("x"), "key: 'x' is not an integer");
  EXPECT_EQ(wrong<Auto<int64_t>>("AUTO", "auto"), "");
  EXPECT_EQ(wrong<Auto<int64_t>>("3"), "");
  EXPECT_EQ(wrong<Auto<int64_t>>("x"), "key: 'x' is not an integer");
  EXPECT_EQ(Codec<Auto<int64_t>>::expects(), "auto, or an integer");
}

TEST(Codec, ReadsListsItemByItem) {
  EXPECT_EQ(wrong<std::vector<int64_t>>("[1, 2]"), "");
  EXPECT_EQ(wrong<std::vector<int64_t>>("[1, x]"), "key[1]: 'x' is not an integer");
  EXPECT_EQ(wrong<std::vector<int64_t>>("1"), "key: '1' is not a list");
  EXPECT_EQ(wrong<Many<int64_t>>("[1, 2]"), "");
  EXPECT_EQ(wrong<Many<int64_t>>("1"), "");
  EXPECT_EQ(wrong<Many<int64_t>>("[1]", "1"), "");
  EXPECT_EQ((wrong<std::array<int64_t, 2>>("[1, 2]")), "");
  EXPECT_EQ((wrong<std::array<int64_t, 2>>("[1]")), "key: has 1 items, not 2");
}

TEST(Codec, ReadsMapsAndTheFirstTypeThatFits) {
  using Map = std::map<std::string, int64_t>;
  using Either = std::variant<bool, int64_t, std::string>;
  EXPECT_EQ(wrong<Map>("{a: 1, b: 2}"), "");
  EXPECT_EQ(wrong<Map>("{a: 1, b: x}"), "key.b: 'x' is not an integer");
  EXPECT_EQ(wrong<Map>("[1]"), "key: a list is not a map");
  EXPECT_EQ(wrong<Either>("true"), "");
  EXPECT_EQ(wrong<Either>("7"), "");
  EXPECT_EQ(wrong<Either>("word"), "");
  EXPECT_EQ(wrong<Either>("[1]"), "key: a list is not valid here");
  EXPECT_EQ(wrong<Value>("[1, {a: b}]"), "");
}

TEST(Codec, ShowsLongValuesCutAtACharacter) {
  EXPECT_EQ(shown(Value::text(std::string(60, 'a'))), "'" + std::string(60, 'a') + "'");
  EXPECT_EQ(shown(Value::text(std::string(61, 'a'))), "'" + std::string(60, 'a') + "...'");
  EXPECT_EQ(shown(Value::text(std::string(59, 'a') + "\u00e9\u00e9")), "'" + std::string(59, 'a') + "...'");
  EXPECT_EQ(shown(Value{}), "null");
}

TEST(Codec, DescribesItsType) {
  EXPECT_EQ((Codec<std::map<std::string, double>>::expects()), "a map, each value a number");
  EXPECT_EQ((Codec<std::array<bool, 3>>::expects()), "a list of 3, each item true or false");
  EXPECT_EQ(Codec<Many<std::string>>::expects(), "a string, or a list of them");
  EXPECT_EQ((to_json(Codec<std::array<int64_t, 2>>::schema())),
            R"({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2})");
  EXPECT_EQ((to_json(Codec<std::map<std::string, double>>::schema())),
            R"({"type": "object", "additionalProperties": {"type": "number"}})");
}

}  // namespace
}  // namespace easydel::config
