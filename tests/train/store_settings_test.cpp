#include "easydel/train/store_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/train/method.h"
#include "easydel/train/sft_config.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

constexpr const char* chat =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}assistant: {% "
    "endif %}";

// One of each kind that some method takes.
constexpr std::array rows{
    R"({"text": "Once upon a time there was a dog who had a hat."})",
    R"({"messages": [{"role": "user", "content": "How did Max feel?"}, {"role": "assistant", "content": "mad"}]})",
    R"({"prompt": "One day, Max the dog", "completion": " saw a warm hat in the river."})",
    R"({"prompt": "One day, Max", "chosen": " saw a hat.", "rejected": " was mad.", "reference": " saw it."})",
    R"({"prompt": "One day, Max", "completion": " saw a hat.", "label": true})",
    R"({"prompt": "What is 2 + 2?", "completions": ["It is 4.", "So it is 5."], "labels": [true, false]})",
    R"({"query": "Who saw a hat?", "positive": "Max saw a hat.", "negatives": ["Lily had a ball."]})",
    R"({"prompt": "One day, Max the dog saw", "answer": "4"})",
    R"({"text": "Max was very kind.", "label": 1})"};

class StoreSettings : public testing::Test {
 protected:
  // Nothing: such a document has a mistake.
  static std::optional<TrainerSection> section(const std::string& method, const std::string& key = "",
                                               const std::string& value = "") {
    TrainerSection out;
    const std::string yaml = "{trainer_type: " + method + (key.empty() ? "" : ", " + key + ": " + value) + "}";
    try {
      if (!config::read(parse_yaml(yaml), out).empty()) return std::nullopt;
    } catch (const UserError&) {
      return std::nullopt;
    }
    return out;
  }
  // The section with another value of the key; nothing: none of the values that are tried is one.
  static std::optional<TrainerSection> changed(const std::string& method, const config::Key& key) {
    const auto written = [&](const TrainerSection& trainer) {
      const Value all = config::write(trainer);
      const Value* const value = all.find(key.name);  // keys that are not built are left out
      return value ? to_json(*value) : "";
    };
    const std::string before = written(*section(method));
    for (const char* value :
         {"true",    "false",  "3",    "2",     "0.25", "0.6",      "1.5",      "7",          "[1, 2]",
          "[0.25]",  "{a: 1}", "x",    "hinge", "ipo",  "simpo",    "trl_0_24", "forward_kl", "apo_zero_unpaired",
          "triplet", "dft",    "mean", "k2",    "gspo", "sequence", "none",     "sum",        "fkl"})
      if (std::optional<TrainerSection> out = section(method, key.name, value); out && written(*out) != before)
        return out;
    return std::nullopt;
  }
  std::string settings(const TrainerSection& trainer) const {
    data::MixtureConfig mixture;
    mixture.enable_caching = false;
    return to_json(stream_options(trainer, mixture, *tokenizer_, 512)->settings);
  }
  // What the method makes of the rows, errors among them; nothing: it cannot be built alone.
  std::optional<std::string> examples(const TrainerSection& trainer) const {
    const log::Quiet quiet;
    std::unique_ptr<Method> method;
    const data::MixtureConfig mixture;
    try {
      method = build_method({trainer, mixture, tokenizer_, nullptr});
    } catch (const UserError&) {
      return std::nullopt;
    }
    const data::Prepare prepare = preparation(*method, trainer.method());
    data::FieldRules rules;
    rules.taken = trainer.facts().rows;
    rules.all_columns = trainer.facts().columns;
    std::string out;
    for (const char* row : rows) try {
        const data::Prepared made = prepare(data::typed({parse_json(row), "rows.jsonl:1"}, rules));
        out += str(made.cut_tokens, made.too_long, ":");
        if (made.example) add(*made.example, out);
        for (const data::Example& example : made.further) add(example, out);
      } catch (const UserError& error) {
        out += error.what();
      }
    return out;
  }
  static void add(const data::Example& example, std::string& out) {
    for (const auto* list : {&example.tokens, &example.labels, &example.lengths})
      for (const int32_t number : *list) out += str(number, ",");
    for (const data::Column& column : example.columns) {
      out += column.name;
      std::visit(
          [&](const auto& values) {
            for (const auto value : values) out += str(" ", double(value));
          },
          column.values);
    }
    out += "\n";
  }
  const test::TemporaryFolder folder_;
  const std::shared_ptr<const text::Tokenizer> tokenizer_ =
      text::Tokenizer::load(test::test_data("models/stories260K-chat"), chat);
};

TEST_F(StoreSettings, KeysThatShapeNoExamplesDoNotCountAndShapeNone) {
  int compared = 0;
  for (const MethodConfig& method : method_configs()) {
    const std::string name(method.name);
    const TrainerSection before = *section(name);
    std::set<std::string> free;
    if (method.keys_after_examples)
      for (const std::string_view key : method.keys_after_examples()) free.emplace(key);
    const std::optional<std::string> made = examples(before);
    for (const config::Key& key : method.section().keys) {
      const bool is_free = free.erase(key.name) > 0 || !key.no_effect.empty() || !key.not_built.empty();
      const std::optional<TrainerSection> other = changed(name, key);
      if (!other) continue;
      EXPECT_EQ(settings(*other) == settings(before), is_free) << name << "." << key.name;
      const std::optional<std::string> now = is_free && made ? examples(*other) : std::nullopt;
      if (!now) continue;
      EXPECT_EQ(*now, *made) << name << "." << key.name;
      ++compared;
    }
    EXPECT_TRUE(free.empty()) << name << " has no key " << *free.begin();
  }
  EXPECT_GT(compared, 150) << "most keys have another value here";
}

TEST_F(StoreSettings, KeysThatShapeExamplesCount) {
  for (const auto& [method, key, value] : {std::array{"dpo", "max_prompt_length", "4"},
                                           {"tpo", "tpo_alpha", "0"},
                                           {"sft", "assistant_only_loss", "true"},
                                           {"prm", "step_separator", "x"},
                                           {"embedding", "loss_type", "triplet"},
                                           {"cpo", "max_length", "9"},
                                           {"sft", "train_on_inputs", "true"},
                                           {"sft", "loss_config", "{shift_tokens: false}"},
                                           {"sft", "loss_config", "{ignore_index: -7}"},
                                           {"base", "doc_stride", "9"}})
    EXPECT_NE(settings(*section(method, key, value)), settings(*section(method))) << method << "." << key;
  for (const auto& [key, value] : {std::pair{"loss_config", "{z_loss: 0.5}"}, {"learning_rate", "0.5"}})
    EXPECT_EQ(settings(*section("sft", key, value)), settings(*section("sft"))) << key;
}

TEST_F(StoreSettings, APlugInCountsByItsContents) {
  const auto library = folder_ / "plugin.so";
  test::write_file(library, "code");
  register_method_config(method_config<SftConfig>("zz_stored"), library);
  const std::string first = settings(*section("zz_stored"));
  EXPECT_NE(first.find("\"plugin\""), std::string::npos) << first;
  EXPECT_EQ(settings(*section("zz_stored")), first);
  test::write_file(library, "changed code");
  EXPECT_NE(settings(*section("zz_stored")), first);
  EXPECT_EQ(settings(*section("sft")).find("\"plugin\""), std::string::npos);
}

// Rows that a process keeps beside the examples, and examples that only the model's classes decide, are not stored.
TEST_F(StoreSettings, SomeExamplesAreNotStored) {
  const data::MixtureConfig mixture;
  const auto stores = [&](const std::string& method, models::Task task) {
    return store_options(*section(method), mixture, *tokenizer_, 512, task, nullptr).has_value();
  };
  EXPECT_TRUE(stores("sft", models::Task::causal_lm));
  EXPECT_TRUE(stores("base", models::Task::causal_lm));
  EXPECT_FALSE(stores("grpo", models::Task::causal_lm));
  EXPECT_FALSE(stores("base", models::Task::sequence_classification));
  EXPECT_EQ(why_not_stored(*section("grpo"), models::Task::causal_lm, nullptr),
            "trainer_type grpo reads the rows' fields besides their tokens");
  EXPECT_EQ(why_not_stored(*section("base"), models::Task::masked_lm, nullptr),
            "what the rows become depends on the classes of the model, which is for masked language modelling");
}

}  // namespace
}  // namespace easydel::train
