// Which texts the languages of constrained output accept, without a vocabulary.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "easydel/text/constrain/constraint.h"
#include "easydel/text/constrain/constraint_flags.h"
#include "easydel/text/constrain/json_numbers.h"
#include "support/data.h"

namespace easydel::text::constrain {
namespace {

using test::refusal;
using Kind = Language::Kind;

// How far a text goes: -1 accepted, -2 may be continued, else the byte that cannot come.
constexpr int kAccepted = -1, kBegun = -2;
int reads(const Automaton& automaton, std::string_view text) {
  Stacks stacks(automaton);
  Position at = stacks.begin(), next;
  for (size_t i = 0; i < text.size(); ++i) {
    stacks.step(at, static_cast<uint8_t>(text[i]), next);
    if (next.dead()) return static_cast<int>(i);
    std::swap(at, next);
  }
  return at.may_end ? kAccepted : kBegun;
}

std::shared_ptr<const Automaton> schema(const std::string& json) { return compile({Kind::json_schema, json}); }
std::shared_ptr<const Automaton> regex(const std::string& pattern) { return compile({Kind::regex, pattern}); }
std::shared_ptr<const Automaton> grammar(const std::string& text) { return compile({Kind::grammar, text}); }

struct Example {
  std::string language, text;
  int outcome;
};

TEST(ConstrainRegex, AcceptsWhatThePatternMatchesAsAWhole) {
  for (const auto& [pattern, text, outcome] : std::vector<Example>{
           {"abc", "abc", kAccepted},
           {"abc", "ab", kBegun},
           {"abc", "abd", 2},
           {"abc", "abcd", 3},
           {"", "", kAccepted},
           {"a|", "", kAccepted},
           {"(ab)*c", "ababc", kAccepted},
           {"a{2,3}", "a", kBegun},
           {"a{2,3}", "aaaa", 3},
           {"a{2}", "aa", kAccepted},
           {"a{2,}b", "aaaaab", kAccepted},
           {"a{,2}", "a{,2}", kAccepted},  // no repetition: text
           {"x*?y+?", "xxy", kAccepted},
           {"[a-c-]+", "a-c", kAccepted},
           {"[^a-z]", "a", 0},
           {"[^a-z]", "\xC3\xA9", kAccepted},
           {"[^a-z]", "\xC3", kBegun},
           {"[^a-z]", "\xC3(", 1},
           {".", "\n", 0},
           {".", "\xF0\x9F\x99\x82", kAccepted},
           {".", "\xED\xA0\x80", 1},  // half of a surrogate pair is not a character
           {"\\d\\D\\w\\W\\s\\S", "1x_- y", kAccepted},
           {"\\d", "\xD9\xA3", 0},  // digits are those of ASCII
           {"\\x41\\u0042\\u{43}\\cJ\\/", "ABC\n/", kAccepted},
           {"\\uD83D\\uDE42", "\xF0\x9F\x99\x82", kAccepted},
           {"\\p{Lu}\\P{L}",
            "\xC3\x89"
            "1",
            kAccepted},
           {"^ab$", "ab", kAccepted},
           {"(^a|b)$", "b", kAccepted},
           {"a^b|c", "c", kAccepted},
           {"a^b|c", "a", 0},  // nothing can follow
           {"a$b|c", "a", 0},
           {"^$", "", kAccepted},
           {"(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 32},
           {"(a|b)*a(a|b){20}", "abababababababababababa", kAccepted},
           {"(?<name>a)(?:b)(?P<x>c)", "abc", kAccepted},
       })
    EXPECT_EQ(reads(*regex(pattern), text), outcome) << pattern << " " << text;
}

TEST(ConstrainRegex, RefusesWhatIsNotRegularAndWhatIsTooLarge) {
  const auto refused = [](const std::string& pattern) { return refusal([&] { regex(pattern); }); };
  EXPECT_EQ(refused("(?=a)b"),
            "regex: the pattern '(?=a)b' has a look-around, which is not supported (at byte 3)\n"
            "    say what may stand there instead, or use several patterns");
  EXPECT_EQ(refused("(a)\\1"),
            "regex: the pattern '(a)\\1' has a back reference, which is not regular (at byte 4)\n"
            "    write the alternatives out");
  EXPECT_EQ(refused("a{10001}"),
            "regex: the pattern 'a{10001}' repeats more than 10000 times (at byte 1)\n    use a lower bound, or none");
  EXPECT_EQ(refused("[a-z"), "regex: the pattern '[a-z' has a '[' without ']' (at byte 4)");
  EXPECT_EQ(refused("a)"), "regex: the pattern 'a)' has a ')' without '(' (at byte 1)");
  EXPECT_EQ(refused("(a"), "regex: the pattern '(a' has a '(' without ')' (at byte 2)");
  EXPECT_EQ(refused("+a"), "regex: the pattern '+a' repeats nothing (at byte 0)");
  EXPECT_EQ(refused("\\bword"),
            "regex: the pattern '\\bword' has a word boundary, which is not supported (at byte 2)\n"
            "    write the neighbours out");
  EXPECT_EQ(refused("((a{1,99}){1,99}){1,99}"),
            "constraint: needs more than 400000 automaton states\n"
            "    lower the bounds of repetitions and lengths, above all where one is inside another");
  EXPECT_EQ(refused(std::string(1000, '(') + std::string(1000, ')')).substr(0, 30), "regex: the pattern '((((((((((");
  EXPECT_EQ(refused(std::string(70000, 'a')).find("has 70000 bytes; at most 65536 are accepted") != std::string::npos,
            true);
  EXPECT_EQ(refused("a^b"),
            "regex: accepts no text at all\n    look for demands that contradict each other, and for recursion without "
            "an end");
}

TEST(ConstrainSchema, AcceptsTheValuesThatItDescribes) {
  const std::string person =
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false})";
  const std::string tree =
      R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"k":{"type":"array","items":{"$ref":"#/$defs/n"}}},"additionalProperties":false}}})";
  for (
      const auto& [json, text, outcome] : std::vector<Example>{
          {person, R"({"name":"x","age":3})", kAccepted},
          {person, R"({ "name" : "x" , "age" : 3 })", kAccepted},
          {person, R"({"name":"x"})", kAccepted},
          {person, R"({"age":3})", 2},
          {person, R"({"name":"x","name":"y"})", 13},
          {person, R"({"name":"x","age":3.5})", 19},
          {person, R"({"name":"x",})", 12},
          {person, R"( {"name":"x"})", 0},
          {person, "{\n\n\n\n\n\n\n\n\"name\":\"x\"}", kAccepted},
          {person, "{\n\n\n\n\n\n\n\n\n\"name\":\"x\"}", 9},
          {person, R"({"name":"\u00e9\n\"\ud83d\ude42"})", kAccepted},
          {person, R"({"name":"\ud83d"})", 15},
          {person, "{\"name\":\"\n\"}", 9},
          {"true", R"({"a":[1,-2.5e3,"x",null,true,{}]})", kAccepted},
          {"{}", "01", 1},
          {R"({"enum":["a","\u00e9\"",1.50,null,[1,{"b":2}]]})", R"("a")", kAccepted},
          {R"({"enum":["a","\u00e9\"",1.50,null,[1,{"b":2}]]})", "\"\xC3\xA9\\\"\"", kAccepted},
          {R"({"enum":["a","\u00e9\"",1.50,null,[1,{"b":2}]]})", "\"\\u00E9\\\"\"", kAccepted},
          {R"({"enum":["a","\u00e9\"",1.50,null,[1,{"b":2}]]})", "1.50", kAccepted},
          {R"({"enum":["a","\u00e9\"",1.50,null,[1,{"b":2}]]})", "[1, {\"b\": 2}]", kAccepted},
          {R"({"enum":["a",1],"type":"string"})", "1", 0},
          {R"({"enum":[1,5,9],"minimum":4,"maximum":8})", "5", kAccepted},
          {R"({"enum":[1,5,9],"minimum":4,"maximum":8})", "9", 0},
          {R"({"const":{"a":[]}})", R"({"a":[]})", kAccepted},
          {R"({"type":["integer","null"]})", "null", kAccepted},
          {R"({"type":"integer","multipleOf":7,"minimum":10,"maximum":40})", "14", kAccepted},
          {R"({"type":"integer","multipleOf":7,"minimum":10,"maximum":40})", "35", kAccepted},
          {R"({"type":"integer","multipleOf":7,"minimum":10,"maximum":40})", "7", 0},
          {R"({"type":"integer","multipleOf":7,"minimum":10,"maximum":40})", "42", 0},
          {R"({"type":"string","minLength":2,"maxLength":3})", "\"\xC3\xA9\\n\"", kAccepted},
          {R"({"type":"string","minLength":2,"maxLength":3})", R"("a")", 2},
          {R"({"type":"string","minLength":2,"maxLength":3})", R"("abcd")", 4},
          {R"({"type":"string","pattern":"^a+$","maxLength":2})", R"("aaa")", 3},
          {R"({"type":"string","pattern":"b"})", R"("abc")", kAccepted},
          {R"({"type":"string","pattern":"b"})", R"("ac")", 3},
          {R"({"type":"string","format":"date"})", R"("2024-02-29")", kAccepted},
          {R"({"type":"string","format":"date"})", R"("2023-02-29")", 10},
          {R"({"type":"string","format":"date-time"})", R"("2024-02-29T23:59:59.5+01:00")", kAccepted},
          {R"({"type":"string","format":"time"})", R"("24:00:00Z")", 2},
          {R"({"type":"string","format":"ipv4"})", R"("255.0.10.1")", kAccepted},
          {R"({"type":"string","format":"ipv4"})", R"("256.0.10.1")", 3},
          {R"({"type":"string","format":"ipv6"})", R"("::ffff:1.2.3.4")", kAccepted},
          {R"({"type":"string","format":"ipv6"})", R"("1:2:3:4:5:6:7::")", kAccepted},
          {R"({"type":"string","format":"ipv6"})", R"("1::2::3")", 6},
          {R"({"type":"string","format":"uuid"})", R"("12345678-9abc-def0-1234-56789abcdef0")", kAccepted},
          {R"({"type":"string","format":"email"})", R"("a.b@c.de")", kAccepted},
          {R"({"type":"string","format":"uri"})", R"("https://a@b.c:1/d?e=f#g")", kAccepted},
          {R"({"type":"string","format":"hostname"})", R"("a-b.c")", kAccepted},
          {R"({"type":"string","format":"hostname"})", R"("a-")", 3},
          {R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2})", "[]", 1},
          {R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2})", "[true,false]", kAccepted},
          {R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2})", "[true,false,", 11},
          {R"({"type":"array","prefixItems":[{"const":1}],"items":{"const":2}})", "[1,2,2]", kAccepted},
          {R"({"type":"array","prefixItems":[{"const":1}],"items":false})", "[1,", 2},
          {R"({"type":"array","items":[{"const":1}],"additionalItems":{"const":3}})", "[1,3]", kAccepted},
          {R"({"anyOf":[{"type":"null"},{"type":"integer"}],"maximum":5})", "null", kAccepted},
          {R"({"anyOf":[{"type":"null"},{"type":"integer"}],"maximum":5})", "6", 0},
          {R"({"oneOf":[{"properties":{"t":{"const":1}},"required":["t"],"type":"object"},{"properties":{"t":{"const":2}},"required":["t"],"type":"object"}]})",
           R"({"t":2})", kAccepted},
          {R"({"allOf":[{"type":"object","properties":{"a":{"minimum":3}}},{"properties":{"a":{"type":"integer","maximum":4}}}],"required":["a"]})",
           R"({"a":4})", kAccepted},
          {R"({"allOf":[{"type":"object","properties":{"a":{"minimum":3}}},{"properties":{"a":{"type":"integer","maximum":4}}}],"required":["a"]})",
           R"({"a":5)", 5},
          {R"({"type":"object","properties":{"a":{"const":1}},"patternProperties":{"^x":{"const":2}},"additionalProperties":{"const":3}})",
           R"({"a":1,"x":2,"y":3})", kAccepted},
          {R"({"type":"object","properties":{"a":{"const":1}},"patternProperties":{"^x":{"const":2}},"additionalProperties":{"const":3}})",
           R"({"x":3})", 5},
          {R"({"type":"object","properties":{"a":{"const":1}},"patternProperties":{"^x":{"const":2}},"additionalProperties":{"const":3}})",
           R"({"y":3,"a":1})", 9},
          {R"({"type":"object","propertyNames":{"pattern":"^[ab]$"}})", R"({"a":1,"c":1})", 8},
          {R"({"type":"object","minProperties":1,"maxProperties":2})", "{}", 1},
          {R"({"type":"object","minProperties":1,"maxProperties":2})", R"({"a":1,"b":1})", kAccepted},
          {R"({"type":"object","minProperties":1,"maxProperties":2})", R"({"a":1,"b":1,)", 12},
          {R"({"type":"object","properties":{"a":true,"b":true,"c":true},"additionalProperties":false,"maxProperties":2})",
           R"({"a":1,"c":1})", kAccepted},
          {R"({"type":"object","properties":{"a":true,"b":true,"c":true},"additionalProperties":false,"minProperties":2})",
           R"({"b":1})", 6},
          {tree, R"({"k":[{"k":[]},{}]})", kAccepted},
          {R"({"type":"object","title":"t","description":"d","x-mine":1,"default":{}})", "{}", kAccepted},
      })
    EXPECT_EQ(reads(*schema(json), text), outcome) << json << " " << text;
}

