// Heads: which one a folder gets, their initial values, and their losses. golden_test compares their numbers with
// transformers.
#include "easydel/models/heads.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/models/embedding.h"
#include "easydel/models/head_loss.h"
#include "support/data.h"

namespace easydel::models {
namespace {

const std::string small_llama = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 24,
  "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64, "pad_token_id": 0,
  "id2label": {"0": "no", "1": "yes", "2": "maybe"}, "initializer_range": 0.2})";
const std::string small_bert = R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 24,
  "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64, "initializer_range": 0.2})";

struct Folder {
  test::TemporaryFolder temporary;
  explicit Folder(const std::string& config) { test::write_file(path() / "config.json", config); }
  std::filesystem::path path() const { return temporary / "model"; }
};

LoadOptions for_task(Task task) {
  LoadOptions options;
  options.task = task;
  return options;
}

std::vector<std::string> names_outside(const Model& model, const std::string& stack) {
  std::vector<std::string> out;
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.path.starts_with(stack)) out.push_back(entry.path);
  return out;
}

Tensor scores(const Model& model, const Tensor& tokens, std::vector<int64_t> cu_seqlens) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over(std::move(cu_seqlens));
  const Tensor hidden = model.forward({tokens}, pass).hidden;
  return model.class_head()->scores(hidden, tokens, pass);
}

TEST(Heads, AreNamedAsTransformersNamesThemInEveryFamily) {
  const auto name = [](const char* type, Task task) {
    const Value config = parse_json(std::string(R"({"model_type": ")") + type + "\"}", "config.json");
    return architecture_of(family_config_of(config, FilePlace{"config.json"}), task);
  };
  EXPECT_EQ(name("llama", Task::sequence_classification), "LlamaForSequenceClassification");
  EXPECT_EQ(name("gpt2", Task::question_answering), "GPT2ForQuestionAnswering");
  EXPECT_EQ(name("gemma3_text", Task::sequence_classification), "Gemma3TextForSequenceClassification");
  EXPECT_EQ(name("gemma3_text", Task::causal_lm), "Gemma3ForCausalLM");
  EXPECT_EQ(name("xlm-roberta", Task::base), "XLMRobertaModel");
  EXPECT_EQ(name("modernbert", Task::masked_lm), "ModernBertForMaskedLM");
  EXPECT_EQ(test::refusal([&] { name("llama", Task::masked_lm); }),
            "model.task: 'llama' has no head for masked language modelling");
}

TEST(Heads, StandBesideAStackUnderTransformersNames) {
  using Names = std::vector<std::string>;
  const Folder folder(small_llama);
  EXPECT_EQ(names_outside(*load_model(folder.path(), for_task(Task::sequence_classification)), "model."),
            Names{"score.weight"});
  EXPECT_EQ(names_outside(*load_model(folder.path(), for_task(Task::token_classification)), "model."),
            (Names{"score.weight", "score.bias"}));
  EXPECT_EQ(names_outside(*load_model(folder.path(), for_task(Task::question_answering)), "transformer."),
            (Names{"qa_outputs.weight", "qa_outputs.bias"}));
  const auto bare = load_model(folder.path(), for_task(Task::base));
  EXPECT_EQ(bare->parameters().entries().front().path, "embed_tokens.weight");
  EXPECT_EQ(bare->class_head(), nullptr);
}

TEST(Heads, StartFromRandomValuesWhereTheFileIsOfAnotherTask) {
  const Folder folder(small_llama);
  const auto original = load_model(folder.path(), {});
  save_model(*original, folder.path());
  for (const Task task :
       {Task::sequence_classification, Task::token_classification, Task::question_answering, Task::base}) {
    const auto changed = load_model(folder.path(), for_task(task));
    EXPECT_EQ(changed->task(), task);
    const std::string stack = task == Task::base ? "" : task == Task::question_answering ? "transformer." : "model.";
    const nn::Entry* const norm = changed->parameters().find(stack + "norm.weight");
    const nn::Entry* const query = changed->parameters().find(stack + "layers.1.self_attn.q_proj.weight");
    ASSERT_TRUE(norm && query);
    EXPECT_TRUE(query->shard.equal(original->parameters().find("model.layers.1.self_attn.q_proj.weight")->shard));
    // The saved folder is one of the new task, so the task need not be given.
    const test::TemporaryFolder saved;
    save_model(*changed, saved.path());
    const auto again = load_model(saved.path(), {});
    EXPECT_EQ(again->task(), task);
    for (const nn::Entry& entry : changed->parameters().entries())
      EXPECT_TRUE(entry.shard.equal(again->parameters().find(entry.path)->shard)) << entry.path;
  }
}

