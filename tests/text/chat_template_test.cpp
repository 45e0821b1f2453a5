#include "easydel/text/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/text/jinja/interpreter.h"
#include "support/data.h"
#include "text/fixed_day.h"

namespace easydel::text {
namespace {

using test::refusal;

Value data(const std::string& name) {
  return parse_json(files::read_compressed(test::test_data("templates/" + name)), name);
}

std::vector<Value> lines(const std::string& name) {
  std::vector<Value> out;
  std::string text = files::read_compressed(test::test_data("templates/" + name));
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    out.push_back(parse_json(text.substr(begin, end - begin), name));
  return out;
}

std::string render(const std::string& source, const std::string& context = "{}") {
  return ChatTemplate(source, "t").render(parse_json(context, "context")).text;
}
std::string refused(const std::string& source, const std::string& context = "{}") {
  return refusal([&] { render(source, context); });
}

TEST(ChatTemplate, RendersEveryRealTemplateAsJinjaDoes) {
  const FixedDay recorded(1721952000);
  Value sources = data("templates.json.gz"), contexts = data("contexts.json.gz");
  std::map<std::string, ChatTemplate> templates;
  for (auto& [name, source] : sources.entries) templates.emplace(name, ChatTemplate(source.scalar, name));
  int count = 0;
  for (const Value& golden : lines("goldens.jsonl.gz")) {
    SCOPED_TRACE(golden.find("template")->scalar + " with " + golden.find("context")->scalar);
    const ChatTemplate& source = templates.at(golden.find("template")->scalar);
    const Value& context = *contexts.find(golden.find("context")->scalar);
    ++count;
    if (golden.find("error")) {
      std::string text = refusal([&] { source.render(context); });
      EXPECT_NE(text.find(golden.find("message")->scalar), std::string::npos) << text;
      continue;
    }
    Rendering rendering = source.render(context);
    ASSERT_EQ(rendering.text, golden.find("output")->scalar);
    const Value* spans = golden.find("generation_spans");
    EXPECT_EQ(rendering.has_generation_blocks, spans != nullptr);
    if (!spans) continue;
    ASSERT_EQ(rendering.generation_spans.size(), spans->items.size());
    for (size_t i = 0; i < spans->items.size(); ++i) {
      EXPECT_EQ(rendering.generation_spans[i].first, spans->items[i].items[0].as_int());
      EXPECT_EQ(rendering.generation_spans[i].second, spans->items[i].items[1].as_int());
    }
  }
  EXPECT_EQ(count, 1232);
}

TEST(ChatTemplate, DoesEachThingAsJinjaDoes) {
  for (const Value& unit : lines("units.jsonl.gz")) {
    SCOPED_TRACE(unit.find("name")->scalar + ": " + unit.find("template")->scalar);
    auto rendered = [&] { return ChatTemplate(unit.find("template")->scalar).render(*unit.find("context")).text; };
    if (const Value* output = unit.find("output"))
      EXPECT_EQ(rendered(), output->scalar);
    else
      EXPECT_THROW(rendered(), UserError);
  }
}

TEST(ChatTemplate, PrintsValuesAsPythonDoes) {
  EXPECT_EQ(render("{{ [1, 2.0, 1e16, 1e-5, 'a', \"it's\", none, true, {'k': ()}] }}"),
            "[1, 2.0, 1e+16, 1e-05, 'a', \"it's\", None, True, {'k': ()}]");
  EXPECT_EQ(render("{{ 0.1 + 0.2 }} {{ 7 // -2 }} {{ 7 % -2 }} {{ 2 ** 10 }} {{ 1 / 2 }} {{ -0.0 }}"),
            "0.30000000000000004 -4 -1 1024 0.5 -0.0");
  EXPECT_EQ(render("{{ {'a': 'é', 'b': [1, {}]} | tojson }}"), "{\"a\": \"é\", \"b\": [1, {}]}");
  EXPECT_EQ(render("{{ {'b': 1, 'a': '<'} | tojson(indent=2, sort_keys=true) }}"), "{\n  \"a\": \"<\",\n  \"b\": 1\n}");
  EXPECT_EQ(render("{{ 'é🙂' | tojson(ensure_ascii=true) }}"), "\"\\u00e9\\ud83d\\ude42\"");
}

TEST(ChatTemplate, ScopesNamesAsJinjaDoes) {
  EXPECT_EQ(render("{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}"), "15151");
  EXPECT_EQ(
      render("{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}"),
      "6");
  EXPECT_EQ(render("{% macro m(a, b=2) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{% set c = 3 %}{{ m(1) }}{{ m(1, b=7) }}"),
            "123173");
  EXPECT_EQ(render("{% macro box() %}[{{ caller('x') }}]{% endmacro %}{% call(v) box() %}{{ v }}!{% endcall %}"),
            "[x!]");
  EXPECT_EQ(render("{% for x in [[1, [2, [3]]]] recursive %}{% for y in x %}{% if y is number %}{{ y }}{% else %}{{ "
                   "loop is defined }}{% endif %}{% endfor %}{% endfor %}"),
            "1True");
  EXPECT_EQ(render("{% for x in [1, [2, [3]]] recursive %}{% if x is number %}{{ x }}{% else %}({{ loop(x) }}){% endif "
                   "%}{% endfor %}"),
            "1(2(3))");
}

TEST(ChatTemplate, EscapesWhatIsAddedToSafeText) {
  EXPECT_EQ(render("{{ '<a>' | safe }}{{ '<b>' + ('<c>' | safe) }}{{ ('<c>' | safe) ~ '<d>' }}"),
            "<a>&lt;b&gt;<c><c><d>");
}

// Templates drawn from a grammar and real ones with parts cut, doubled and swapped (scripts/fuzz_templates.py).
TEST(ChatTemplate, DoesWithRandomTemplatesAsJinjaDoes) {
  const std::vector<Value> cases = lines("fuzzed.jsonl.gz");
  const Value& context = *cases.at(0).find("context");
  for (size_t i = 1; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].find("template")->scalar);
    auto rendered = [&] { return ChatTemplate(cases[i].find("template")->scalar).render(context).text; };
    if (const Value* output = cases[i].find("output"))
      EXPECT_EQ(rendered(), output->scalar);
    else
      EXPECT_THROW(rendered(), UserError);
  }
  EXPECT_GT(cases.size(), 1000U);
}