TEST(ConstrainSchema, RefusesWithTheJsonPointer) {
  const auto refused = [](const std::string& json) { return refusal([&] { schema(json); }); };
  EXPECT_EQ(
      refused(R"({"properties":{"a/b":{"not":{}}}})"),
      "JSON schema at /properties/a~1b/not: the keyword 'not' is not supported\n    leave it out, and check what it "
      "says after generating; docs/constrained_output.md lists the keywords that are supported");
  EXPECT_EQ(
      refused(R"({"items":{"uniqueItems":true}})"),
      "JSON schema at /items/uniqueItems: the keyword 'uniqueItems' is not supported\n    leave it out, and check it "
      "after generating");
  EXPECT_EQ(refused(R"({"type":"float"})"),
            "JSON schema at /type: \"float\" is not a type\n    types: null, boolean, integer, number, string, array, "
            "object");
  EXPECT_EQ(refused(R"({"multipleOf":0.01})"),
            "JSON schema at /multipleOf: is 0.01; only whole numbers above 0 are supported\n    leave it out, and "
            "round after "
            "generating");
  EXPECT_EQ(refused(R"({"format":"duration"})"),
            "JSON schema at /format: the format 'duration' is not supported\n    supported: date, date-time, email, "
            "hostname, "
            "ipv4, ipv6, time, uri, uuid; leave it out, or write a pattern");
  EXPECT_EQ(refused(R"({"$ref":"#/$defs/x"})"),
            "JSON schema at /$ref: '#/$defs/x' names nothing\n    a JSON pointer is supported: #/$defs/NAME");
  EXPECT_EQ(
      refused(R"({"$ref":"http://a/b"})"),
      "JSON schema at /$ref: 'http://a/b' is not in this document\n    put it under $defs and refer to #/$defs/NAME");
  EXPECT_EQ(refused(R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})"),
            "JSON schema at /$defs/a: leads back to itself without an end\n    a recursive schema has to go through "
            "properties "
            "or items");
  EXPECT_EQ(refused(R"({"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}})"),
            "JSON schema at /$defs/a: leads back to itself without an end\n    a recursive schema has to go through "
            "properties "
            "or items");
  EXPECT_EQ(
      refused(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})"),
      "JSON schema: accepts no text at all\n    look for demands that contradict each other, and for recursion without "
      "an end");
  EXPECT_EQ(
      refused(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"),
      "JSON schema at /oneOf: a value may satisfy both alternative 0 and alternative 1\n    use anyOf, or tell them "
      "apart by type, const or required properties with different values");
  EXPECT_EQ(refused(R"({"maxLength":10001})"),
            "JSON schema at /maxLength: is 10001; at most 10000 are accepted\n    lower it, or leave it out");
  EXPECT_EQ(refused(R"s({"pattern":"(?!a)"})s"),
            "JSON schema at /pattern: the pattern '(?!a)' has a look-around, which is not supported (at byte 3)\n    "
            "say what "
            "may stand there instead, or use several patterns");
  EXPECT_EQ(
      refused(R"({"type":"null","const":1})"),
      "JSON schema: accepts no text at all\n    look for demands that contradict each other, and for recursion without "
      "an end");
  std::string words = R"({"enum":[)";
  for (int i = 0; i < 100000; ++i) words += "\"word" + std::to_string(i) + "\",";
  EXPECT_EQ(refused(words + "1]}"),
            "JSON schema: has 1188902 bytes; at most 65536 are accepted\n    shorten the schema");
  std::string deep = "true";
  for (int i = 0; i < 70; ++i) deep = "{\"items\":" + deep + "}";
  EXPECT_EQ(refused(deep).substr(0, 34), "JSON schema at /items/items/items/");
  EXPECT_NE(refused(deep).find("has more than 64 schemas inside each other"), std::string::npos);
}

