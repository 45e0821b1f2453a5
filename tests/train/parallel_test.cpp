// The same training on one rank and on several, through the real trainer: losses, norms, weights, checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "easydel/base/files.h"
#include "easydel/nn/quantized_training.h"
#include "easydel/tensor/mapped.h"
#include "easydel/train/distillation_config.h"
#include "easydel/train/trainer.h"
#include "support/ranks.h"
#include "train/sampled_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;
using collective::Team;
using test::Meeting;
using test::run_ranks;

constexpr const char* config_json =
    R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 8, "tie_word_embeddings": false, "max_position_embeddings": 64})";

// 11 examples of unequal lengths, 8 in an update: the second and last update of an epoch has 3, so that with 4 parts
// some part has nothing. Example 2 of each update has few labels.
class Rows final : public BatchSource {
 public:
  Rows() {
    for (int32_t i = 0; i < 11; ++i) {
      std::vector<int32_t> ids;
      for (int32_t k = 0; k < 4 + i * 5 % 7; ++k) ids.push_back((i * 29 + k * k * 13 + 3) % 96);
      std::vector<uint8_t> learn(ids.size(), i % 8 != 2);
      learn.back() = 1;
      examples_.emplace_back().add_sequence(ids, learn);
    }
  }
  int64_t steps_in_epoch() const override { return 2; }
  std::vector<MicroBatch> step(int64_t step) override {
    std::vector<MicroBatch> out;
    for (size_t begin = step % 2 * 8; begin < std::min<size_t>(step % 2 * 8 + 8, 11); begin += 4) {
      MicroBatch& micro = out.emplace_back();
      for (size_t i = begin; i < std::min<size_t>(begin + 4, 11); ++i) micro.push_back(&examples_[i]);
    }
    return out;
  }
  Value cursor(int64_t step) const override { return Value::integer(step); }
  std::string fingerprint() const override { return "rows"; }

 private:
  std::vector<data::Example> examples_;
};

std::shared_ptr<const Team> join(const Meeting& meeting, std::vector<int64_t> sizes) {
  collective::TeamOptions options;
  options.file_store = meeting.file;
  options.connect_seconds = options.timeout_seconds = 60;
  return Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), std::move(sizes)), options);
}

struct How {
  nn::Checkpointing checkpointing = nn::Checkpointing::none;
  models::DTypeSetting dtype = models::DTypeSetting::fp32, save_dtype = dtype;
  int64_t total_batch_size = 8;
  std::vector<models::AdapterOptions> adapters = {};
  std::string model = "model", codes = {};              // folder; `codes`: quantized to this format while it is loaded
  std::string trained_codes = {}, trained_layers = {};  // quantization_mode, quantization_pattern
  bool attention = false;                               // distills that, too
  bool distills = false;                                // from a teacher of the same shape; keeps a moving average, too
};

// Trains folder/model to `steps` steps into folder/name.
void train(const fs::path& folder, const std::string& name, int64_t steps, std::shared_ptr<const Team> team,
           const How& how = {}) {
  TrainerParts parts;
  parts.load.dtype = how.dtype;
  parts.load.training = true;
  parts.load.seed = 3;
  parts.load.team = std::move(team);
  parts.load.adapters = how.adapters;
  if (!how.codes.empty())
    parts.load.quantization = nn::Quantization{.format = quant::format_of({.method = how.codes}, "quantization")};
  if (!how.trained_codes.empty())
    parts.load.weight_policy =
        std::make_shared<nn::QuantizedTraining>(quant::format_of({.method = how.trained_codes}, "quantization"),
                                                at::kFloat, "trainer.quantization_mode", how.trained_layers);
  parts.model = models::load_model(folder / how.model, parts.load);
  parts.checkpointing = how.checkpointing;
  parts.save_dtype = how.save_dtype;
  TrainerConfig& common = parts.trainer.common;
  common.total_batch_size = how.total_batch_size;
  common.gradient_accumulation_steps = 2;
  common.max_training_steps = steps;
  common.learning_rate = 1e-3;
  common.clip_grad = 0.5;  // below the norms that occur
  common.report_steps = 1;
  common.save_directory = folder.string();
  common.model_name = name;
  if (how.distills) {
    auto keys = std::make_shared<DistillationConfig>();
    keys->alpha = 0.6;
    keys->hidden_state_loss_weight = 0.1;
    if (how.attention) keys->attention_loss_weight = 50;
    parts.trainer.use<DistillationConfig>(std::move(keys));
    models::LoadOptions load = parts.load;
    load.training = false, load.seed = 4;
    parts.side.teacher.model = models::load_model(folder / "model", load);
    parts.trainer.common.ema_decay = 0.8;
    parts.trainer.common.optimizer = OptimizerName::nadam;  // has a state that is a scalar
  }
  if (how.total_batch_size == 8)
    Trainer(std::move(parts), std::make_unique<Rows>()).run();
  else
    Trainer(std::move(parts)).run();
}