TEST(Heads, AreMissedWhereConfigSaysThatTheyAreThere) {
  const Folder folder(small_llama);
  save_model(*load_model(folder.path(), {}), folder.path());
  test::write_file(folder.path() / "config.json",
                   test::replaced(small_llama, "ForCausalLM", "ForSequenceClassification"));
  EXPECT_EQ(test::replaced(test::refusal([&] { load_model(folder.path(), {}); }), folder.path().string(), "M"),
            "M: the weights do not fit config.json\n    missing (1):\n      score.weight\n"
            "    not in the model (1):\n      lm_head.weight");
}

TEST(Heads, OfSequencesReadTheLastTokenThatIsNoPadding) {
  const Folder folder(small_llama);
  const auto model = load_model(folder.path(), for_task(Task::sequence_classification));
  const Tensor tokens = at::tensor({5, 6, 7, 8, 9, 0, 0}, at::kLong);
  const Tensor both = scores(*model, tokens, {0, 3, 7});
  EXPECT_EQ(both.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(both[0].equal(scores(*model, tokens.slice(0, 0, 3), {0, 3})[0]));
  EXPECT_TRUE(both[1].equal(scores(*model, tokens.slice(0, 3, 5), {0, 2})[0]));
}

TEST(Heads, DropTheSameNumbersOfASequenceInAnyCompany) {
  const Folder folder(test::replaced(small_bert, "\"initializer_range\"",
                                     "\"classifier_dropout\": 0.5, \"hidden_dropout_prob\": 0.0, "
                                     "\"attention_probs_dropout_prob\": 0.0, \"initializer_range\""));
  const auto model = load_model(folder.path(), for_task(Task::sequence_classification));
  const Tensor tokens = at::randint(1, 64, {9}, at::TensorOptions().dtype(at::kLong));
  const auto of = [&](int64_t begin, int64_t end, std::vector<int64_t> cu_seqlens, bool training) {
    const at::NoGradGuard no_gradient;
    nn::Pass pass = nn::Pass::over(std::move(cu_seqlens));
    pass.random().training = training, pass.random().first_token = begin;
    const Tensor part = tokens.slice(0, begin, end);
    return model->class_head()->scores(model->forward({part}, pass).hidden, part, pass);
  };
  EXPECT_TRUE(of(0, 9, {0, 4, 9}, true)[1].equal(of(4, 9, {0, 5}, true)[0]));
  EXPECT_FALSE(of(4, 9, {0, 5}, true).equal(of(4, 9, {0, 5}, false)));
}

TEST(Heads, OfEncodersNeitherGenerateNorScoreWordsOfOthers) {
  const Folder folder(small_bert);
  EXPECT_EQ(test::refusal([&] { load_model(folder.path(), {})->make_cache(1, 8); }),
            "model: it attends to both sides, so it cannot generate text\n    use a causal language model");
  EXPECT_EQ(
      test::refusal([&] { load_model(folder.path(), for_task(Task::token_classification))->head(); }),
      "model: it is for token classification: it has no language head\n    set model.task to causal-language-model");
}

TEST(Heads, RefuseWhatTheyCannotRead) {
  const auto with = [](const std::string& config, const std::string& from, const std::string& to) {
    const Folder folder(test::replaced(config, from, to));
    return test::replaced(test::refusal([&] { load_model(folder.path(), {}); }), folder.path().string(), "M");
  };
  const std::string answers = test::replaced(small_bert, "ForMaskedLM", "ForQuestionAnswering");
  EXPECT_EQ(with(answers, "\"initializer_range\"", "\"num_labels\": 3, \"initializer_range\""),
            "M/config.json: num_labels: names 3 labels; an answer has two, its first and its last token");
  EXPECT_EQ(with(small_bert, "\"initializer_range\"", "\"add_cross_attention\": true, \"initializer_range\""),
            "M/config.json: add_cross_attention: cross attention is not built for this family");
  const std::string roberta = test::replaced(test::replaced(small_bert, "bert", "roberta"), "BertFor", "RobertaFor");
  EXPECT_EQ(with(roberta, "\"initializer_range\"", "\"pad_token_id\": null, \"initializer_range\""),
            "M/config.json: pad_token_id: is null\n    positions of this family are counted from it");
  EXPECT_EQ(with(roberta, "\"initializer_range\"", "\"max_position_embeddings\": 2, \"initializer_range\""),
            "M/config.json: max_position_embeddings: 2 leaves no position after pad_token_id, 1");
  const std::string modern = R"({"model_type": "modernbert", "architectures": ["ModernBertForSequenceClassification"],
    "hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 1, "classifier_pooling": "max"})";
  EXPECT_EQ(with(modern, "none", "none"),
            "M/config.json: classifier_pooling: 'max' is not known\n    known: cls, mean");
}

TEST(HeadLoss, IsWhatTheProblemSays) {
  const Tensor logits = at::tensor({1.0f, -1.0f, 0.5f, 2.0f}).view({2, 2});
  EXPECT_NEAR(sequence_loss(logits, at::tensor({0, 1}, at::kLong), "").item<double>(), 0.164171, 1e-5);
  EXPECT_NEAR(sequence_loss(logits, at::tensor({1.0f, 0.0f, 0.0f, 1.0f}).view({2, 2}), "").item<double>(), 0.431882,
              1e-5);
  EXPECT_NEAR(sequence_loss(logits, at::tensor({1.0f, 0.0f, 0.0f, 1.0f}).view({2, 2}), "regression").item<double>(),
              0.5625, 1e-6);
  EXPECT_EQ(test::refusal([&] {
              sequence_loss(logits, at::tensor({0, 1, 1}, at::kLong), "");
            }),
            "labels: there are 3; single_label_classification of 2 rows and 2 classes has 2");
  EXPECT_EQ(test::refusal([&] {
              sequence_loss(logits, at::tensor({0, 1, 1, 1}, at::kLong), "ranking");
            }),
            "problem_type: 'ranking' is not known\n    known: regression, single_label_classification, "
            "multi_label_classification");
}

TEST(Embeddings, ArePooledAsTheFolderSays) {
  const Folder folder(small_llama);
  EXPECT_EQ(read_embedding(*load_model(folder.path(), for_task(Task::base))).pooling, nn::Pooling::last);
  test::write_file(folder.path() / "modules.json",
                   R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  const auto pooled = [&](const std::string& mode) {
    test::write_file(folder.path() / "1_Pooling/config.json", "{\"word_embedding_dimension\": 24, " + mode + "}");
    const auto model = load_model(folder.path(), for_task(Task::base));
    nn::Pass pass = nn::Pass::over({0, 2, 5});
    const Tensor hidden = at::arange(10, at::TensorOptions().dtype(at::kFloat)).view({5, 2});
    return embeddings(read_embedding(*model), hidden, at::arange(5, at::TensorOptions().dtype(at::kLong)), pass);
  };
  const auto unit = [](float a, float b) { return at::tensor({a, b}) / std::hypot(a, b); };
  EXPECT_TRUE(pooled(R"("pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false)")[1].allclose(unit(4, 5)));
  EXPECT_TRUE(pooled(R"("pooling_mode_mean_tokens": true)")[1].allclose(unit(6, 7)));
  EXPECT_TRUE(pooled(R"("pooling_mode": "lasttoken")")[0].allclose(unit(2, 3)));
  // (1 * [4, 5] + 2 * [6, 7] + 3 * [8, 9]) / 6
  EXPECT_TRUE(pooled(R"("pooling_mode_weightedmean_tokens": true)")[1].allclose(unit(40, 46)));
  EXPECT_TRUE(pooled(R"("pooling_mode": "max")")[1].allclose(unit(8, 9)));
  EXPECT_EQ(
      test::replaced(test::refusal([&] { pooled(R"("pooling_mode": "max", "include_prompt": false)"); }),
                     folder.path().string(), "M"),
      "M/1_Pooling/config.json: include_prompt: is false, which is not built yet for weightedmean and max\n    set "
      "it to true");
  EXPECT_EQ(test::replaced(test::refusal([&] { pooled(R"("pooling_mode_mean_sqrt_len_tokens": true)"); }),
                           folder.path().string(), "M"),
            "M/1_Pooling/config.json: pooling_mode_mean_sqrt_len_tokens: 'pooling_mode_mean_sqrt_len_tokens' is not "
            "built yet\n"
            "    built: cls, mean, lasttoken, weightedmean, max");
}

}  // namespace
}  // namespace easydel::models
