#include "easydel/models/registry_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/models/auto_model.h"
#include "support/data.h"

namespace easydel::models {
namespace {

TEST(Registry, KnowsTheClassesOfTheFamilies) {
  EXPECT_EQ(registered_module("causal-language-model", "llama"), "LlamaForCausalLM");
  EXPECT_EQ(registered_module("causal-language-model", "gpt2"), "GPT2LMHeadModel");
  EXPECT_EQ(registered_config("gpt2"), "GPT2Config");
  EXPECT_EQ(registered_module("sequence-classification", "llama"), "LlamaForSequenceClassification");
  EXPECT_EQ(registered_module("base-module", "gpt2"), "GPT2Model");
  EXPECT_EQ(bound_task("llama", {"LlamaForSequenceClassification"}), "sequence-classification");
  EXPECT_EQ(bound_task("llama", {"LlamaForCausalLM"}), "causal-language-model");
  EXPECT_EQ(bound_task("llama", {"SomethingElse"}), "causal-language-model");
  EXPECT_EQ(bound_task("nothing", {}), "");
}

TEST(Registry, SaysWhatIsNotThere) {
  EXPECT_EQ(test::refusal([] { registered_module("bogus", "llama"); }).substr(0, 28), "task: 'bogus' is not defined");
  EXPECT_EQ(test::refusal([] { registered_module("causal-language-model", "lama"); }),
            "model_type: 'lama' is not defined for the task causal-language-model\n    did you mean 'llama'?");
  EXPECT_EQ(test::refusal([] { registered_module("auto-bind", "llama"); }),
            "model_type: 'llama' is not defined for the task auto-bind\n    no model has this task yet");
  EXPECT_EQ(test::refusal([] { registered_config("lama"); }),
            "model_type: 'lama' is not registered\n    did you mean 'llama'?");
}

TEST(Registry, TakesMoreWhileItRuns) {
  register_config("my_model", "MyConfig");
  register_module("embedding", "my_model", "MyForEmbedding");
  EXPECT_EQ(registered_config("my_model"), "MyConfig");
  EXPECT_EQ(registered_module("embedding", "my_model"), "MyForEmbedding");
  EXPECT_EQ(bound_task("my_model", {"MyForEmbedding"}), "embedding");
}

// The key model.task has words for heads that EasyDeL's registry does not name.
TEST(Registry, KnowsMoreHeadsThanItsTasks) {
  for (const auto& [word, task] : {std::pair{TaskType::masked_lm, Task::masked_lm},
                                   {TaskType::token_classification, Task::token_classification},
                                   {TaskType::question_answering, Task::question_answering},
                                   {TaskType::causal_lm, Task::causal_lm},
                                   {TaskType::embedding, Task::base}}) {
    EXPECT_EQ(head_of(word), task);
    const bool in_registry = std::ranges::count(task_types(), config::word_of(word)) > 0;
    EXPECT_EQ(in_registry, word == TaskType::causal_lm || word == TaskType::embedding) << config::word_of(word);
  }
  EXPECT_EQ(head_of(TaskType::auto_bind), std::nullopt);
  EXPECT_EQ(task_types().back(), "auto-bind");
  LoadOptions options;
  options.task = Task::token_classification;
  EXPECT_EQ(load_model(test::test_data("hf_goldens/bert_mlm"), options)->task(), Task::token_classification);
  options.task = Task::masked_lm;
  EXPECT_EQ(load_model(test::test_data("hf_goldens/bert_seqcls"), options)->task(), Task::masked_lm);
  EXPECT_EQ(test::refusal([&] { load_model(test::test_data("models/stories260K-hf"), options); }),
            "model.task: 'llama' has no head for masked language modelling");
}

TEST(Registry, LoadsModelsByWhatTheyAreFor) {
  const std::string folder = test::test_data("models/stories260K-hf").string();
  EXPECT_EQ(AutoEasyDeLModelForCausalLM::from_pretrained(folder)->model_type(), "llama");
  EXPECT_EQ(AutoEasyDeLModelForSequenceClassification::from_pretrained(folder)->task(), Task::sequence_classification);
  EXPECT_EQ(test::refusal([&] { AutoEasyDeLModelForSeq2SeqLM::from_pretrained(folder); }),
            "model_type: 'llama' is not defined for the task sequence-to-sequence\n    no model has this task yet");
  EXPECT_EQ(test::refusal([] { AutoEasyDeLModelForCausalLM::from_pretrained("./nowhere"); }),
            "from_pretrained: './nowhere': no such folder\n    give a folder with config.json and *.safetensors, or a "
            "name on the Hugging Face Hub");
  const auto [config, unused] = AutoEasyDeLConfig::from_pretrained(folder, parse_yaml("{blocksize_q: 64, other: 1}"));
  EXPECT_EQ(config.model_type(), "llama");
  EXPECT_EQ(config.at("blocksize_q").scalar, "64");
  EXPECT_EQ(to_json(unused), R"({"other": 1})");
}

}  // namespace
}  // namespace easydel::models
