#include "easydel/train/teaching.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "easydel/tensor/memory.h"
#include "easydel/train/gkd_config.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

using test::refusal, test::small_run, test::TemporaryFolder, test::weights_of;

// The story model, a teacher that is the same with smaller weights, and two texts of which the second has one label.
struct Lesson {
  std::shared_ptr<models::Model> student, teacher;
  Batch batch;

  explicit Lesson(double factor = 0.9) {
    models::LoadOptions load;
    load.dtype = load.param_dtype = models::DTypeSetting::fp32;
    load.training = true;
    student = models::load_model(test::test_data("models/stories260K-hf"), load);
    teacher = models::copy_model(*student);
    const c10::AutoGradMode no_grad(false);
    for (nn::Entry& entry : teacher->parameters().entries())
      if (entry.path.find("down_proj") != std::string::npos) entry.shard.mul_(factor), entry.written();
    data::Example one, two;
    one.add_sequence(std::vector<int32_t>{1, 403, 407, 261, 378, 432, 383}, std::vector<uint8_t>{0, 0, 0, 1, 1, 1, 1});
    two.add_sequence(std::vector<int32_t>{1, 291, 400, 428}, std::vector<uint8_t>{0, 0, 0, 1});
    const data::Example* const all[] = {&one, &two};
    batch = labelled_batch(all);
  }

  Loss loss(const TeachingTerms& terms, nn::CheckpointPolicy checkpointing = {}) const {
    Forwarding how;
    how.checkpointing = checkpointing;
    return Teaching(teacher, student.get(), terms).loss(*student, batch, how);
  }

  // Log-probabilities in fp64 at the labelled tokens.
  Tensor log_probabilities(const models::Model& model, double temperature) const {
    const c10::AutoGradMode no_grad(false);
    nn::Pass pass;
    const Tensor hidden = labelled_rows(Forwarding{}.run(model, batch, pass).hidden, batch).first;
    return at::log_softmax(model.head().logits(hidden, pass).to(at::kDouble) / temperature, -1);
  }

  std::vector<Tensor> gradients(const Tensor& loss) const {
    loss.backward();
    std::vector<Tensor> out;
    for (nn::Entry& entry : student->parameters().entries()) {
      const Tensor gradient = entry.shard.grad();  // none: what comes after the last term's layer
      out.push_back(gradient.defined() ? gradient.clone() : at::zeros_like(entry.shard));
      entry.shard.mutable_grad() = Tensor();
    }
    return out;
  }
};

double metric(const Loss& loss, const std::string& name) {
  for (const Metric& one : loss.metrics)
    if (one.name == name) return one.sum;
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST(Teaching, IsTheWrittenFormulaInFp64) {
  const Lesson lesson;
  ASSERT_EQ(lesson.batch.labelled, 5);
  DistillationConfig keys;
  keys.temperature = 2, keys.alpha = 0.7;
  const Loss found = lesson.loss(teaching_terms(keys, TrainerConfig()));
  const Tensor q = lesson.log_probabilities(*lesson.teacher, 2), p = lesson.log_probabilities(*lesson.student, 2);
  const double divergence = (q.exp() * (q - p)).sum().item<double>();
  const Tensor labels = lesson.batch.labels.masked_select(lesson.batch.labels.ne(data::no_label));
  const double entropy =
      -lesson.log_probabilities(*lesson.student, 1).gather(1, labels.unsqueeze(1)).sum().item<double>();
  EXPECT_NEAR(metric(found, "divergence"), divergence, 1e-5);
  EXPECT_NEAR(metric(found, "cross_entropy"), entropy, 1e-4);
  EXPECT_NEAR(found.sum.item<double>(), 0.7 * 4 * divergence + 0.3 * entropy, 1e-4);
}

// Recomputed layers give the same gradients, although their outputs are terms of the loss.
TEST(Teaching, ComparesHiddenStatesAlsoWhereLayersAreRecomputed) {
  const Lesson lesson;
  TeachingTerms terms;
  terms.divergence_weight = 0;
  terms.hidden_states = LayerTerm{0.5, std::vector<int64_t>{1, -1}};
  const Loss plain = lesson.loss(terms), again = lesson.loss(terms, nn::Checkpointing::nothing_saveable);
  EXPECT_EQ(plain.sum.item<float>(), again.sum.item<float>());
  EXPECT_GT(plain.sum.item<double>(), 0);
  EXPECT_NEAR(plain.sum.item<double>(), 0.5 * metric(plain, "hidden_state_loss"), 1e-7);
  const std::vector<Tensor> a = lesson.gradients(plain.sum), b = lesson.gradients(again.sum);
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].equal(b[i])) << i;
    norm += a[i].square().sum().item<double>();
  }
  EXPECT_GT(norm, 0);
  EXPECT_LT(metric(Lesson(1.0).loss(terms), "hidden_state_loss"), 1e-12);
}