void train_on(int ranks, const std::vector<int64_t>& sizes, const fs::path& folder, const std::string& name,
              int64_t steps, const How& how = {}) {
  run_ranks(ranks, [&](const Meeting& meeting) {
    train(folder, name, steps, ranks == 1 ? Team::alone() : join(meeting, sizes), how);
  });
}

// Every tensor of two files differs by less than 1e-5 of its norm. (Single elements may differ more: AdamW turns a
// gradient of rounding errors into a step as long as any other.)
void expect_equal_tensors(const fs::path& one, const fs::path& other) {
  const auto a = weights::SafetensorsFile::open(one), b = weights::SafetensorsFile::open(other);
  EXPECT_EQ(a->header().tensors.size(), b->header().tensors.size());
  for (const auto& [name, entry] : a->header().tensors) {
    const Tensor x = tensor::from_view(a->at(name)), y = tensor::from_view(b->at(name));
    EXPECT_LT((x - y).norm().item<double>(), 1e-5 * x.norm().item<double>()) << name;
  }
}

void expect_equal_runs(const fs::path& folder, const std::string& one, const std::string& other, int64_t steps) {
  for (const char* name : {"loss", "grad_norm", "mean_token_accuracy", "entropy"}) {
    const auto a = test::metric(folder / one, name), b = test::metric(folder / other, name);
    ASSERT_EQ(a.size(), size_t(steps)) << name;
    ASSERT_EQ(b.size(), size_t(steps)) << name;
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i], a[i], 1e-5 * std::abs(a[i])) << name << ", step " << i + 1;
  }
  run_ranks(1, [&](const Meeting&) {
    const std::string last = "run-" + std::to_string(steps);
    expect_equal_tensors(folder / one / last / "model.safetensors", folder / other / last / "model.safetensors");
    expect_equal_tensors(folder / one / last / "optimizer/optimizer-00001-of-00001.safetensors",
                         folder / other / last / "optimizer/optimizer-00001-of-00001.safetensors");
  });
}

class ParallelTraining : public ::testing::Test {
 protected:
  ParallelTraining() { test::write_file(folder_ / "model/config.json", config_json); }
  const fs::path& folder() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(ParallelTraining, EqualsOneRankOnEveryMesh) {
  train_on(1, {}, folder(), "one", 3);
  const std::vector<std::pair<int, std::vector<int64_t>>> meshes = {
      {2, {1, 1, 1, 2, 1}}, {2, {1, 2, 1, 1, 1}}, {2, {2, 1, 1, 1, 1}}, {4, {1, 2, 1, 2, 1}}, {4, {2, 2, 1, 1, 1}}};
  for (const auto& [ranks, sizes] : meshes) {
    const std::string name = mesh::Mesh(mesh::default_axes(), sizes).describe();
    SCOPED_TRACE(name);
    train_on(ranks, sizes, folder(), name, 3, {.checkpointing = nn::Checkpointing::nothing_saveable});
    expect_equal_runs(folder(), "one", name, 3);
  }
}

TEST_F(ParallelTraining, OfADistillationEqualsOneRank) {
  train_on(1, {}, folder(), "one", 3, {.distills = true});
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 1, 1, 2, 1}, {1, 2, 1, 1, 1}, {2, 1, 1, 1, 1}}) {
    const std::string name = mesh::Mesh(mesh::default_axes(), sizes).describe();
    SCOPED_TRACE(name);
    train_on(2, sizes, folder(), name, 3, {.checkpointing = nn::Checkpointing::nothing_saveable, .distills = true});
    expect_equal_runs(folder(), "one", name, 3);
    run_ranks(1, [&](const Meeting&) {
      const char* file = "run-3/ema/model.safetensors";
      expect_equal_tensors(folder() / "one" / file, folder() / name / file);
    });
  }
}

