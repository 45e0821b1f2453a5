#include "easydel/config/fields.h"

#include <gtest/gtest.h>

#include "easydel/config/tables.h"
#include "support/data.h"

namespace easydel::config {
namespace {

enum class Optimizer { adamw, lion, sgd };
constexpr auto choices(Optimizer) {
  return std::array{Choice{Optimizer::adamw, "adamw"}.also("adam_w"), Choice{Optimizer::lion, "lion"}.not_built(),
                    Choice{Optimizer::sgd, "sgd"}};
}

struct Source {
  std::string file;
  int64_t rows = 0;

  static constexpr auto doc = "A source of rows.";
  template <class C>
  static constexpr auto fields() {
    return std::array{field<&C::file>("Its file.", required()), field<&C::rows>("Rows taken.", between(0, 100))};
  }
  void settle(Keys& keys) {
    if (rows == 13) keys.refuse("rows", "13 brings bad luck", "take 12");
  }
};

struct Rest {
  bool known = false;
  Value others;

  static constexpr auto doc = "Keeps what it does not know.";
  static constexpr auto unknown_keys = &Rest::others;
  template <class C>
  static constexpr auto fields() {
    return std::array{field<&C::known>("A flag.")};
  }
};

struct Training {
  double rate = 5e-5;
  std::optional<int64_t> steps;
  Optimizer optimizer = Optimizer::adamw;
  std::vector<Source> sources;
  std::array<int64_t, 3> sizes = {1, 2, 3};
  std::map<std::string, double> weights;
  std::variant<bool, std::string> padding = false;
  Auto<int64_t> threads;
  Many<std::string> files;
  Value anything;
  std::optional<Source> extra;
  Rest rest;
  bool compile = false;
  std::string remote;
  bool verbose = true;

