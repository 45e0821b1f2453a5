// Rows of pairs, marked answers and steps: the tokens, what is learned of them, and the marks are those of TRL's
// trainers.
#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "easydel/train/marked_answers.h"
#include "easydel/train/method.h"
#include "easydel/train/separate_answers.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

std::vector<int32_t> numbers(const Value& list) {
  std::vector<int32_t> out;
  for (const Value& item : list.items) out.push_back(static_cast<int32_t>(*item.as_int()));
  return out;
}

// A sequence as TRL has it: its ids, and for each whether it is learned or which class it has.
struct Sequence {
  std::vector<int32_t> ids, learned;
  bool operator==(const Sequence&) const = default;
};
void PrintTo(const Sequence& sequence, std::ostream* out) {
  *out << ::testing::PrintToString(sequence.ids) << " learned " << ::testing::PrintToString(sequence.learned);
}

Sequence recorded(const Value& sequence) {
  const Value* const classes = sequence.find("labels");
  return {numbers(*sequence.find("ids")), numbers(classes ? *classes : *sequence.find("learned"))};
}

// The sequences of an example. Where the prompt is learned, too, a column says what belongs to the answer.
std::vector<Sequence> sequences_of(const data::Example& example, bool classes) {
  const data::Column* const column = example.find(in_answer);
  std::vector<Sequence> out;
  size_t begin = 0;
  for (const int32_t length : example.lengths) {
    Sequence& one = out.emplace_back();
    for (size_t i = begin; i < begin + static_cast<size_t>(length); ++i) {
      one.ids.push_back(example.tokens[i]);
      if (classes)
        one.learned.push_back(example.labels[i]);
      else if (i == begin)
        one.learned.push_back(0);  // no token precedes it
      else
        one.learned.push_back(column ? static_cast<int32_t>(std::get<std::vector<int64_t>>(column->values)[i - 1])
                                     : example.labels[i - 1] != data::no_label);
    }
    begin += static_cast<size_t>(length);
  }
  return out;
}

double number_of(const data::Example& example, const char* name) {
  return std::visit([](const auto& list) { return double(list.at(0)); }, example.find(name)->values);
}

bool has_nothing_learned(const Value& example) {
  return std::ranges::any_of(example.find("sequences")->items, [](const Value& sequence) {
    return std::ranges::count(recorded(sequence).learned, 1) == 0;
  });
}

TEST(PreparedAnswers, AreWhatTrlMakesOfThem) {
  const test::LogLines log;
  const Value cases = parse_json(files::read_compressed(test::test_data("trl/prepared_answers.json.gz")));
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), {});
  int64_t compared = 0;
  for (const auto& [name, one] : cases.entries) {
    SCOPED_TRACE(name);
    TrainerSection trainer;
    config::read(*one.find("trainer"), trainer, name).throw_if_any();
    const Value* const chat = one.find("chat_template");
    std::optional<std::string> chat_template;
    if (chat->is_text()) chat_template = chat->scalar;
    const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"), chat_template);
    const auto method = build_method({trainer, {}, tokenizer, nullptr, {{model, nullptr}, {}, {}}});
    const test::TemporaryFolder folder;
    test::write_file(folder / "rows.json", to_json(*one.find("rows")));
    data::DatasetOptions options;
    options.informs.emplace_back().data_files = {(folder / "rows.json").string()};
    options.kinds = trainer.facts().rows;
    std::vector<Value> expected = one.find("expected")->items;
    // Rows of which an answer was cut away are left out here; TRL keeps some of them (docs/differences.md).
    if (trainer.facts().task == models::Task::causal_lm) std::erase_if(expected, has_nothing_learned);
    if (expected.empty()) {  // TRL leaves all of them out
      EXPECT_THROW(data::Dataset::build(options, preparation(*method, trainer.method())), UserError);
      continue;
    }
    auto dataset = data::Dataset::build(options, preparation(*method, trainer.method()));
    std::vector<data::Example> examples;
    for (int64_t i = 0; i < dataset.examples_count(); ++i) examples.push_back(dataset.at(i));
    ASSERT_EQ(examples.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const data::Example& example = examples[i];
      std::vector<Sequence> want;
      for (const Value& sequence : expected[i].find("sequences")->items) want.push_back(recorded(sequence));
      const bool classes = expected[i].find("sequences")->items[0].find("labels") != nullptr;
      EXPECT_EQ(sequences_of(example, classes), want) << "row " << i;
      if (const Value* good = expected[i].find("good")) {
        EXPECT_EQ(number_of(example, answer_is_good), *good->as_double()) << "row " << i;
      }
      if (const Value* margin = expected[i].find("margin")) {
        EXPECT_EQ(number_of(example, "margin"), *margin->as_double()) << "row " << i;
      }
      ++compared;
    }
    // Mismatched pairs are made of micro-batches of three.
    for (size_t begin = 0; begin < expected.size() && expected[0].find("mismatched"); begin += 3) {
      std::vector<const data::Example*> micro;
      for (size_t i = begin; i < std::min(begin + 3, expected.size()); ++i) micro.push_back(&examples[i]);
      const Batch batch = method->collate_part(micro, 0, micro.size());
      const auto* const ids = batch.tokens.const_data_ptr<int64_t>();
      for (size_t i = 0; i < micro.size(); ++i) {
        const auto from = batch.cu_seqlens[micro.size() + i], to = batch.cu_seqlens[micro.size() + i + 1];
        std::vector<int32_t> want = recorded(*expected[begin + i].find("mismatched")).ids;
        // An answer that was cut behind its own prompt is not longer behind another one (docs/differences.md).
        const data::Example& other = *micro[i == 0 ? micro.size() - 1 : i - 1];
        if (int64_t(other.tokens.size()) == trainer.common.max_length) want.resize(size_t(to - from));
        EXPECT_EQ(std::vector<int32_t>(ids + from, ids + to), want) << "row " << begin + i;
      }
    }
  }
  EXPECT_GT(compared, 250);
}

