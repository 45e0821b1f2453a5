#include "easydel/elarge/foreign_keys.h"

#include <gtest/gtest.h>

#include <string>

#include "easydel/base/error.h"
#include "easydel/elarge/overrides.h"
#include "support/data.h"

namespace easydel::elarge {
namespace {

std::string refused(const std::string& yaml) {
  return test::refusal([&] { configuration(parse_yaml("model: {name_or_path: x}\n" + yaml), {}); });
}

// What is said about the key in the section `trainer` and next to it.
void expect_remedy(const std::string& key, const std::string& value, const std::string& remedy) {
  for (const std::string& yaml : {str("trainer: {", key, ": ", value, "}\n"), str(key, ": ", value, "\n")}) {
    const std::string told = refused(yaml);
    EXPECT_NE(told.find("no such key\n    " + remedy), std::string::npos) << yaml << told;
  }
}

// The keys of the tools' own examples. A reader of such a file should not have to look a key up.
constexpr const char* keys_of_axolotl[] = {"base_model",
                                           "model_type",
                                           "tokenizer_type",
                                           "strict",
                                           "load_in_8bit",
                                           "load_in_4bit",
                                           "datasets",
                                           "dataset_prepared_path",
                                           "val_set_size",
                                           "output_dir",
                                           "sequence_len",
                                           "sample_packing",
                                           "eval_sample_packing",
                                           "pad_to_sequence_len",
                                           "adapter",
                                           "lora_model_dir",
                                           "lora_r",
                                           "lora_alpha",
                                           "lora_dropout",
                                           "lora_target_modules",
                                           "lora_target_linear",
                                           "lora_fan_in_fan_out",
                                           "lora_modules_to_save",
                                           "wandb_project",
                                           "wandb_entity",
                                           "wandb_watch",
                                           "wandb_name",
                                           "wandb_log_model",
                                           "gradient_accumulation_steps",
                                           "micro_batch_size",
                                           "num_epochs",
                                           "optimizer",
                                           "lr_scheduler",
                                           "learning_rate",
                                           "cosine_min_lr_ratio",
                                           "train_on_inputs",
                                           "group_by_length",
                                           "bf16",
                                           "fp16",
                                           "tf32",
                                           "gradient_checkpointing",
                                           "gradient_checkpointing_kwargs",
                                           "early_stopping_patience",
                                           "resume_from_checkpoint",
                                           "auto_resume_from_checkpoints",
                                           "local_rank",
                                           "logging_steps",
                                           "xformers_attention",
                                           "flash_attention",
                                           "sdp_attention",
                                           "eager_attention",
                                           "loss_watchdog_threshold",
                                           "loss_watchdog_patience",
                                           "warmup_steps",
                                           "warmup_ratio",
                                           "evals_per_epoch",
                                           "saves_per_epoch",
                                           "eval_steps",
                                           "save_steps",
                                           "save_total_limit",
                                           "weight_decay",
                                           "deepspeed",
                                           "fsdp",
                                           "fsdp_config",
                                           "special_tokens",
                                           "chat_template",
                                           "shuffle_merged_datasets",
                                           "dataset_processes",
                                           "hub_model_id",
                                           "neftune_noise_alpha",
                                           "use_tensorboard"};
constexpr const char* keys_of_llama_factory[] = {"model_name_or_path",
                                                 "adapter_name_or_path",
                                                 "trust_remote_code",
                                                 "stage",
                                                 "do_train",
                                                 "do_predict",
                                                 "finetuning_type",
                                                 "lora_rank",
                                                 "lora_target",
                                                 "lora_alpha",
                                                 "lora_dropout",
                                                 "freeze_trainable_layers",
                                                 "quantization_bit",
                                                 "quantization_method",
                                                 "double_quantization",
                                                 "dataset",
                                                 "dataset_dir",
                                                 "template",
                                                 "cutoff_len",
                                                 "max_samples",
                                                 "overwrite_cache",
                                                 "preprocessing_num_workers",
                                                 "dataloader_num_workers",
                                                 "output_dir",
                                                 "logging_steps",
                                                 "save_steps",
                                                 "plot_loss",
                                                 "overwrite_output_dir",
                                                 "save_only_model",
                                                 "report_to",
                                                 "per_device_train_batch_size",
                                                 "gradient_accumulation_steps",
                                                 "learning_rate",
                                                 "num_train_epochs",
                                                 "lr_scheduler_type",
                                                 "warmup_ratio",
                                                 "bf16",
                                                 "ddp_timeout",
                                                 "resume_from_checkpoint",
                                                 "eval_dataset",
                                                 "val_size",
                                                 "per_device_eval_batch_size",
                                                 "eval_strategy",
                                                 "eval_steps",
                                                 "pref_beta",
                                                 "pref_loss",
                                                 "packing",
                                                 "neat_packing",
                                                 "mask_history",
                                                 "train_on_prompt",
                                                 "streaming",
                                                 "resize_vocab",
                                                 "flash_attn",
                                                 "enable_liger_kernel",
                                                 "use_unsloth",
                                                 "rope_scaling",
                                                 "ref_model",
                                                 "include_num_input_tokens_seen",
                                                 "use_dora",
                                                 "use_rslora"};
constexpr const char* keys_of_transformers[] = {"adam_beta1",
                                                "adam_beta2",
                                                "adam_epsilon",
                                                "max_grad_norm",
                                                "max_steps",
                                                "label_smoothing_factor",
                                                "optim",
                                                "logging_dir",
                                                "logging_strategy",
                                                "logging_first_step",
                                                "save_strategy",
                                                "save_safetensors",
                                                "seed",
                                                "data_seed",
                                                "evaluation_strategy",
                                                "eval_accumulation_steps",
                                                "dataloader_drop_last",
                                                "run_name",
                                                "disable_tqdm",
                                                "remove_unused_columns",
                                                "push_to_hub",
                                                "hub_strategy",
                                                "hub_token",
                                                "auto_find_batch_size",
                                                "torch_compile",
                                                "include_tokens_per_second",
                                                "dataset_text_field",
                                                "max_seq_length",
                                                "dataset_num_proc",
                                                "assistant_only_loss",
                                                "completion_only_loss",
                                                "eos_token",
                                                "pad_token",
                                                "eval_packing",
                                                "attn_implementation",
                                                "torch_dtype",
                                                "low_cpu_mem_usage",
                                                "device_map",
                                                "bnb_4bit_quant_type",
                                                "bnb_4bit_compute_dtype"};

template <size_t n>
void expect_hints(const char* const (&keys)[n]) {
  for (const std::string key : keys)
    for (const std::string& yaml : {"trainer: {" + key + ": 1}\n", key + ": 1\n"}) {
      const std::string told = refused(yaml);
      const size_t at = told.find("no such key\n    ");
      if (at == std::string::npos) {  // a key of ours, too
        EXPECT_TRUE(yaml.starts_with("trainer")) << yaml << told;
        continue;
      }
      for (const char* other : {"known", "to list its", "did you mean"})
        EXPECT_NE(at, told.find(str("no such key\n    ", other))) << yaml << told;
    }
}

TEST(ForeignKeys, OfOtherToolsExamplesHaveAHint) {
  expect_hints(keys_of_axolotl);
  expect_hints(keys_of_llama_factory);
  expect_hints(keys_of_transformers);
}

TEST(ForeignKeys, SayOurKeyWithTheValueConverted) {
  expect_remedy("lr_scheduler_type", "cosine_annealing", "write trainer.scheduler: cosine\n");
  expect_remedy("lr_scheduler_type", "one_cycle", "write trainer.scheduler: linear\n");
  expect_remedy("save_only_model", "true", "write trainer.save_optimizer_state: false\n");
  expect_remedy("train_on_prompt", "true", "write trainer.completion_only_loss: false\n");
  expect_remedy("mask_history", "true", "write mixture.informs: [{train_on_turns: last}]\n");
  expect_remedy("evals_per_epoch", "4", "write trainer.evaluation_steps: N  # the steps of an epoch divided by 4\n");
  expect_remedy("xformers_attention", "true", "write base_config.values.attn_mechanism: flash_attn2\n");
  expect_remedy("eager_attention", "true", "write base_config.values.attn_mechanism: vanilla\n");
  expect_remedy("lora_target_linear", "true", "write lora.target_modules: all-linear\n");
  expect_remedy("optim", "paged_adamw_8bit", "write trainer.optimizer: adamw_8bit\n");
  expect_remedy("optim", "lion_8bit", "write trainer.optimizer: lion_8bit\n");
  expect_remedy("optim", "ademamix_8bit", "write trainer.optimizer: ademamix_8bit\n");
  expect_remedy("optim", "ademamix", "write trainer.optimizer: ademamix\n");
  expect_remedy("double_quantization", "true", "write quantization.model.double_quant: true\n");
  expect_remedy("adam_beta2", "0.95", "write trainer.extra_optimizer_kwargs.b2: 0.95\n");
  expect_remedy("cosine_min_lr_ratio", "0.1", "write trainer.learning_rate_end: N  # learning_rate times 0.1\n");
  EXPECT_NE(refused("trainer: {learning_rate: 2e-4, cosine_min_lr_ratio: 0.1}\n")
                .find("write trainer.learning_rate_end: 2e-05\n"),
            std::string::npos);
}

// Files of other tools have no sections: any key of the trainer, of whatever method, may stand at the top.
TEST(ForeignKeys, OfTheTrainerAtTheTopSayWhereTheyBelong) {
  for (const char* key : {"wandb_entity: me", "assistant_only_loss: true", "loss_type: sigmoid", "num_generations: 4"})
    EXPECT_NE(refused(str(key, "\n")).find(str("no such key\n    write trainer.", key, "\n")), std::string::npos)
        << refused(str(key, "\n"));
}

}  // namespace
}  // namespace easydel::elarge