// Recomputed layers on two ranks, plain ones on one.
TEST_F(ParallelTraining, OfAttentionEqualsOneRank) {
  train_on(1, {}, folder(), "one", 3, {.attention = true, .distills = true});
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 2, 1, 1, 1}, {2, 1, 1, 1, 1}}) {
    const std::string name = mesh::Mesh(mesh::default_axes(), sizes).describe();
    SCOPED_TRACE(name);
    train_on(2, sizes, folder(), name, 3,
             {.checkpointing = nn::Checkpointing::nothing_saveable, .attention = true, .distills = true});
    expect_equal_runs(folder(), "one", name, 3);
  }
  run_ranks(2, [&](const Meeting& meeting) {
    auto team = join(meeting, {1, 1, 1, 2, 1});
    EXPECT_EQ(
        test::refusal([&] { train(folder(), "tp", 1, team, {.attention = true, .distills = true}); }),
        "trainer.attention_loss_weight: heads on several ranks of the axis tp are not built yet\n    leave it out, "
        "or cut the batch instead: the axes dp and fsdp");
  });
}

// All linear layers, the output layer and the embedding; DoRA where no layer's input is cut.
TEST_F(ParallelTraining, OfAdaptersEqualsOneRankOnEveryMesh) {
  models::AdapterOptions adapter;
  adapter.config.r = 3;
  adapter.config.init_lora_weights = {models::LoraInit::random};
  adapter.config.target_modules = std::vector<std::string>{
      "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head", "embed_tokens"};
  models::AdapterOptions lengths;
  lengths.config.r = 3;
  lengths.config.use_dora = true;
  lengths.config.init_lora_weights = {models::LoraInit::random};
  lengths.config.target_modules = std::vector<std::string>{"q_proj", "v_proj", "up_proj"};
  int next = 0;
  for (const models::AdapterOptions& each : {adapter, lengths}) {
    const std::string one = "one" + std::to_string(next++);
    train_on(1, {}, folder(), one, 3, {.adapters = {each}});
    const std::vector<std::vector<int64_t>> meshes = {{1, 1, 1, 2, 1}, {1, 2, 1, 1, 1}, {2, 1, 1, 1, 1}};
    for (const std::vector<int64_t>& sizes : meshes) {
      const std::string name = one + mesh::Mesh(mesh::default_axes(), sizes).describe();
      SCOPED_TRACE(name);
      train_on(2, sizes, folder(), name, 3, {.checkpointing = nn::Checkpointing::nothing_saveable, .adapters = {each}});
      expect_equal_runs(folder(), one, name, 3);
      run_ranks(1, [&](const Meeting&) {
        const char* file = "run-3/adapter/adapter_model.safetensors";
        expect_equal_tensors(folder() / one / file, folder() / name / file);
      });
    }
  }
}

// Codes that are made while the model is loaded, and those of a checkpoint. Of a rank's codes the other one sends its
// rows, except those of layers whose rows do not divide.
TEST_F(ParallelTraining, OverCodesEqualsOneRank) {
  const fs::path plain = folder() / "wide";
  Value config = parse_json(config_json);
  config.set("hidden_size", Value::integer(128)), config.set("intermediate_size", Value::integer(192));
  test::write_file(plain / "config.json", to_json(config));
  models::AdapterOptions adapter;
  adapter.config.r = 3;
  for (const std::string codes : {"nf4", "8bit"}) {
    const std::string saved = "in_" + codes;
    run_ranks(2, [&](const Meeting& meeting) {
      models::LoadOptions options;
      options.seed = 3, options.dtype = models::DTypeSetting::fp32;
      options.quantization = nn::Quantization{.format = quant::format_of({.method = codes}, "quantization")};
      options.team = join(meeting, {1, 2, 1, 1, 1});
      models::save_model(*models::load_model(plain, options), folder() / saved);
      options.team = Team::alone();  // which makes the same codes
      models::save_model(*models::load_model(plain, options), folder() / str(saved, "_alone", meeting.world.rank));
    });
    EXPECT_EQ(test::read_file(folder() / saved / "model.safetensors"),
              test::read_file(folder() / (saved + "_alone0/model.safetensors")));
    const auto recomputed = nn::Checkpointing::nothing_saveable;
    for (const How& how : {How{.checkpointing = recomputed, .adapters = {adapter}, .model = "wide", .codes = codes},
                           How{.adapters = {adapter}, .model = saved}}) {
      const std::string one = how.model + "_one_" + codes;
      train_on(1, {}, folder(), one, 3, how);
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 2, 1, 1, 1}, {2, 1, 1, 1, 1}}) {
        const std::string name = one + mesh::Mesh(mesh::default_axes(), sizes).describe();
        SCOPED_TRACE(name);
        train_on(2, sizes, folder(), name, 3, how);
        const auto a = test::metric(folder() / one, "loss"), b = test::metric(folder() / name, "loss");
        ASSERT_EQ(a.size() + b.size(), 6u);
        for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i], a[i], 1e-5 * std::abs(a[i]));
        run_ranks(1, [&](const Meeting&) {
          const char* file = "run-3/adapter/adapter_model.safetensors";
          expect_equal_tensors(folder() / one / file, folder() / name / file);
        });
      }
    }
  }
}