TEST(ChatTemplate, BlocksStandWhereTheyAreAndSeeTheNamesOfTheTemplate) {
  EXPECT_EQ(render("{% set x = 1 %}{% block a %}[{{ x }}{% set x = 2 %}{{ x }}]{% endblock %}{{ x }}{{ self.a() }}"),
            "[12]1[12]");
  EXPECT_EQ(render("{% for i in [1, 2] %}{% block a %}{{ i }}{% endblock a %}{% block b scoped %}{{ i }}{% endblock "
                   "%}{% endfor %}"),
            "12");
  EXPECT_EQ(render("{% if true %}{% set q = 3 %}{% endif %}{% block a %}{{ q }}{% endblock %}"), "3");
  EXPECT_EQ(refused("{% block a %}{% endblock %}{% block a %}{% endblock %}"), "t:1:39: block 'a' defined twice");
  EXPECT_EQ(refused("{% block a-b %}{% endblock %}"),
            "t:1:11: the name of a block has a hyphen\n    use an underscore instead");
  EXPECT_EQ(refused("{% block a required %} {% endblock %}"), "t:1:4: Required block 'a' not found");
  EXPECT_EQ(refused("{% block a required %}x{% endblock %}"),
            "t:1:27: Required blocks can only contain comments or whitespace");
  EXPECT_EQ(refused("{% block a %}{{ self.a() }}{% endblock %}"),
            "t:1:23: the template goes too deep (endless recursion?)");
}