// The derivative of the attention term by one weight, against a difference.
TEST(Teaching, ComparesAttentionWithItsGradient) {
  const Lesson lesson;
  TeachingTerms terms;
  terms.divergence_weight = 0;
  terms.attention = LayerTerm{100, std::vector<int64_t>{-1}};
  EXPECT_LT(metric(Lesson(1.0).loss(terms), "attention_loss"), 1e-12);
  const Loss loss = lesson.loss(terms);
  EXPECT_GT(loss.sum.item<double>(), 0);
  const std::vector<Tensor> gradients = lesson.gradients(loss.sum);
  size_t place = 0;
  nn::Entry* weight = nullptr;
  for (nn::Entry& entry : lesson.student->parameters().entries()) {
    if (entry.path == "model.layers.3.mlp.down_proj.weight") weight = &entry;
    if (!weight) ++place;
  }
  ASSERT_TRUE(weight);
  const auto moved = [&](double by) {
    const c10::AutoGradMode no_grad(false);
    weight->shard.add_(gradients[place], by);
    weight->written();
    const double out = lesson.loss(terms).sum.item<double>();
    weight->shard.sub_(gradients[place], by);
    weight->written();
    return out;
  };
  const double square = gradients[place].square().sum().item<double>(), by = 1e-2 / std::sqrt(square);
  EXPECT_NEAR((moved(by) - moved(-by)) / (2 * by), square, 0.02 * square);
}

// The gradient of probabilities joins that of the layer's output, whatever a policy keeps.
TEST(Teaching, ComparesAttentionAlsoWhereLayersAreRecomputed) {
  const Lesson lesson;
  TeachingTerms terms;
  terms.hidden_states = LayerTerm{0.5};
  terms.attention = LayerTerm{100, std::vector<int64_t>{1, -1}};
  const Loss plain = lesson.loss(terms);
  EXPECT_GT(metric(plain, "attention_loss"), 0);
  const std::vector<Tensor> expected = lesson.gradients(plain.sum);
  nn::CheckpointPolicy attention{nn::Checkpointing::save_names};
  attention.names = {"attn_dense", "attn_query"};
  for (const nn::CheckpointPolicy& policy : {nn::CheckpointPolicy(nn::Checkpointing::nothing_saveable), attention}) {
    const Loss again = lesson.loss(terms, policy);
    EXPECT_EQ(again.sum.item<float>(), plain.sum.item<float>());
    EXPECT_EQ(metric(again, "attention_loss"), metric(plain, "attention_loss"));
    const std::vector<Tensor> got = lesson.gradients(again.sum);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(expected[i])) << i;
  }
}

// A layer that is named from the end is another one in a model with more layers.
TEST(Teaching, ComparesLayersInTheOrderOfTheirNames) {
  Lesson lesson(1.0);
  TeachingTerms terms;
  terms.divergence_weight = 0;
  const auto of = [&](std::vector<int64_t> layers) {
    terms.hidden_states = LayerTerm{1, std::move(layers)};
    return metric(lesson.loss(terms), "hidden_state_loss");
  };
  lesson.teacher = models::load_model(test::test_data("models/stories-half"), {});
  // The student has five layers, the teacher two: -2 comes after 1 in the one, and before it in the other.
  EXPECT_NEAR(of({1, -2}), (of({1}) + of({-2})) / 2, 1e-6 * of({1, -2}));
}

TEST(Teaching, RefusesLayersWithoutProbabilities) {
  const TemporaryFolder folder;
  const auto model = [&](const char* name, const char* config) {
    test::write_file(folder / name / "config.json", config);
    models::LoadOptions load;
    load.training = true;
    return models::load_model(folder / name, load);
  };
  const auto recurrent = model("mamba", R"({"model_type": "mamba", "vocab_size": 512, "hidden_size": 16,
      "state_size": 4, "num_hidden_layers": 2})");
  const auto compressed = model("mla", R"({"model_type": "deepseek_v2", "vocab_size": 512, "hidden_size": 16,
      "intermediate_size": 16, "moe_intermediate_size": 16, "num_hidden_layers": 2, "first_k_dense_replace": 2,
      "num_attention_heads": 2, "num_key_value_heads": 2, "q_lora_rank": null, "kv_lora_rank": 8, "qk_rope_head_dim": 4,
      "qk_nope_head_dim": 4, "v_head_dim": 4, "n_routed_experts": 2, "num_experts_per_tok": 1})");
  TeachingTerms terms;
  terms.attention = LayerTerm{1, std::vector<int64_t>{-1}};
  for (const auto& other : {recurrent, compressed}) {
    Lesson taught;
    taught.teacher = other;
    EXPECT_EQ(refusal([&] { taught.loss(terms); }),
              "trainer.attention_loss_weight: layer 1 of the teacher has no attention that can be compared: it is "
              "compressed or recurrent\n    leave it out, or name other layers in attention_layers");
    Lesson learning;
    learning.student = other;
    EXPECT_EQ(refusal([&] { learning.loss(terms); }),
              "trainer.attention_loss_weight: layer 1 of the model has no attention that can be compared: it is "
              "compressed or recurrent\n    leave it out, or name other layers in attention_layers");
  }
}