TEST(ConstrainSchema, ComparesNumbersWithTheirBoundsExactly) {
  std::mt19937_64 random(7);
  const std::vector<std::string> bounds = {"0",    "5",    "-5",  "10",   "99",     "100",
                                           "0.05", "-0.5", "1.5", "-1e3", "2.5e-3", "123456"};
  std::vector<std::string> numbers = {
      "0",         "-0",        "0.0",       "-0.000",   "5",       "5.0",    "4.999",  "5.001",   "-5",      "-5.0001",
      "10",        "1e1",       "1E+1",      "1.0e1",    "9.99e0",  "1e2",    "9.9e1",  "9.9e+01", "5e-2",    "5e-02",
      "4.9e-2",    "0.05",      "0.0500001", "-5e-1",    "-5.1e-1", "1.5",    "1.50",   "-1000",   "-1000.5", "-1e3",
      "-1.0001e3", "1.23456e5", "123456",    "123456.1", "2.5e-3",  "0.0025", "1e-300", "-1e-300", "1e300",   "-1e300"};
  for (int i = 0; i < 200; ++i)
    numbers.push_back(std::to_string(static_cast<int64_t>(random() % 300) - 150) + "." +
                      std::to_string(random() % 100));
  for (const std::string& bound : bounds)
    for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      const auto automaton = schema("{\"type\":\"number\",\"" + std::string(keyword) + "\":" + bound + "}");
      for (const std::string& number : numbers) {
        const double x = std::stod(number), b = std::stod(bound);
        const std::string_view k = keyword;
        const bool good = k == "minimum" ? x >= b : k == "maximum" ? x <= b : k == "exclusiveMinimum" ? x > b : x < b;
        EXPECT_EQ(reads(*automaton, number) == kAccepted, good) << keyword << " " << bound << ": " << number;
      }
    }
  for (const int64_t multiple : {2, 3, 7, 12})
    for (const int64_t min : {-20, 0, 5}) {
      const auto automaton = schema("{\"type\":\"integer\",\"multipleOf\":" + std::to_string(multiple) +
                                    ",\"minimum\":" + std::to_string(min) + ",\"exclusiveMaximum\":120}");
      for (int64_t i = -200; i < 200; ++i)
        EXPECT_EQ(reads(*automaton, std::to_string(i)) == kAccepted, i % multiple == 0 && i >= min && i < 120) << i;
    }
  EXPECT_EQ(reads(*schema(R"({"type":"integer"})"), std::string(64, '1')), kAccepted);
  EXPECT_EQ(reads(*schema(R"({"type":"integer"})"), std::string(65, '1')), 64);
  EXPECT_EQ(reads(*schema(R"({"type":"number"})"), std::string(64, '1') + "e-999"), kAccepted);
}