TEST(ChatTemplate, EscapesOutputWhereItIsToldTo) {
  EXPECT_EQ(render("{% autoescape true %}{{ '<' }}{{ '<'|safe }}{% set y %}<b>{{ '&' }}{% endset %}{{ y }}{{ '<' ~ y "
                   "}}{{ ['<', y]|join('>') }}{% endautoescape %}{{ '<' }}"),
            "&lt;<<b>&amp;&lt;<b>&amp;&lt;&gt;<b>&amp;<");
  EXPECT_EQ(render("{% macro m(a) %}<i>{{ a }}</i>{% endmacro %}{% autoescape true %}{{ m('<') }}{% macro n(a) %}<i>{{ "
                   "a }}</i>{% endmacro %}{{ n('<') }}{% endautoescape %}{{ m('<') }}"),
            "<i><</i><i>&lt;</i><i><</i>");
  EXPECT_EQ(render("{% autoescape true %}{{ '<a>'|replace('a', '<') }}{{ {'k': '<'}|xmlattr }}{{ 'www.x.org'|urlize "
                   "}}{% filter upper %}a{{ '<' }}{% endfilter %}{% endautoescape %}"),
            "&lt;&lt;&gt; k=\"&lt;\"<a href=\"https://www.x.org\" rel=\"noopener\">www.x.org</a>A&LT;");
  EXPECT_EQ(render("{% autoescape true %}{% block a %}{{ '<' }}{% endblock %}{% endautoescape %}"), "<");
}

TEST(ChatTemplate, ReshapesTextAsJinjaDoes) {
  EXPECT_EQ(render("{{ 'a-very long-hyphenated sentence' | wordwrap(8) }}"), "a-very\nlong-hyp\nhenated\nsentence");
  EXPECT_EQ(render("{{ '<p>a  <b>b</b></p> &lt;' | striptags }}"), "a b <");
  EXPECT_EQ(render("{{ {'id': 'x', 'n': none, 'q': '<'} | xmlattr }}"), " id=\"x\" q=\"&lt;\"");
  EXPECT_EQ(render("{{ 1536 | filesizeformat }} {{ 1536 | filesizeformat(true) }} {{ 1 | filesizeformat }}"),
            "1.5 kB 1.5 KiB 1 Byte");
  EXPECT_EQ(render("{{ '(www.x.org).' | urlize }}"), "(<a href=\"https://www.x.org\" rel=\"noopener\">www.x.org</a>).");
  EXPECT_EQ(render("{{ [('a', 1), ('b c', '&')] | urlencode }}"), "a=1&b+c=%26");
  EXPECT_EQ(refused("{{ 'a' | upper(1) }}"), "t:1:16: upper() takes 1 positional arguments but 2 were given");
}

TEST(ChatTemplate, SaysWhereItCannotBeParsed) {
  EXPECT_EQ(refused("a\n{% if x %}"), "t:2:11: the template ends inside of a block\n    {% endif %} is missing");
  EXPECT_EQ(refused("{{ 1 + }}"), "t:1:8: unexpected '}}'\n    a value would fit");
  EXPECT_EQ(refused("{{ (1] }}"), "t:1:6: unexpected ']'\n    ')' would fit");
  EXPECT_EQ(refused("{{ 'a }}"), "t:1:4: the string has no end\n    close it with '");
  EXPECT_EQ(refused("x {# y"), "t:1:3: the comment has no end\n    close it with '#}'");
  EXPECT_EQ(refused("{% nonsense %}"),
            "t:1:4: unknown tag 'nonsense'\n    known: if, for, set, macro, call, filter, with, block, autoescape, "
            "generation, break, continue, raw");
  EXPECT_EQ(
      refused("{% include 'x' %}"),
      "t:1:4: {% include %} is refused: a chat template is one file\n    write what it would bring into the template");
  EXPECT_EQ(refused("{{ x | nonsense }}"), "t:1:17: no filter named 'nonsense'");
  EXPECT_EQ(refused("{{ x is nonsense }}"), "t:1:18: no test named 'nonsense'");
  EXPECT_EQ(refused("{% break %}"), "t:1:4: 'break' is outside a loop");
  EXPECT_TRUE(
      refused("{{ " + std::string(200, '(') + "1" + std::string(200, ')') + " }}").ends_with(": is nested too deeply"));
}