TEST(Teaching, RefusesLayersThatAreNotThere) {
  const Lesson lesson;
  TeachingTerms terms;
  terms.hidden_states = LayerTerm{1, std::vector<int64_t>{0, 5}};
  EXPECT_EQ(refusal([&] { lesson.loss(terms); }),
            "trainer.hidden_state_layers: there is no layer 5 in the model, which has 5\n"
            "    give numbers from -5 to 4");
}

// A run on prompts with a teacher of the same weights.
TrainerParts sampling_run(const TemporaryFolder& folder, const std::string& keys) {
  if (!std::filesystem::exists(folder / "answers.jsonl")) {
    std::string rows;
    for (int i = 0; i < 8; ++i)
      rows += str(R"({"prompt": "Once upon a time there was a )", i % 2 ? "dog" : "cat", R"( who had )", i,
                  R"( balls", "completion": " and a hat."})", "\n");
    test::write_file(folder / "answers.jsonl", rows);
  }
  TrainerParts parts = small_run(
      folder.path(), str("{total_batch_size: 4, gradient_accumulation_steps: 2, num_train_epochs: 3, ", keys, "}"),
      str("{informs: [{data_files: \"", (folder / "answers.jsonl").string(), "\"}]}"));
  models::LoadOptions load = parts.load;
  load.training = false;
  parts.side.teacher.model = models::load_model(test::test_data("models/stories260K-hf"), load);
  return parts;
}

// The values of a metric of the first step.
double first_value(const TemporaryFolder& folder, const std::string& name) {
  const std::string lines = test::read_file(folder / "out/small/metrics.jsonl");
  const Value record = parse_json(lines.substr(0, lines.find('\n')));
  const Value* const value = record.find(name);
  return value ? value->as_double().value_or(NAN) : NAN;
}

TEST(Gkd, GoesOnToTheBitWithItsOwnSamples) {
  const std::string keys = "trainer_type: gkd, lmbda: 0.5, max_new_tokens: 5, seq_kd: true, beta: 0.9";
  const TemporaryFolder straight, stopped;
  const test::LogLines log;
  Trainer whole(sampling_run(straight, keys));
  EXPECT_EQ(whole.run().step, 6);
  Trainer(sampling_run(stopped, keys + ", max_training_steps: 3")).run();
  Trainer second(sampling_run(stopped, keys + ", max_training_steps: 6"));
  EXPECT_EQ(second.plan().from_step, 3);
  second.run();
  EXPECT_EQ(weights_of(second.model()), weights_of(whole.model()));
}

TEST(Gkd, PlansTheMemoryOfItsRowsOrOfItsSamples) {
  tensor::use_kept_memory();
  const TemporaryFolder folder;
  const test::LogLines log;
  const auto memory_of = [&](const std::string& keys) {
    return Trainer(sampling_run(folder, keys + ", max_training_steps: 1")).plan().memory;
  };
  const MemoryPlan rows = memory_of("trainer_type: gkd, lmbda: 0");
  EXPECT_GT(rows.activations.per_token, 0);
  EXPECT_GT(rows.activations.fixed, 0) << "is measured";
  EXPECT_GT(rows.tokens, 2 * 10);
  EXPECT_LT(rows.labelled, rows.tokens);
  EXPECT_EQ(rows.completions, 0);
  for (const std::string keys :
       {"trainer_type: gkd, lmbda: 0.5, max_new_tokens: 100", "trainer_type: seq_kd, max_completion_length: 100",
        "trainer_type: on_policy_distillation, max_completion_length: 100"}) {
    const MemoryPlan samples = memory_of(keys);
    EXPECT_EQ(samples.labelled, 2 * 100) << keys << ": of a micro-batch of 2 rows";
    EXPECT_GT(samples.tokens, samples.labelled) << keys;
    EXPECT_GT(samples.completions, 0) << keys;
  }
}