TEST(ConstrainSchema, AcceptsOnlyNumbersThatAreFiniteInFp64) {
  const auto bounded = schema(R"({"type":"number","minimum":-5})"), free = schema(R"({"type":"number"})");
  for (const auto& automaton : {bounded, free}) {
    EXPECT_EQ(reads(*automaton, "9.99e307"), kAccepted);
    EXPECT_EQ(reads(*automaton, "9.99E+307"), kAccepted);
    EXPECT_EQ(reads(*automaton, "1e099"), kAccepted);
    EXPECT_EQ(reads(*automaton, "1e308"), kAccepted);
    EXPECT_EQ(reads(*automaton, "1.7976931348623157e308"), kAccepted);
    EXPECT_EQ(reads(*automaton, "1.79769313486231570000e308"), kAccepted);
    EXPECT_EQ(reads(*automaton, "1.7976931348623157001e308"), 24);
    EXPECT_EQ(reads(*automaton, "1.7976931348623159e308"), 21);
    EXPECT_EQ(reads(*automaton, "2e308"), 4);
    EXPECT_EQ(reads(*automaton, "9e309"), 4);
    EXPECT_EQ(reads(*automaton, "1e500"), 4);
    EXPECT_EQ(reads(*automaton, "1.5e+999"), 7);
    EXPECT_EQ(reads(*automaton, "1.5e-999"), kAccepted);
  }
  const std::string long_whole(64, '9');
  EXPECT_EQ(reads(*free, long_whole + "e244"), kAccepted);
  EXPECT_EQ(reads(*free, long_whole + "e245"), 67);
  EXPECT_EQ(reads(*free, "-12e244"), kAccepted);
  EXPECT_EQ(reads(*free, "0.1e245"), 6);
  EXPECT_EQ(reads(*free, "[1"), 0);
  EXPECT_EQ(reads(*schema("{}"), "[1e307, 2e308]"), 12);
  EXPECT_TRUE(std::isfinite(std::stod(long_whole + "e244")));
}

