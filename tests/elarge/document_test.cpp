// The place of the configuration in a document, the actions, and settings of the command line.
#include <gtest/gtest.h>

#include "easydel/elarge/actions.h"
#include "easydel/elarge/elarge.h"
#include "support/data.h"

namespace easydel::elarge {
namespace {

struct Outcome {
  Run run;
  config::Problems problems{"run.yaml"};
};

Outcome read(const std::string& text, std::vector<Override> overrides = {}) {
  Outcome out;
  out.run = read_document(parse_yaml(text, "run.yaml"), overrides, out.problems);
  return out;
}
std::string mistakes(const std::string& text, std::vector<Override> overrides = {}) {
  return read(text, std::move(overrides)).problems.text();
}
std::string one(const std::string& problem) { return problem + "\n1 problem in run.yaml; nothing was run."; }

std::vector<std::string> names(const Run& run) {
  std::vector<std::string> out;
  for (const Action& action : run.actions) out.emplace_back(action.entry->name);
  return out;
}

TEST(Document, HoldsItsConfigurationAtTheTopOrBelowAWrapper) {
  for (const char* text :
       {"model: {name_or_path: a}\nactions: [validate]", "config: {model: {name_or_path: a}}\nactions: [validate]",
        "elm: {model: {name_or_path: a}}\nactions: [validate]",
        "elarge_model: {model: {name_or_path: a}}\nactions: [validate]"}) {
    const Outcome out = read(text);
    EXPECT_TRUE(out.problems.empty()) << out.problems.text();
    EXPECT_EQ(out.run.config.model.name_or_path, "a");
  }
  const Outcome two = read("elm: {model: {name_or_path: a}}\nconfig: {model: {name_or_path: b}}\nactions: [validate]");
  EXPECT_EQ(two.run.config.model.name_or_path, "b");
  EXPECT_EQ(two.problems.notes(),
            (std::vector<std::string>{"run.yaml:1:1: elm: is ignored because 'config' is given"}));
  EXPECT_EQ(
      mistakes("config: {model: {name_or_path: a}}\nloader: {}\nactions: [validate]"),
      one("run.yaml:2:1: loader: is outside 'config:', which holds the configuration\n    move it below 'config:'"));
}

TEST(Document, MustBeAMapWithAModelAndActions) {
  EXPECT_EQ(mistakes("[1]"),
            one("run.yaml:1:1: a list is not a run\n    a run is a map of keys: at least 'model:' and 'actions:'"));
  EXPECT_EQ(mistakes(""), one("run.yaml: is empty\n    a run is a map of keys: at least 'model:' and 'actions:'"));
  EXPECT_EQ(mistakes("model: {name_or_path: a}"),
            one("run.yaml: actions: is missing\n    list what to do, for example 'actions: [validate, train]'"));
  EXPECT_EQ(mistakes("actions: [validate]"),
            one("run.yaml:1:1: model: is missing\n    expected a section: keys below it"));
  EXPECT_EQ(mistakes("model: {task: causal-lm}\nactions: [validate]"),
            one("run.yaml:1:8: model.name_or_path: is missing\n    expected a string"));
  EXPECT_EQ(
      mistakes("config: [1]\nactions: [validate]"),
      one("run.yaml:1:9: config: is not a section\n    expected keys below it, for example 'model:' and 'trainer:'"));
}

TEST(Actions, AreAListAWordOrAMapping) {
  const std::string model = "model: {name_or_path: a}\nactions: ";
  EXPECT_EQ(names(read(model + "[validate, Print-Config, {save-yaml: out.yaml}]").run),
            (std::vector<std::string>{"validate", "dump_config", "to_yaml"}));
  EXPECT_EQ(names(read(model + "train").run), (std::vector<std::string>{"train"}));
  EXPECT_EQ(names(read(model + "{generate: {prompts: hello}}").run), (std::vector<std::string>{"generate"}));
  EXPECT_EQ(names(read(model + "[]").run), (std::vector<std::string>{}));
}

TEST(Actions, TakeParametersThatAreIndentedTooLittle) {
  const Outcome out =
      read("model: {name_or_path: a}\nactions:\n  - generate:\n    prompts: [a, b]\n    max_new_tokens: 4\n");
  ASSERT_TRUE(out.problems.empty()) << out.problems.text();
  EXPECT_EQ(to_yaml_flow(normalised(out.run.actions)),
            "[{generate: {prompts: [a, b], negative_prompt: \"\", output_path: null, apply_chat_template: false, "
            "engine: auto, random_weights: false, adapter: [], max_new_tokens: 4}}]");
}

TEST(Actions, AreCheckedWithTheirParameters) {
  EXPECT_EQ(
      mistakes("model: {name_or_path: a}\nactions:\n  - valdate\n  - train: {epochs: 3}\n  - {serve: , port: "
               "99999}\n  - eval: {tasks: []}\n"
               "  - to_yaml:\n  - {a: 1, b: 2}\n  - generate: {temperature: -1}\n  - 3\n"),
      "run.yaml:3:5: actions[0]: unknown action 'valdate'\n    did you mean 'validate'?\nrun.yaml:4:12: "
      "actions[1].train: takes no parameters\n    write it as '- train'\nrun.yaml:5:21: actions[2].serve.port: 99999 "
      "is out of range\n    expected an integer "
      "from 0 to 65535 (default 11556)\nrun.yaml:6:19: actions[3].eval.tasks: names no task\n    for example "
      "[hellaswag, arc_easy]\nrun.yaml:7:5: "
      "actions[4].to_yaml.path: is missing\n    expected a string\nrun.yaml:8:5: actions[5]: has 2 keys, and none "
      "of them is an action without a value\n    write '- train', or '- generate:' with its parameters indented "
      "below\nrun.yaml:9:15: actions[6].generate.prompts: is missing\n    expected a string, or a list of "
      "them\nrun.yaml:9:29: actions[6].generate.temperature: -1 is out of range\n    expected a number of at "
      "least 0 (default 1.0)\nrun.yaml:10:5: actions[7]: '3' is not an action\n    write '- train', or '- "
      "generate:' with its parameters indented below\n9 problems in run.yaml; nothing was run.");
}

TEST(Overrides, ComeOverTheFile) {
  const std::string text = "model: {name_or_path: a}\nmixture: {informs: [{data_files: x.txt}]}\nactions: [validate]";
  const Outcome out = read(text, {{"trainer.learning_rate", "1e-4"},
                                  {"mixture.informs[0].num_rows", "5"},
                                  {"sharding.axis_dims", "[1, 1, 1, -1, 1]"}});
  ASSERT_TRUE(out.problems.empty()) << out.problems.text();
  EXPECT_EQ(out.run.config.trainer.common.learning_rate, 1e-4);
  EXPECT_EQ(out.run.config.mixture.informs.at(0).num_rows, 5);
  EXPECT_EQ(out.run.config.sharding.axis_dims.at(3), -1);
}

TEST(Overrides, AreNamedInErrors) {
  const std::string text = "model: {name_or_path: a}\nactions: [validate]";
  EXPECT_EQ(mistakes(text, {{"trainer.learning_rate", "fast"}}),
            one("--set trainer.learning_rate=fast: trainer.learning_rate: 'fast' is not a number\n    expected a "
                "number of at least 0 (default 2e-05)"));
  EXPECT_EQ(mistakes(text, {{"trainer.leaning_rate", "1"}}),
            one("--set trainer.leaning_rate=1: trainer.leaning_rate: no such key\n    did you mean 'learning_rate'?"));
  EXPECT_EQ(mistakes(text, {{"mixture.informs[2].type", "txt"}}).substr(0, 66),
            "--set mixture.informs[2].type=txt: mixture.informs[2].type: there ");
}

TEST(CrossKeyRules, NameTheKeyThatBreaksThem) {
  const std::string model = "model: {name_or_path: a}\nactions: [validate]\n";
  EXPECT_EQ(mistakes(model + "sharding: {axis_dims: [1, 2]}"),
            one("run.yaml:3:23: sharding.axis_dims: sharding.axis_dims (2) must match sharding.axis_names (5)\n    "
                "give one size for each of: dp, fsdp, ep, tp, sp"));
  EXPECT_EQ(mistakes(model + "sharding: {axis_dims: [1, -1, 1, -1, 1]}"),
            one("run.yaml:3:23: sharding.axis_dims: has -1 more than once; only one axis can take the remaining "
                "ranks\n    give the sizes of all axes but one"));
  EXPECT_EQ(mistakes(model + "sharding: {axis_dims: [1, 0, 1, 1, 1]}"),
            one("run.yaml:3:23: sharding.axis_dims: 0 is not a size of an axis\n    sharding.axis_dims must be "
                "positive or -1 (auto)"));
  EXPECT_EQ(mistakes(model + "mixture: {batch_size: 8}\ntrainer: {total_batch_size: 16}"),
            one("run.yaml:3:23: mixture.batch_size: is 8, but trainer.total_batch_size is 16\n    they are the same "
                "thing; give one of them"));
  EXPECT_EQ(
      mistakes(model + "mixture: {batch_size: 8}\ntrainer: {gradient_accumulation_steps: 3}"),
      one("run.yaml:3:23: trainer.total_batch_size: an update of 8 examples does not divide into 3 accumulation steps\n"
          "    make it a multiple of gradient_accumulation_steps, such as 9"));
  EXPECT_EQ(read(model + "mixture: {batch_size: 6}\ntrainer: {gradient_accumulation_steps: 3}")
                .run.config.trainer.common.total_batch_size,
            6);
  EXPECT_EQ(mistakes(model + "loader: {device: gpu}\nplatform: {backend: cpu}"),
            one("run.yaml:3:18: loader.device: contradicts platform.backend, which is cpu\n    give one of them"));
}

TEST(GradientCheckpointing, TakesNamesThatThereAre) {
  const auto with = [](const std::string& values) {
    return read("model: {name_or_path: a}\nactions: [validate]\nbase_config: {values: {gradient_checkpointing" +
                values + "}}");
  };
  EXPECT_EQ(with(": save_only_these_names").problems.text(),
            one("run.yaml:3:23: base_config.values.gradient_checkpointing_targets: save_only_these_names needs names\n"
                "    for example: [attn_output, mlp_down]"));
  EXPECT_EQ(with("_targets: [mlp_dwon, attn_output], gradient_checkpointing: save_any_names_but_these").problems.text(),
            one("run.yaml:3:56: base_config.values.gradient_checkpointing_targets: there is no tensor 'mlp_dwon'\n    "
                "did you mean 'mlp_down'?"));
  EXPECT_TRUE(with("_targets: [mlp_down], gradient_checkpointing: save_from_both_policies").problems.empty());
  const auto idle = with("_targets: [mlp_down], gradient_checkpointing: dots_saveable").problems;
  EXPECT_TRUE(idle.empty());
  EXPECT_EQ(idle.notes().size(), 1u);
}

// Every kind of block that the guide shows, as keys of a minimal run.
TEST(Guide, EveryKeyIsKnown) {
  const auto notes_or_errors = [](const std::string& block) {
    const Outcome out = read("model: {name_or_path: a}\nactions: [validate]\n" + block);
    return out.problems.empty() ? std::string("valid") : out.problems.text();
  };
  EXPECT_EQ(notes_or_errors("teacher_model: {name_or_path: b}\nreference_model: {name_or_path: c}"), "valid");
  EXPECT_EQ(notes_or_errors("loader: {dtype: bf16, param_dtype: bf16, precision: high, verbose: false, from_torch: "
                            "true, trust_remote_code: true}"),
            "valid");
  EXPECT_EQ(notes_or_errors(
                "sharding: {axis_dims: [1, -1, 1, 1, 1], axis_names: [dp, fsdp, ep, tp, sp], auto_shard_model: true, "
                "use_ring_of_experts: false, fsdp_is_ep_bound: false, sp_is_ep_bound: false}"),
            "valid");
  EXPECT_EQ(notes_or_errors("quantization: {platform: triton, apply_quantization: true, kv_cache: "
                            "{quantization_method: 8bit, group_size: 128}, "
                            "model: {quantization_method: nf4, group_size: 64}}"),
            "valid");
  EXPECT_EQ(notes_or_errors("base_config: {values: {attn_dtype: float32, use_scan_mlp: true}, operation_configs: "
                            "{flash_attn2: {blocksize_q: 128, "
                            "blocksize_k: 128}}}"),
            "valid");
  EXPECT_EQ(notes_or_errors(
                "esurge: {max_model_len: 8192, max_num_seqs: 256, hbm_utilization: 0.85, page_size: 128, "
                "use_aot_forward: true, "
                "enable_prefix_caching: true, compile_runner: true, overlap_execution: false, silent_mode: false, "
                "auto_truncate_prompt: true, auto_cap_new_tokens: true, strict_context: false, truncate_mode: left, "
                "tokenizer_endpoint: null, detokenizer_endpoint: null}"),
            "valid");
  EXPECT_EQ(
      notes_or_errors(
          "mixture: {informs: [{type: json, data_files: 'train/*.json', content_field: text, split: train}], "
          "batch_size: 32, "
          "shuffle_buffer_size: 10000, seed: 42, pack_tokens: true, pack_seq_length: 2048, pack_eos_token_id: 2, "
          "pack_shuffle: true, "
          "pack_shuffle_buffer_factor: 10, pack_on_the_fly: true, block_mixture: true, mixture_block_size: 1000, "
          "stop_strategy: first_exhausted, prefetch_workers: 4, prefetch_buffer_size: 100, cache_remote_files: true, "
          "tokenization: {max_length: 2048, truncation: true, padding: max_length}, save: {path: ./processed, format: "
          "parquet}}"),
      "valid");
  EXPECT_EQ(
      notes_or_errors("trainer: {trainer_type: sft, learning_rate: 2.0e-5, num_train_epochs: 3, total_batch_size: 32, "
                      "gradient_accumulation_steps: 4, warmup_steps: 100, weight_decay: 0.01, clip_grad: 1.0, "
                      "optimizer: adamw, scheduler: cosine, "
                      "log_steps: 10, evaluation_steps: 500, save_steps: 500, save_directory: ./output, "
                      "save_total_limit: 3, beta: 0.1, "
                      "label_smoothing: 0.0, group_size: 4, kl_coef: 0.1}"),
      "valid");
  EXPECT_EQ(notes_or_errors("trainer: {trainer_type: dpo, learning_rate: 5.0e-7, beta: 0.1, scheduler: constant, "
                            "max_training_steps: 100}"),
            "valid");
  EXPECT_EQ(
      notes_or_errors(
          "eval: {max_new_tokens: 2048, temperature: 0.0, top_p: 0.95, batch_size: 32, use_tqdm: true, limit: null, "
          "cache_requests: true, apply_chat_template: true, system_instruction: You are helpful.}"),
      "valid");
}

TEST(Config, IsWrittenAsADocumentThatReadsTheSame) {
  const Outcome out = read(
      "model: {name_or_path: a, extra_kwargs: {x: 1}}\nactions: [validate]\ntrainer: {trainer_type: dpo, beta: 0.3}\n"
      "base_config: {values: {rope_theta: 5}}\nquantization: {model: {quantization_method: nf4}}");
  ASSERT_TRUE(out.problems.empty()) << out.problems.text();
  const Value document = normalised(out.run.config);
  Config again;
  const config::Problems problems = config::read(parse_yaml(to_yaml(document)), again);
  EXPECT_TRUE(problems.empty()) << problems.text();
  EXPECT_EQ(normalised(again), document);
  EXPECT_EQ(parse_json(to_json(document, 2)), document);
}

}  // namespace
}  // namespace easydel::elarge