  static constexpr auto doc = "A training.";
  template <class C>
  static constexpr auto fields() {
    return std::array{
        field<&C::rate>("Step size.", at_least(0), alias("learning_rate"), deprecated("lr")),
        field<&C::steps>("Steps.", at_least(1)),
        field<&C::optimizer>("Optimizer."),
        field<&C::sources>("Sources."),
        field<&C::sizes>("Sizes.", above(0)),
        field<&C::weights>("Weights."),
        field<&C::padding>("Padding."),
        field<&C::threads>("Threads.", at_least(1)),
        field<&C::files>("Files."),
        field<&C::anything>("Anything."),
        field<&C::extra>("One more source."),
        field<&C::rest>("The rest."),
        field<&C::compile>("Compile.", no_effect("nothing is compiled")),
        field<&C::remote>("A remote store.", not_built("a remote store")),
        field<&C::verbose>("Say more."),
    };
  }
};

Problems read_text(const char* text, Training& out) { return read(parse_yaml(text), out, "run.yaml"); }

// The whole text for a document with mistakes.
std::string mistakes(const char* text) {
  Training out;
  return read_text(text, out).text();
}
std::string one(const std::string& problem) { return problem + "\n1 problem in run.yaml; nothing was run."; }

TEST(Fields, ReadEveryKindOfMember) {
  Training t;
  const Problems problems = read_text(
      "learning_rate: 1e-3\nsteps: 5\noptimizer: ADAM-W\nsources: [{file: a, rows: 2}, {file: b}]\nsizes: [3, 4, 5]\n"
      "weights: {x: 1, y: 2.5}\npadding: longest\nthreads: 4\nfiles: a.txt\nanything: [1, {b: c}]\nextra: {file: e}\n"
      "rest: {known: true, other: 1}\n",
      t);
  EXPECT_TRUE(problems.empty()) << problems.text();
  EXPECT_EQ(t.rate, 1e-3);
  EXPECT_EQ(t.steps, 5);
  EXPECT_EQ(t.optimizer, Optimizer::adamw);
  ASSERT_EQ(t.sources.size(), 2u);
  EXPECT_EQ(t.sources[0].rows, 2);
  EXPECT_EQ(t.sizes[2], 5);
  EXPECT_EQ(t.weights.at("y"), 2.5);
  EXPECT_EQ(std::get<std::string>(t.padding), "longest");
  EXPECT_EQ(*t.threads, 4);
  EXPECT_EQ(t.files, (Many<std::string>{"a.txt"}));
  EXPECT_EQ(to_json(t.anything), R"([1, {"b": "c"}])");
  EXPECT_EQ(t.extra->file, "e");
  EXPECT_EQ(to_json(t.rest.others), R"({"other": 1})");
}

TEST(Fields, AreWrittenBackAsADocumentThatReadsTheSame) {
  Training t, again;
  ASSERT_TRUE(read_text("rate: 0.1\nsources: [{file: a}]\nthreads: 2\nrest: {z: [1]}\npadding: true\n", t).empty());
  const Value document = write(t);
  ASSERT_TRUE(read(document, again).empty());
  EXPECT_EQ(write(again), document);
  EXPECT_EQ(to_yaml_flow(differences(document, write(Training{}))),
            "{rate: 0.1, sources: [{file: a, rows: 0}], padding: true, threads: 2, rest: {z: [1]}}");
}

TEST(Fields, TellWhatIsWrongWithEachTypeOfValue) {
  EXPECT_EQ(mistakes("rate: fast"),
            one("run.yaml:1:7: rate: 'fast' is not a number\n    expected a number of at least 0 (default 5e-05)"));
  EXPECT_EQ(mistakes("rate: -1"),
            one("run.yaml:1:7: rate: -1 is out of range\n    expected a number of at least 0 (default 5e-05)"));
  EXPECT_EQ(mistakes("rate: '1e-5'"), one("run.yaml:1:7: rate: '1e-5' is not a number\n    expected a number of at "
                                          "least 0 (default 5e-05); the quotes make it a string"));
  EXPECT_EQ(mistakes("steps: 2.5"), one("run.yaml:1:8: steps: '2.5' is not an integer\n    expected an integer of at "
                                        "least 1, or null (default null)"));
  EXPECT_EQ(mistakes("steps: [1]"), one("run.yaml:1:8: steps: a list is not an integer\n    expected an integer of at "
                                        "least 1, or null (default null)"));
  EXPECT_EQ(mistakes("verbose: yes"),
            one("run.yaml:1:10: verbose: 'yes' is not true or false\n    'yes' is a string in YAML 1.2; write true"));
  EXPECT_EQ(mistakes("verbose: 1"),
            one("run.yaml:1:10: verbose: '1' is not true or false\n    expected true or false (default true)"));
  EXPECT_EQ(mistakes("sizes: [1, 2]"), one("run.yaml:1:8: sizes: has 2 items, not 3\n    expected a list of 3, each "
                                           "item an integer above 0 (default [1, 2, 3])"));
  EXPECT_EQ(mistakes("weights: 3"),
            one("run.yaml:1:10: weights: '3' is not a map\n    expected a map, each value a number (default {})"));
  EXPECT_EQ(mistakes("weights: {a: b}"),
            one("run.yaml:1:14: weights.a: 'b' is not a number\n    expected a map, each value a number (default {})"));
  EXPECT_EQ(
      mistakes("padding: [1]"),
      one("run.yaml:1:10: padding: a list is not valid here\n    expected true or false, or a string (default false)"));
  EXPECT_EQ(mistakes("threads: none"), one("run.yaml:1:10: threads: 'none' is not an integer\n    expected auto, or an "
                                           "integer of at least 1 (default auto)"));
  EXPECT_EQ(mistakes("files: true"), one("run.yaml:1:8: files: true is not a string\n    expected a string, or a list "
                                         "of them (default []); write \"true\" to give the word as a string"));
  EXPECT_EQ(mistakes("rest: 3"),
            one("run.yaml:1:7: rest: is not a section\n    expected keys below it, one per line: 'key: value'"));
}

TEST(Fields, KnowWordsThatAreNotBuiltYetFromWordsThatAreNone) {
  EXPECT_EQ(mistakes("optimizer: lion"),
            one("run.yaml:1:12: optimizer: 'lion' is not built yet\n    built: adamw, sgd"));
  EXPECT_EQ(mistakes("optimizer: adamv"), one("run.yaml:1:12: optimizer: unknown value 'adamv'\n    did you mean "
                                              "'adamw'? expected one of: adamw, sgd (default adamw)"));
  EXPECT_EQ(mistakes("optimizer: newton"),
            one("run.yaml:1:12: optimizer: unknown value 'newton'\n    expected one of: adamw, sgd (default adamw)"));
  EXPECT_EQ(
      mistakes("remote: s3"),
      one("run.yaml:1:9: remote: a remote store is not built yet\n    leave the key out, or give its default \"\""));
  Training t;
  EXPECT_TRUE(read_text("remote: ''", t).empty());
}

TEST(Fields, AnswerAnUnknownKeyWithWhatWasMeant) {
  EXPECT_EQ(mistakes("stepz: 1"), one("run.yaml:1:1: stepz: no such key\n    did you mean 'steps'?"));
  EXPECT_EQ(mistakes("rest: {}\nknown: true"), one("run.yaml:2:1: known: no such key\n    did you mean 'rest.known'?"));
  EXPECT_EQ(mistakes("sources: [{file: a, colour: 1}]"),
            one("run.yaml:1:21: sources[0].colour: no such key\n    known keys: file, rows"));
}

TEST(Fields, RefuseAKeyUnderTwoNames) {
  EXPECT_EQ(
      mistakes("rate: 1\nlr: 2"),
      one("run.yaml:2:1: rate: is given twice, as 'rate' and as 'lr'\n    they are the same key; keep one of them"));
}

TEST(Fields, AskForWhatIsRequired) {
  EXPECT_EQ(mistakes("sources: [{rows: 1}]"), one("run.yaml:1:11: sources[0].file: is missing\n    expected a string"));
}

TEST(Fields, CollectEveryProblemInTheOrderOfTheFile) {
  EXPECT_EQ(mistakes("optimizer: x\nsources:\n  - file: a\n    rows: 13\n  - file: b\n    rows: 101\nrate: y\n"),
            "run.yaml:1:12: optimizer: unknown value 'x'\n    expected one of: adamw, sgd (default adamw)\n"
            "run.yaml:4:11: sources[0].rows: 13 brings bad luck\n    take 12\n"
            "run.yaml:6:11: sources[1].rows: 101 is out of range\n    expected an integer from 0 to 100 (default 0)\n"
            "run.yaml:7:7: rate: 'y' is not a number\n    expected a number of at least 0 (default 5e-05)\n"
            "4 problems in run.yaml; nothing was run.");
}

TEST(Fields, NoteOldNamesEmptyKeysAndKeysWithoutEffectOnce) {
  Training t;
  const Problems problems = read_text("lr: 1\nverbose:\ncompile: true\n", t);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(problems.notes(), (std::vector<std::string>{"run.yaml:1:5: rate: 'lr' is the old name of 'rate'",
                                                        "run.yaml:2:9: verbose: is empty; its default true is used",
                                                        "has no effect here: compile (nothing is compiled)"}));
}

struct Both {
  Source source;
  Rest rest;
  static Section section() { return flat<&Both::source, &Both::rest>("Two tables in one."); }
};

TEST(Fields, OfSeveralStructsMakeOneFlatSection) {
  Both both;
  EXPECT_TRUE(read(parse_yaml("{file: f, known: true, more: 1}"), both).empty());
  EXPECT_EQ(both.source.file, "f");
  EXPECT_TRUE(both.rest.known);
  EXPECT_EQ(to_yaml_flow(write(both)), "{file: f, rows: 0, known: true, more: 1}");
}

TEST(Fields, MakeASchemaAndAPage) {
  const Value schema = json_schema(section_of<Training>());
  const Value& properties = *schema.find("properties");
  EXPECT_EQ(
      to_json(*properties.find("steps")),
      R"({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": null, "description": "Steps."})");
  EXPECT_EQ(to_json(*properties.find("optimizer")->find("enum")), R"(["adamw", "adam_w", "sgd"])");
  EXPECT_EQ(to_json(*properties.find("sources")->find("items")->find("required")), R"(["file"])");
  EXPECT_EQ(properties.find("lr")->find("deprecated")->as_bool(), true);
  EXPECT_EQ(schema.find("additionalProperties")->as_bool(), false);
  const std::string page = markdown(section_of<Training>(), "training");
  EXPECT_NE(
      page.find("| `rate` | `5e-05` | a number of at least 0 | Step size. Also `learning_rate`. Old name: `lr`. |\n"),
      std::string::npos);
  EXPECT_NE(page.find("## training.sources[]\n\nSources.\n\nA source of rows.\n\n"), std::string::npos);
}

TEST(Fields, AreFoundByTheirPath) {
  const Section& root = section_of<Training>();
  EXPECT_EQ(find_key(root, "sources[0].rows")->name, "rows");
  EXPECT_EQ(find_key(root, "rest.known")->name, "known");
  EXPECT_EQ(find_key(root, "lr")->name, "rate");
  EXPECT_EQ(find_key(root, "rest.nothing"), nullptr);
  EXPECT_EQ(find_key(root, "rate.nothing"), nullptr);
}

}  // namespace
}  // namespace easydel::config