TEST(ConstrainGrammar, ReadsWhatLlamaCppReads) {
  const std::string sums = R"g(# sums
root ::= term ("+" term)*   # and products
term ::= factor ( "*" factor )*
factor ::= [0-9]+ | "(" root ")" |
  "-"? name
name ::= [a-z_] [a-z_0-9]{0,3})g";
  EXPECT_EQ(reads(*grammar(sums), "1+2*(a_1+-b)"), kAccepted);
  EXPECT_EQ(reads(*grammar(sums), "1+"), kBegun);
  EXPECT_EQ(reads(*grammar(sums), "abcde"), 4);
  EXPECT_EQ(reads(*grammar("root ::= \"\\x41\\u00e9\\n\" . [^\\]a]"), "A\xC3\xA9\n\n]"), 5);
  // Recursion at the end of a rule, in the middle, and in two ways at once.
  EXPECT_EQ(reads(*grammar("root ::= \"a\" root | \"b\""), std::string(5000, 'a') + "b"), kAccepted);
  EXPECT_EQ(reads(*grammar("root ::= \"a\" root \"b\" | \"\""), std::string(2000, 'a') + std::string(1999, 'b')),
            kBegun);
  EXPECT_EQ(reads(*grammar("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"\""), "aaaabcbc"), kAccepted);
  EXPECT_EQ(reads(*grammar("root ::= s\ns ::= \"a\" s s | \"\""), std::string(300, 'a')), kAccepted);
  EXPECT_EQ(reads(*grammar("root ::= x x \"!\"\nx ::= y\ny ::= \"\" | \"k\""), "kk!"), kAccepted);
  // As programs write grammars: an empty alternative first, lines inside of groups, loops around what may be empty.
  const std::string program = R"g(space ::= | " " | "\n"{1,2} [ \t]{0,20}