data::TypedRow row_of(const char* json, const TrainerSection& trainer) {
  data::FieldRules rules;
  rules.taken = trainer.facts().rows;
  rules.inform = "mixture.informs[0]";
  return data::typed({parse_json(json), "a.jsonl:1"}, rules);
}

std::string refused(const std::string& keys, const char* json) {
  const test::LogLines log;
  TrainerSection trainer;
  config::read(parse_yaml(keys), trainer, "trainer").throw_if_any();
  const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  const auto method = build_method({trainer, {}, tokenizer, nullptr});
  return test::refusal([&] { preparation(*method, trainer.method())(row_of(json, trainer)); });
}

TEST(PreparedAnswers, RowsThatNoMethodCanLearnFromAreRefused) {
  EXPECT_EQ(refused("trainer_type: kto", R"({"prompt": "a", "completion": "b", "label": "maybe"})"),
            "a.jsonl:1: field 'label' holds maybe, which is neither true nor false\n"
            "    give true for a good completion and false for a bad one");
  EXPECT_EQ(refused("trainer_type: prm", R"({"prompt": "a", "completions": ["b", "c"], "labels": [true]})"),
            "a.jsonl:1: the row has 1 label for 2 steps\n    give one label for each step of 'completions'");
  EXPECT_EQ(refused("trainer_type: prm", R"({"prompt": "a", "completions": [], "labels": []})"),
            "a.jsonl:1: 'completions' is empty\n    give at least one step, or drop the row");
  EXPECT_EQ(refused("trainer_type: reward", R"({"chosen": "a", "rejected": "b", "margin": "large"})"),
            "a.jsonl:1: field 'margin' holds large, which is not a number");
  EXPECT_EQ(refused("trainer_type: tpo", R"({"prompt": "a", "chosen": "b", "rejected": "c"})"),
            "a.jsonl:1: the row has no field 'reference', the gold answer\n"
            "    give prompt, chosen, rejected and reference");
  EXPECT_EQ(refused("trainer_type: tpo", R"({"chosen": "a b", "rejected": "a c", "reference": "d"})"),
            "a.jsonl:1: 'reference' does not begin with the prompt that chosen and rejected share\n"
            "    give the field prompt, or begin all three answers with it");
  EXPECT_EQ(refused("trainer_type: kto", R"({"prompt": "a", "completion": "", "label": true})"),
            "a.jsonl:1: field 'completion' is empty\n    drop the row, or give it a text");
  EXPECT_EQ(refused("trainer_type: orpo", R"({"prompt": "", "chosen": "a", "rejected": "b"})"),
            "a.jsonl:1: field 'prompt' is empty\n    drop the row, or give it a text");
  for (const std::string& empty : {std::string("chosen"), std::string("rejected")}) {
    const std::string other = empty == "chosen" ? "rejected" : "chosen";
    EXPECT_EQ(
        refused("trainer_type: dpo", str(R"({"prompt": "a", ")", empty, R"(": "", ")", other, R"(": "b"})").c_str()),
        str("a.jsonl:1: field '", empty, "' is empty\n    drop the row, or give it a text"));
  }
  EXPECT_EQ(refused("trainer_type: sft", R"({"prompt": "a", "completion": ""})"),
            "a.jsonl:1: field 'completion' is empty\n    drop the row, or give it a text");
  EXPECT_EQ(refused("trainer_type: kto", R"({"prompt": "a"})"),
            "a.jsonl:1: the row has no field 'chosen'; it has: prompt\n"
            "    give prompt + chosen + rejected or prompt + completion + label, or name it with "
            "mixture.informs[0].format_fields: {your_name: chosen}");
}

}  // namespace
}  // namespace easydel::train