// Each rank rounds whole weights, in groups that its own rows or columns would not hold.
TEST_F(ParallelTraining, ForCodesEqualsOneRank) {
  const auto recomputed = nn::Checkpointing::nothing_saveable;
  for (const std::string codes : {"nf4", "a8q"}) {
    const std::string one = "one_" + codes;
    train_on(1, {}, folder(), one, 3, {.trained_codes = codes});
    train_on(1, {}, folder(), one + "_plain", 3);
    EXPECT_NE(test::metric(folder() / one, "loss"), test::metric(folder() / (one + "_plain"), "loss"));
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 2, 1, 1, 1}, {2, 1, 1, 1, 1}}) {
      const std::string name = one + mesh::Mesh(mesh::default_axes(), sizes).describe();
      SCOPED_TRACE(name);
      train_on(2, sizes, folder(), name, 3, {.checkpointing = recomputed, .trained_codes = codes});
      expect_equal_runs(folder(), one, name, 3);
    }
  }
}

TEST_F(ParallelTraining, OfExpertsForCodesEqualsOneRank) {
  test::write_file(folder() / "moe/config.json",
                   R"({"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_local_experts": 4, "vocab_size": 96})");
  for (const int ranks : {1, 2})
    train_on(ranks, {1, ranks, 1, 1, 1}, folder(), str("moe_", ranks), 3,
             {.model = "moe", .trained_codes = "nf4", .trained_layers = "experts|proj"});
  expect_equal_runs(folder(), "moe_1", "moe_2", 3);
}

// Figures of time and memory, which no two runs share.
bool is_of_the_machine(const std::string& name) {
  return name.find("second") != std::string::npos || name.find("memory") != std::string::npos ||
         name.find("mfu") != std::string::npos || name.find("flops") != std::string::npos;
}