root ::= ws (call | ws)*
call ::= name "(" (
    name |  # "one"
    "\"" ([^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
  )? ")" space ";"
name ::= [a-zA-Z_][a-zA-Z0-9_]*
ws ::= ([ \t\n\r] | comment)*
comment ::= "//" [^\n]* "\n" | "/*" ([^*] | "*" [^/])* "*/")g";
  EXPECT_EQ(reads(*grammar(program), " // a\n f(\"\\u00e9\\n\") ; g(x);/* * */"), kAccepted);
  EXPECT_EQ(reads(*grammar(program), "f(x y"), 3);
  EXPECT_EQ(reads(*grammar("root ::= <think> [^<]* </think>"), "<think>a b</think>"), kAccepted);
  EXPECT_EQ(reads(*grammar("root ::= <think> [^<]* </think>"), "<think>a </b"), 11);
  const auto refused = [](const std::string& text) { return refusal([&] { grammar(text); }); };
  EXPECT_EQ(refused("root ::= <[5]> \"a\""),
            "grammar:1:10: tokens by their numbers (<[5]>) are not supported\n"
            "    write a special token as it is spelled: <think>");
  EXPECT_EQ(refused("root ::= !<think>*"),
            "grammar:1:10: 'any token but one' (!<...>) is not supported\n    write what may stand there instead");
  EXPECT_EQ(refused("root ::= <think\nx ::= \">\""), "grammar:1:10: a '<' without '>'");
  EXPECT_EQ(refused("rot ::= \"a\""),
            "grammar: has no rule 'root'\n    name the rule that describes the whole text root");
  EXPECT_EQ(refused("root ::= iten\nitem ::= \"a\""),
            "grammar:1:10: there is no rule 'iten'\n    did you mean 'item'?");
  EXPECT_EQ(refused("root ::= \"a"), "grammar:1:12: a text without the closing '\"'");
  EXPECT_EQ(
      refused("root ::= root \"a\" | \"b\""),
      "grammar: 'root' can lead back to itself before anything is written\n    put something before the recursion: "
      "list ::= item (\",\" item)* instead of list ::= list \",\" item");
  EXPECT_EQ(
      refused("root ::= \"a\" root"),
      "grammar: accepts no text at all\n    look for demands that contradict each other, and for recursion without an "
      "end");
}