TEST(OnPolicyDistillation, SamplesFromTheStudentWhoseDivergenceFromItselfIsZero) {
  const TemporaryFolder folder;
  const test::LogLines log;
  Trainer(sampling_run(folder,
                       "trainer_type: on_policy_distillation, max_completion_length: 6, alpha: 1.0, "
                       "num_generations_per_prompt: 2, max_training_steps: 1"))
      .run();
  EXPECT_NEAR(first_value(folder, "divergence"), 0, 1e-5);
  EXPECT_GT(first_value(folder, "entropy"), 0.1);
  // Eight completions of at most six tokens, after prompts of a dozen.
  EXPECT_GT(first_value(folder, "num_tokens"), 8 * 12);
}

TEST(SeqKd, LearnsTheTeachersTexts) {
  const TemporaryFolder folder;
  const test::LogLines log;
  Trainer(sampling_run(folder,
                       "trainer_type: seq_kd, temperature_sampling: 0, max_completion_length: 6, "
                       "max_training_steps: 1"))
      .run();
  EXPECT_EQ(first_value(folder, "mean_token_accuracy"), 1) << "the likeliest tokens of the same weights";
  TrainerParts parts = sampling_run(folder,
                                    "trainer_type: seq_kd, temperature_sampling: 0, "
                                    "num_generations_per_prompt: 2, resume_if_possible: false");
  EXPECT_EQ(refusal([&] { Trainer(std::move(parts)); }),
            "trainer.num_generations_per_prompt: 2 completions of a prompt would all be equal\n"
            "    set temperature_sampling above 0, or num_generations_per_prompt: 1");
}

// Held-out rows are evaluated by completions of their prompts, as rows are trained: by the likeliest tokens of the same
// weights, which the data's own answers are not.
TEST(SeqKd, EvaluatesTheTeachersTexts) {
  for (const std::string method : {"seq_kd", "on_policy_distillation, alpha: 0.0"}) {
    const TemporaryFolder folder;
    const test::LogLines log;
    TrainerParts parts =
        sampling_run(folder, "trainer_type: " + method +
                                 ", temperature_sampling: 0, max_completion_length: 6, learning_rate: 0, "
                                 "eval_on_start: true, max_training_steps: 1");
    data::InformConfig held_out = parts.mixture.informs.at(0);
    parts.mixture.evaluation = {held_out};
    Trainer trainer(std::move(parts));
    trainer.run();
    const EvaluationReport report = trainer.evaluate();
    const auto accuracy =
        std::ranges::find(report.metrics, "mean_token_accuracy", &std::pair<std::string, double>::first);
    ASSERT_NE(accuracy, report.metrics.end()) << method;
    EXPECT_EQ(accuracy->second, 1) << method;
  }
}

TEST(Teaching, RefusesConversationsWithoutATemplate) {
  for (const std::string method : {"seq_kd", "on_policy_distillation", "sparse_distillation"}) {
    const TemporaryFolder folder;
    const test::LogLines log;
    test::write_file(folder / "answers.jsonl",
                     R"({"messages": [{"role": "user", "content": "A?"}, {"role": "assistant", "content": "B."}]})"
                     "\n");
    const std::string text =
        refusal([&] { Trainer(sampling_run(folder, "skip_apply_chat_template: true, trainer_type: " + method)); });
    EXPECT_EQ(
        text.substr(text.rfind('/') + 1),
        "answers.jsonl:1: the prompt is a conversation, and trainer.skip_apply_chat_template is set\n    give the "
        "prompt as a text, or leave the key out")
        << method;
  }
}

TEST(SparseDistillation, RefusesAnInfiniteDivergence) {
  const TemporaryFolder folder;
  TrainerParts parts = sampling_run(folder, "trainer_type: sparse_distillation, beta: 1");
  EXPECT_EQ(refusal([&] { Trainer(std::move(parts)); }),
            "trainer.beta: the reverse divergence from the teacher's likeliest tokens alone is infinite\n"
            "    give a beta below 1, or trainer_type: distillation");
}

TEST(Gkd, RefusesTextsWithoutAPromptIfItSamples) {
  const TemporaryFolder folder;
  TrainerParts parts = small_run(folder.path(), "{trainer_type: gkd, lmbda: 1.0}");
  parts.side.teacher.model = models::copy_model(*parts.model);
  EXPECT_EQ(test::replaced(refusal([&] { Trainer(std::move(parts)); }), folder.path().string(), "FOLDER"),
            "FOLDER/lines.txt:1: a text has no prompt that could be continued\n"
            "    give messages or prompt + completion, or set lmbda: 0 and seq_kd: false");
}

}  // namespace
}  // namespace easydel::train