// One method of each kind: pairs, marked answers, groups with a reference, a value head, judged pairs, own samples of a
// student, pooled texts. Completions and rewards are the same, so that every loss is of the same tokens.
TEST(TwoRanks, LearnWhatOneRankLearnsWithEveryKindOfMethod) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "rows.jsonl", [] {
    std::string lines;
    for (const char* name : {"dog", "cat", "king", "ship", "hat", "ball", "girl", "boy"})
      lines += str(R"({"prompt": "Once there was a )", name,
                   R"(", "completion": " who was happy.", "chosen": " who was happy.", "rejected": " and the )", name,
                   R"( ran away", "query": "the )", name, R"(", "positive": "a happy )", name, R"(", "negative": "no )",
                   name, "\"}\n");
    return lines;
  }());
  const std::string samples =
      ", max_completion_length: 8, temperature: 1.0, generation_kwargs: {stop_strings: [\" a\", \".\"]}, "
      "rewards: [{type: contains, words: [a, the, he]}, {type: repetition}]";
  for (const std::string& keys :
       {std::string("orpo"), std::string("kto"), std::string("dpo"),
        "grpo, beta: 0.1, num_return_sequences: 2" + samples, "rloo, num_return_sequences: 2" + samples,
        "ppo, num_ppo_epochs: 2" + samples, "online_dpo" + samples, std::string("gkd, lmbda: 0.5, max_new_tokens: 8"),
        std::string("embedding")}) {
    const std::string method = keys.substr(0, keys.find(','));
    const auto train = [&](int ranks, const std::string& name, const std::vector<int64_t>& sizes) {
      run_ranks(ranks, [&](const Meeting& meeting) {
        const test::LogLines log;
        Value trainer = parse_yaml(str("{trainer_type: ", keys,
                                       ", total_batch_size: 8, max_training_steps: 3, num_train_epochs: 4, ",
                                       "shuffle_train_dataset: false, model_name: ", name, "}"));
        TrainerParts parts =
            test::small_run(folder.path(), to_json(trainer),
                            str("{informs: [{data_files: \"", (folder / "rows.jsonl").string(), "\"}]}"));
        parts.load.task = parts.trainer.facts().task;
        models::LoadOptions still = parts.load;
        still.training = false;
        if (ranks > 1) parts.load.team = still.team = join(meeting, sizes);
        parts.model = models::load_model(test::test_data("models/stories260K-hf"), parts.load);
        if (parts.trainer.facts().teacher != SideModelUse::none)
          parts.side.teacher.model = models::load_model(test::test_data("models/stories260K-hf"), still);
        Trainer(std::move(parts)).run();
      });
    };
    train(1, method + "_one", {});
    for (const auto& [mesh, sizes] :
         {std::pair{"dp", std::vector<int64_t>{2, 1, 1, 1, 1}}, {"fsdp", {1, 2, 1, 1, 1}}}) {
      SCOPED_TRACE(method + " " + mesh);
      train(2, method + "_" + mesh, sizes);
      const auto of = [&](const std::string& run, const char* metric) {
        return test::metric(folder / "out" / (method + "_" + run), metric);
      };
      const auto losses = of("one", "loss"), norms = of("one", "grad_norm");
      const auto other_losses = of(mesh, "loss"), other_norms = of(mesh, "grad_norm");
      ASSERT_EQ(losses.size(), 3u);
      ASSERT_EQ(other_losses.size(), 3u);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(other_norms[i], norms[i], 1e-5 * norms[i]) << "step " << i + 1;
        // Advantages add up to 0, and so nearly do the terms of some losses: the gradient says how large they are.
        EXPECT_NEAR(other_losses[i], losses[i], 1e-5 * std::max(std::abs(losses[i]), norms[i])) << "step " << i + 1;
      }
      const auto lines = test::json_lines(folder / "out" / (method + "_one") / "metrics.jsonl");
      const auto other_lines = test::json_lines(folder / "out" / (method + "_" + mesh) / "metrics.jsonl");
      for (size_t i = 0; i < 3; ++i)
        for (const auto& [name, value] : lines.at(i).entries) {
          const auto one = value.as_double(), other = other_lines.at(i).find(name)->as_double();
          if (!one || is_of_the_machine(name)) continue;
          ASSERT_TRUE(other) << name;
          EXPECT_NEAR(*other, *one, 1e-5 * std::max({std::abs(*one), norms[i], 1.0})) << name << ", step " << i + 1;
        }
    }
  }
}