TEST(ConstrainJson, ReadsAThousandNestedArrays) {
  const auto any = schema("true");
  EXPECT_EQ(reads(*any, std::string(1000, '[') + std::string(1000, ']')), kAccepted);
  EXPECT_EQ(reads(*any, std::string(100000, '[')), kBegun);
  EXPECT_EQ(reads(*compile({Kind::json_object}), "[1]"), 0);
}

TEST(ConstrainTriggers, HoldOnlyAfterTheirMarkers) {
  const std::vector<Trigger> triggers = {{"<call>", {Kind::json_object}, false},
                                         {"<n>", {Kind::regex, "[0-9]+"}, true}};
  const auto free = compile(triggers), required = compile(triggers, true);
  for (const auto& [text, outcome] :
       std::vector<std::pair<std::string, int>>{{"", kAccepted},
                                                {"hello \xFF <cal", kAccepted},
                                                {"a<call>", kBegun},
                                                {"a<call>x", 7},
                                                {"a<call>{}", kAccepted},
                                                {"<ca<call>{} and <call>{\"a\":1}.", kAccepted},
                                                {"x<n>", kBegun},
                                                {"x<n>12", kAccepted},
                                                {"x<n>12 ", 6}}) {
    EXPECT_EQ(reads(*free, text), outcome) << text;
    const bool marked = text.find('>') != std::string::npos;
    EXPECT_EQ(reads(*required, text), marked ? outcome : kBegun) << text;
  }
}