TEST(ChatTemplate, SaysWhatWentWrongAndWhere) {
  EXPECT_EQ(refused("\n{{ raise_exception('no ' ~ 1) }}"), "t:2:28: no 1");
  EXPECT_EQ(refused("{{ x.y }}"), "t:1:4: 'x' is undefined");
  EXPECT_EQ(refused("{{ x.y.z }}", R"({"x": {}})"), "t:1:4: 'dict object' has no attribute 'y'");
  EXPECT_EQ(refused("{{ 'a' + 1 }}"), "t:1:10: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(refused("{{ [].append(1) }}"), "t:1:14: access to attribute 'append' of 'list' object is unsafe.");
  EXPECT_EQ(refused("{% if true %}{{ 1 | nonsense }}{% endif %}"), "t:1:17: No filter named 'nonsense' found.");
  EXPECT_EQ(refused("{{ 1 // 0 }}"), "t:1:9: integer division or modulo by zero");
}

TEST(ChatTemplate, IsBounded) {
  EXPECT_EQ(refused("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
            "t:1:46: the template does more than 20000000 steps");
  EXPECT_EQ(refused("{{ range(100001) | list }}"),
            "t:1:10: Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  EXPECT_EQ(refused("{{ 'x' * 100000000 }}"), "t:1:10: a value would be larger than 64 MiB");
  EXPECT_EQ(refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
            "t:1:16: the template goes too deep (endless recursion?)");
  EXPECT_EQ(refused("{% set x = 'x' * 60000000 %}{{ x }}{{ x }}"), "t:1:39: the template writes more than 64 MiB");
}

TEST(ChatTemplate, HasATimeAfterWhichItIsStopped) {
  jinja::Template slow = jinja::parse("{% for a in range(99999) %}{{ a }}{% endfor %}", "t");
  jinja::Interpreter interpreter(slow, {.time = std::chrono::milliseconds(0)});
  try {
    interpreter.render(jinja::from_document(Value::map()));
    FAIL() << "it was not stopped";
  } catch (const jinja::Failure& failure) {
    EXPECT_STREQ(failure.what(), "the template takes longer than 0 ms");
    EXPECT_EQ(interpreter.line(), 1);
    EXPECT_GT(interpreter.column(), 1);
  }
}

TEST(ChatTemplate, LooksForAFilterOnlyWhereItIsReached) {
  EXPECT_EQ(render("{{ (1 is nope) if false else 2 }}{{ 3 if true else (4 | nope) }}"), "23");
  EXPECT_EQ(refused("{{ 1 }}\n{{ (2 | nope) ~ (3 if 4 else 5) }}"), "t:2:13: no filter named 'nope'");
}

TEST(ChatTemplate, FailsAtItemsOnlyWhereSomebodyGoesThroughThem) {
  EXPECT_EQ(render("{{ not (1 | items) }}"), "False");
  EXPECT_EQ(refused("{{ 1 | items | list }}"), "t:1:4: Can only get item pairs from a mapping.");
}

TEST(ChatTemplate, TellsNumbersThatAreTooLarge) {
  EXPECT_EQ(render("{{ +(-0.0) }} {{ '4.9' | int }} {{ 'nan' | int(7) }} {{ '%d' is divisibleby 2 }}"),
            "-0.0 4 7 False");
  EXPECT_EQ(refused("{{ 1e20 | int }}"), "t:1:4: a whole number becomes too large");
  EXPECT_EQ(refused("{{ '99999999999999999999' | int(5) }}"), "t:1:33: a whole number becomes too large");
}

TEST(ChatTemplate, HasNoWayOut) {
  EXPECT_EQ(render("{{ ''.__class__ is defined }}{{ x.__init__ is defined }}{{ range.__globals__ is defined }}",
                   R"({"x": {}})"),
            "FalseFalseFalse");
}

}  // namespace
}  // namespace easydel::text