// A classifier of a folder and a program judge on the first rank alone, the section's model on all of them, whose
// weights fsdp cuts. The program writes down what it is asked.
TEST(TwoRanks, JudgeByModelsAndProgramsAsOneRankDoes) {
  const test::TemporaryFolder folder;
  run_ranks(1, [&](const Meeting&) {
    const auto story = test::test_data("models/stories260K-hf");
    for (const int seed : {3, 4}) {
      models::LoadOptions options;
      options.task = models::Task::sequence_classification;
      options.labels = 1;
      options.seed = uint64_t(seed);
      const auto judge = folder.path() / str("judge", seed);
      models::save_model(*models::load_model(story, options), judge);
      text::save_tokenizer(*text::Tokenizer::load(story), judge);
    }
  });
  test::write_file(folder / "rows.jsonl",
                   R"({"prompt": "Once upon a time"}
{"prompt": "The cat"}
{"prompt": "Mom said"}
{"prompt": "A dog"}
)");
  test::write_file(folder / "count.py", R"(import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    with open(sys.argv[1], "a") as file:
        file.write(asked["completion"].replace("\n", " ") + "\n")
    print(json.dumps({"id": asked["id"], "reward": asked["completion"].count("a") / 10}), flush=True)
)");
  const auto train = [&](int ranks, const std::string& name, const std::vector<int64_t>& sizes) {
    run_ranks(ranks, [&](const Meeting& meeting) {
      const test::LogLines log;
      TrainerParts parts = test::small_run(
          folder.path(),
          str("{trainer_type: grpo, beta: 0.0, num_return_sequences: 4, max_completion_length: 8, temperature: 1.0, "
              "total_batch_size: 8, max_training_steps: 2, num_train_epochs: 4, model_name: ",
              name, ", rewards: [{type: model, name: named, model: \"", (folder / "judge3").string(),
              "\"}, {type: program, command: [python3, \"", (folder / "count.py").string(), "\", \"",
              (folder / name).string(), "\"]}]}"),
          str("{informs: [{data_files: \"", (folder / "rows.jsonl").string(), "\"}]}"));
      models::LoadOptions still = parts.load;
      still.training = false;
      still.task = models::Task::sequence_classification;
      if (ranks > 1) parts.load.team = still.team = join(meeting, sizes);
      parts.model = models::load_model(test::test_data("models/stories260K-hf"), parts.load);
      SideModel& judge = parts.side.rewards.emplace_back();
      judge.model = models::load_model(folder / "judge4", still);
      judge.tokenizer = parts.tokenizer;
      Trainer(std::move(parts)).run();
    });
    EXPECT_EQ(std::ranges::count(test::read_file(folder / name), '\n'), 2 * 8) << name << ": once for each completion";
  };
  train(1, "one", {});
  const std::string rollouts = test::read_file(folder / "out/one/rollouts.jsonl");
  for (const char* reward : {"\"named\"", "\"program\"", "\"reward_model\""})
    EXPECT_NE(rollouts.find(reward), std::string::npos) << reward;
  for (const auto& [mesh, sizes] : {std::pair{"dp", std::vector<int64_t>{2, 1, 1, 1, 1}}, {"fsdp", {1, 2, 1, 1, 1}}}) {
    SCOPED_TRACE(mesh);
    train(2, mesh, sizes);
    EXPECT_EQ(test::read_file(folder / mesh), test::read_file(folder / "one"));
    const auto other = test::metric(folder / "out" / mesh, "grad_norm"),
               norms = test::metric(folder / "out/one", "grad_norm");
    ASSERT_EQ(other.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(other[i], norms[i], 1e-5 * norms[i]) << "step " << i + 1;
    EXPECT_EQ(test::read_file(folder / "out" / mesh / "rollouts.jsonl"), rollouts);
  }
}

TEST_F(ParallelTraining, GoesOnFromAnotherMeshsCheckpoint) {
  train_on(1, {}, folder(), "one", 4);
  train_on(2, {1, 1, 1, 2, 1}, folder(), "moved", 1);
  train_on(4, {2, 2, 1, 1, 1}, folder(), "moved", 2);
  train_on(1, {}, folder(), "moved", 3);
  train_on(2, {1, 2, 1, 1, 1}, folder(), "moved", 4);
  expect_equal_runs(folder(), "one", "moved", 4);
}

// Weights saved in bf16 are accompanied by their fp32 masters.
TEST_F(ParallelTraining, KeepsMastersInCheckpointsOfBf16Weights) {
  const How how = {.dtype = models::DTypeSetting::bf16};
  train_on(2, {1, 2, 1, 1, 1}, folder(), "straight", 2, how);
  train_on(2, {1, 2, 1, 1, 1}, folder(), "resumed", 1, how);
  train_on(2, {1, 2, 1, 1, 1}, folder(), "resumed", 2, how);
  for (const char* file : {"model.safetensors", "optimizer/optimizer-00001-of-00001.safetensors"}) {
    EXPECT_EQ(test::read_file(folder() / "straight/run-2" / file), test::read_file(folder() / "resumed/run-2" / file));
  }
}

TEST_F(ParallelTraining, RefusesABatchThatDoesNotDivide) {
  run_ranks(2, [&](const Meeting& meeting) {
    auto team = join(meeting, {1, 2, 1, 1, 1});
    EXPECT_EQ(test::refusal([&] { train(folder(), "odd", 1, team, {.total_batch_size = 6}); }),
              "trainer.total_batch_size: 6 examples cannot be divided by 2 ranks and 2 micro-batches "
              "(gradient_accumulation_steps)\n    give a multiple of 4");
  });
}

}  // namespace
}  // namespace easydel::train