TEST(ConstrainChoice, AcceptsOneOfThem) {
  const auto automaton = compile({Kind::choice, "", {"yes", "no", "yesterday"}});
  EXPECT_EQ(reads(*automaton, "yes"), kAccepted);
  EXPECT_EQ(reads(*automaton, "yest"), kBegun);
  EXPECT_EQ(reads(*automaton, "nö"), 1);
  EXPECT_EQ(refusal([] {
              compile({Kind::choice, "", std::vector<std::string>(257, "a")});
            }),
            "choice: has 257 choices; at most 256 are accepted\n    give fewer");
  EXPECT_EQ(refusal([] {
              compile({Kind::choice, "", {std::string(4097, 'a')}});
            }),
            "choice 1: has 4097 bytes; at most 4096 are accepted\n    shorten it");
}

TEST(ConstrainWork, CanBeCancelled) {
  const std::atomic<bool> cancel = true;
  EXPECT_EQ(refusal([&] {
              compile({Kind::regex, "(a{1,300}){1,300}"}, &cancel);
            }),
            "constraint: its compilation was cancelled\n    send it again");
}

std::string refused_flags(const ConstraintFlags& flags) {
  return test::refusal([&] { language_of(flags, "easydel generate"); });
}

TEST(ConstraintFlags, SayALanguage) {
  EXPECT_FALSE(language_of({}, ""));
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "content");
  const std::string file = (folder / "file").string();
  EXPECT_EQ(language_of({.json_schema = file}, "")->key(), (Language{Kind::json_schema, "content"}).key());
  EXPECT_EQ(language_of({.json_object = true}, "")->key(), Language{Kind::json_object}.key());
  EXPECT_EQ(language_of({.regex = "a+"}, "")->key(), (Language{Kind::regex, "a+"}).key());
  EXPECT_EQ(language_of({.grammar = file}, "")->key(), (Language{Kind::grammar, "content"}).key());
  EXPECT_EQ(language_of({.choices = {"a", "b"}}, "")->key(), (Language{Kind::choice, "", {"a", "b"}}).key());
}

TEST(ConstraintFlags, PutTheLanguageAfterMarkers) {
  const Language pattern{Kind::regex, "a+"};
  const auto after = [&](bool required, bool ends) {
    return language_of(
               {.regex = "a+", .after = {"</think>", "Answer:"}, .after_required = required, .after_ends = ends}, "")
        ->key();
  };
  Language expected{.kind = Kind::free_text, .choices = {"</think>", "Answer:"}, .parts = {pattern, pattern}};
  EXPECT_EQ(after(false, false), expected.key());
  expected.min = 1;
  EXPECT_EQ(after(true, false), expected.key());
  expected.ends_text = true;
  EXPECT_EQ(after(true, true), expected.key());
}

TEST(ConstraintFlags, AreRefusedIfTheyDoNotFitTogether) {
  EXPECT_EQ(refused_flags({.json_schema = "missing.json", .regex = "a"}),
            "easydel generate: --json-schema and --regex are two constraints\n    give one of them");
  EXPECT_EQ(refused_flags({.after = {"x"}}),
            "easydel generate: --after has no constraint that could follow it\n"
            "    give --json-schema, --json-object, --regex, --grammar or --choice");
  EXPECT_EQ(refused_flags({.regex = "a", .after_required = true}),
            "easydel generate: --after-required has no effect without --after\n    give --after MARKER");
  EXPECT_EQ(refused_flags({.after_ends = true}),
            "easydel generate: --after-ends has no effect without --after\n    give --after MARKER");
}

}  // namespace
}  // namespace easydel::text::constrain
