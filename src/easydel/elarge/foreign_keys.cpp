#include "easydel/elarge/foreign_keys.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/config/choice.h"
#include "easydel/train/method_configs.h"
#include "easydel/train/schedule_config.h"

namespace easydel::elarge {
namespace {

// The sections of one document in which another tool's key may be: its own, and the trainer's.
struct Around {
  const Value& own;
  const Value* trainer;

  const Value* find(std::string_view name) const {
    const Value* const value = own.find(name);
    return value || !trainer || !trainer->is_map() ? value : trainer->find(name);
  }
};
using Convert = std::string (*)(const Value& value, const Around& around);

struct ForeignKey {
  std::vector<std::string_view> names;
  std::string_view ours;      // path of our key; empty: `what` says all
  Convert convert = nullptr;  // the value of our key; null: the same
  std::string_view what = {};
};

std::string flow(const Value& value) { return to_yaml_flow(value); }

bool is_true(const Value& value) { return value.as_bool().value_or(!value.is_null()); }

std::string word_of(const Value& value) {
  std::string word = value.is_text() || value.as_string() ? value.scalar : "";
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return word;
}

std::string scheduler_of(const Value& value, const Around&) {
  const std::string word = word_of(value);
  if (config::value_of<train::Scheduler>(word)) return word;
  return word.starts_with("cosine") ? "cosine" : word.starts_with("constant") ? "constant" : "linear";
}

std::string optimizer_of(const Value& value, const Around&) {
  const std::string word = word_of(value);
  if (word.find("8bit") != std::string::npos)
    return word.find("lion") != std::string::npos       ? "lion_8bit"
           : word.find("ademamix") != std::string::npos ? "ademamix_8bit"
                                                        : "adamw_8bit";
  for (const char* name : {"ademamix", "adafactor", "lion", "rmsprop", "muon", "soap"})
    if (word.find(name) != std::string::npos) return name;
  return "adamw";
}

// Examples of one forward pass on one device to those of an update.
std::string whole_batch(const Value& value, const Around& around) {
  const Value* const steps = around.find("gradient_accumulation_steps");
  const auto one = value.as_int(), times = steps ? steps->as_int() : std::optional<int64_t>(1);
  if (!one || !times || *one <= 0 || *times <= 0 || *one > (int64_t{1} << 31) / *times) return "N";
  return str(*one * *times, "  # per_device x gradient_accumulation_steps, times the number of ranks");
}

std::string dtype_bf16(const Value& value, const Around&) { return is_true(value) ? "bf16" : "fp32"; }
std::string dtype_fp16(const Value& value, const Around&) { return is_true(value) ? "fp16" : "fp32"; }
std::string dtype_of(const Value& value, const Around&) {
  const std::string word = word_of(value);
  if (word.find("bf") != std::string::npos) return "bf16";
  if (word.find("16") != std::string::npos) return "fp16";
  return word.find("32") != std::string::npos ? "fp32" : "auto";
}

std::string checkpointing_of(const Value& value, const Around&) { return is_true(value) ? "nothing_saveable" : "none"; }

std::string attention_of(const Value& value, const Around&) {
  const std::string word = word_of(value);
  if (word == "sdpa") return word;
  if (word == "eager") return "vanilla";
  return is_true(value) && word != "disabled" ? "flash_attn2" : "auto";
}

std::string evaluates(const Value& value, const Around&) { return word_of(value) == "no" ? "false" : "true"; }
std::string saves(const Value& value, const Around& around) {
  const Value* const steps = around.find("save_steps");
  return word_of(value) == "no" ? "null" : steps ? flow(*steps) : "N";
}
std::string whole_number(const Value& value, const Around&) {
  const auto number = value.as_double();
  return number ? std::to_string(std::max<long long>(1, std::llround(std::ceil(*number)))) : "N";
}
std::string method_of(const Value& value, const Around&) {
  const train::MethodConfig* const method = train::find_method_config(train::our_word(word_of(value)));
  return method ? std::string(method->name) : word_of(value);
}
std::string files_of(const Value& value, const Around&) {
  const auto inform = [](const Value& name) { return "{data_files: " + to_yaml_flow(name) + "}"; };
  if (value.as_string()) return "[" + inform(value) + "]";
  std::string out;
  for (const Value& item : value.items) {
    const Value* const path = item.is_map() ? item.find("path") : nullptr;
    out += (out.empty() ? "" : ", ") + inform(path ? *path : item);
  }
  return "[" + out + "]";
}
std::string negated(const Value& value, const Around&) { return is_true(value) ? "false" : "true"; }
std::string steps_between(const Value& value, const Around&) {
  return "N  # the steps of an epoch divided by " + flow(value);
}
std::string last_rate(const Value& value, const Around& around) {
  const Value* const rate = around.find("learning_rate");
  const auto share = value.as_double(), peak = rate ? rate->as_double() : std::nullopt;
  return share && peak ? to_yaml_flow(Value::number(*share * *peak)) : "N  # learning_rate times " + flow(value);
}
std::string one_text(const Value& value, const Around&) { return "[{content_field: " + to_yaml_flow(value) + "}]"; }

const std::vector<ForeignKey>& foreign_keys() {
  static const std::vector<ForeignKey> all = {
      // The model.
      {{"base_model", "model_name_or_path", "model_id", "pretrained_model_name_or_path"}, "model.name_or_path"},
      {{"tokenizer_name", "tokenizer_name_or_path", "tokenizer_config"}, "model.tokenizer"},
      {{"model_revision", "revision_of_model"}, "model.revision"},
      {{"torch_dtype", "model_dtype", "infer_dtype"}, "loader.dtype", dtype_of},
      {{"bf16", "bfloat16", "pure_bf16"}, "loader.dtype", dtype_bf16},
      {{"fp16", "float16"}, "loader.dtype", dtype_fp16},
      {{"attn_implementation", "flash_attn", "flash_attention", "use_flash_attention_2"},
       "base_config.values.attn_mechanism",
       attention_of},
      {{"gradient_checkpointing"}, "base_config.values.gradient_checkpointing", checkpointing_of},
      {{"gradient_checkpointing_kwargs", "use_reentrant"}, "", nullptr, "leave it out: recomputation has no settings"},
      {{"xformers_attention"},
       "base_config.values.attn_mechanism",
       [](const Value& value, const Around&) { return std::string(is_true(value) ? "flash_attn2" : "auto"); }},
      {{"sdp_attention"},
       "base_config.values.attn_mechanism",
       [](const Value& value, const Around&) { return std::string(is_true(value) ? "sdpa" : "auto"); }},
      {{"eager_attention"},
       "base_config.values.attn_mechanism",
       [](const Value& value, const Around&) { return std::string(is_true(value) ? "vanilla" : "auto"); }},
      {{"model_type", "tokenizer_type", "tokenizer_use_fast", "is_llama_derived_model"},
       "",
       nullptr,
       "leave it out: the files of the model's folder say it"},
      {{"trust_remote_code"}, "", nullptr, "leave it out: code from model folders is never run"},
      {{"special_tokens", "pad_token", "resize_vocab", "embedding_size", "resize_token_embeddings_to_32x"},
       "",
       nullptr,
       "leave it out: tokens and embeddings stay those of the model; model.tokenizer names another tokenizer for them"},
      {{"rope_scaling", "rope_theta"}, "", nullptr, "it is a key of the model's config.json: change it there"},
      {{"ref_model", "ref_model_name_or_path"}, "reference_model.name_or_path"},
      {{"bnb_4bit_compute_dtype"}, "loader.dtype", dtype_of},
      {{"load_in_4bit", "load_in_8bit", "quantization_bit", "quantization_method", "quantization_type",
        "bnb_4bit_quant_type", "bnb_config_kwargs"},
       "",
       nullptr,
       "write quantization.model.quantization_method: nf4 or 8bit; adapters over the codes are trained (lora)"},
      {{"double_quantization", "bnb_4bit_use_double_quant"}, "quantization.model.double_quant"},
      // Data.
      {{"datasets", "train_file", "train_data", "data_path"}, "mixture.informs", files_of},
      {{"dataset"}, "mixture.informs", files_of},
      {{"test_datasets", "eval_dataset", "validation_file"}, "mixture.evaluation", files_of},
      {{"val_set_size", "val_size", "eval_split_ratio"},
       "",
       nullptr,
       "name the rows that are held out: mixture.evaluation: [{data_files: held_out.jsonl}]"},
      {{"dataset_text_field", "text_column"}, "mixture.informs", one_text},
      {{"max_seq_length", "model_max_length", "cutoff_len", "sequence_len", "block_size"}, "trainer.max_length"},
      {{"packing", "sample_packing", "neat_packing"}, "mixture.pack_tokens"},
      {{"eval_sample_packing"}, "trainer.eval_packing"},
      {{"streaming"}, "mixture.streaming"},
      {{"shuffle_merged_datasets"}, "trainer.shuffle_train_dataset"},
      {{"dataset_exact_deduplication"},
       "mixture.deduplicate",
       [](const Value& value, const Around&) { return std::string(is_true(value) ? "exact" : "none"); }},
      {{"mask_history"},
       "mixture.informs",
       [](const Value& value, const Around&) {
         return std::string(is_true(value) ? "[{train_on_turns: last}]" : "[{train_on_turns: all}]");
       }},
      {{"train_on_prompt"}, "trainer.completion_only_loss", negated},
      {{"pad_to_sequence_len", "pad_to_max_length"}, "", nullptr, "leave it out: rows are not padded"},
      {{"max_samples", "max_train_samples"},
       "mixture.informs",
       [](const Value& value, const Around&) { return "[{num_rows: " + to_yaml_flow(value) + "}]"; }},
      {{"template"},
       "",
       nullptr,
       "the tokenizer's own chat template is used, or the one that model.chat_template gives"},
      {{"chat_template", "chat_template_path"}, "model.chat_template"},
      // Training.
      {{"stage", "rl"}, "trainer.trainer_type", method_of},
      {{"output_dir"}, "trainer.save_directory"},
      {{"run_name"}, "trainer.model_name"},
      {{"num_epochs", "epochs"}, "trainer.num_train_epochs", whole_number},
      {{"num_train_epochs"}, "trainer.num_train_epochs", whole_number},
      {{"max_steps", "total_steps"}, "trainer.max_training_steps"},
      {{"per_device_train_batch_size", "micro_batch_size", "train_batch_size", "batch_size"},
       "trainer.total_batch_size",
       whole_batch},
      {{"per_device_eval_batch_size"}, "trainer.eval_batch_size"},
      {{"gradient_accumulation_steps"}, "trainer.gradient_accumulation_steps"},
      {{"learning_rate", "lr"}, "trainer.learning_rate"},
      {{"lr_scheduler_type", "lr_scheduler"}, "trainer.scheduler", scheduler_of},
      {{"warmup_ratio"}, "trainer.warmup_ratio"},
      {{"warmup_steps"}, "trainer.warmup_steps"},
      {{"weight_decay"}, "trainer.weight_decay"},
      {{"cosine_min_lr_ratio", "min_lr_rate"}, "trainer.learning_rate_end", last_rate},
      {{"adam_beta1"}, "trainer.extra_optimizer_kwargs.b1"},
      {{"adam_beta2"}, "trainer.extra_optimizer_kwargs.b2"},
      {{"adam_epsilon"}, "trainer.extra_optimizer_kwargs.eps"},
      {{"label_smoothing_factor"}, "trainer.loss_config.label_smoothing"},
      {{"noisy_embedding_alpha"}, "trainer.neftune_noise_alpha"},
      {{"loss_watchdog_threshold", "loss_watchdog_patience"},
       "",
       nullptr,
       "leave it out: a run stops at a loss that is not finite (trainer.loss_config.break_on_nan)"},
      {{"freeze_trainable_layers", "freeze_trainable_modules", "unfrozen_parameters"},
       "",
       nullptr,
       "write trainer.frozen_parameters: a regular expression that finds the parameters which are not trained"},
      {{"auto_find_batch_size"},
       "",
       nullptr,
       "leave it out: a run that does not fit says, before its first step, which keys would make it fit"},
      {{"optim"}, "trainer.optimizer", optimizer_of},
      {{"optimizer"}, "trainer.optimizer", optimizer_of},
      {{"max_grad_norm", "gradient_clipping", "gradient_clip_val"}, "trainer.clip_grad"},
      {{"seed", "data_seed"}, "trainer.shuffle_seed_train"},
      {{"group_by_length"}, "", nullptr, "leave it out: mixture.pack_tokens: true leaves no padding"},
      {{"pref_beta", "dpo_beta", "rl_beta"}, "trainer.beta"},
      {{"pref_loss"}, "trainer.loss_type"},
      {{"train_on_inputs"}, "trainer.train_on_inputs"},
      // Saving, logging, evaluation.
      {{"logging_steps"}, "trainer.log_steps"},
      {{"save_steps"}, "trainer.save_steps"},
      {{"save_total_limit"}, "trainer.save_total_limit"},
      {{"save_strategy"}, "trainer.save_steps", saves},
      {{"save_only_model"}, "trainer.save_optimizer_state", negated},
      {{"saves_per_epoch"}, "trainer.save_steps", steps_between},
      {{"eval_steps"}, "trainer.evaluation_steps"},
      {{"evals_per_epoch"}, "trainer.evaluation_steps", steps_between},
      {{"early_stopping_steps"}, "trainer.early_stopping_patience"},
      {{"use_tensorboard"}, "trainer.tensorboard"},
      {{"eval_strategy", "evaluation_strategy"}, "trainer.do_eval", evaluates},
      {{"resume_from_checkpoint", "auto_resume_from_checkpoints"}, "trainer.resume_if_possible", evaluates},
      {{"push_to_hub_model_id"}, "trainer.hub_model_id"},
      {{"hub_token", "hf_use_auth_token"}, "", nullptr, "set the environment variable HF_TOKEN"},
      {{"report_to", "wandb_project", "wandb_watch", "wandb_run_id", "wandb_log_model", "use_swanlab"},
       "",
       nullptr,
       "leave it out: metrics.jsonl in the run's folder has every number; Weights & Biases is not built yet"},
      {{"logging_dir", "logging_strategy", "plot_loss", "logging_first_step", "include_num_input_tokens_seen",
        "include_tokens_per_second"},
       "",
       nullptr,
       "leave it out: metrics.jsonl and loss.svg are always in the run's folder"},
      {{"save_safetensors"}, "", nullptr, "leave it out: models are always saved as safetensors"},
      {{"overwrite_output_dir"}, "", nullptr, "trainer.resume_if_possible: false starts a new run beside the old one"},
      {{"overwrite_cache",
        "preprocessing_num_workers",
        "dataset_prepared_path",
        "ddp_timeout",
        "tf32",
        "dataloader_drop_last",
        "dataset_dir",
        "predict_with_generate",
        "dataset_processes",
        "strict",
        "local_rank",
        "disable_tqdm",
        "hub_strategy",
        "do_predict",
        "torch_compile",
        "enable_liger_kernel",
        "use_unsloth",
        "low_cpu_mem_usage",
        "device_map",
        "eval_accumulation_steps",
        "lora_fan_in_fan_out",
        "tokenized_path"},
       "",
       nullptr,
       "leave it out: there is nothing to set"},
      // Adapters and several devices.
      {{"lora_r", "lora_rank"}, "lora.r"},
      {{"lora_alpha"}, "lora.alpha"},
      {{"lora_dropout"}, "lora.dropout"},
      {{"lora_target_modules", "lora_target"}, "lora.target_modules"},
      {{"lora_modules_to_save", "additional_target"}, "lora.modules_to_save"},
      {{"lora_target_linear"},
       "lora.target_modules",
       [](const Value& value, const Around&) {
         return std::string(is_true(value) ? "all-linear" : "[q_proj, v_proj]");
       }},
      {{"adapter_name_or_path", "lora_model_dir"}, "lora.adapter"},
      {{"use_dora", "peft_use_dora"}, "lora.use_dora"},
      {{"use_rslora", "peft_use_rslora"}, "lora.use_rslora"},
      {{"adapter", "finetuning_type", "peft_config", "use_peft"},
       "",
       nullptr,
       "adapters are the section lora: {r: 16, target_modules: all-linear}; without it the whole model is trained"},
      {{"deepspeed", "fsdp", "fsdp_config", "fsdp_version"},
       "",
       nullptr,
       "sharding.axis_dims: [1, -1, 1, 1, 1] cuts the model over all ranks (fsdp)"},
      {{"tensor_parallel_size"},
       "sharding.axis_dims",
       [](const Value& value, const Around&) { return "[1, -1, 1, " + to_yaml_flow(value) + ", 1]"; }},
  };
  return all;
}

// The section that `path` is in; the document itself for a key at the top.
const Value* section_of_path(const Value& config, std::string_view path) {
  const Value* at = &config;
  for (size_t dot; at && (dot = path.find('.')) != std::string_view::npos; path.remove_prefix(dot + 1))
    at = at->is_map() ? at->find(path.substr(0, dot)) : nullptr;
  return at;
}

}  // namespace

std::string remedy_of_foreign_key(const Value& config, std::string_view path) {
  const std::string_view name = path.substr(path.rfind('.') + 1);
  const auto found = std::ranges::find_if(
      foreign_keys(), [&](const ForeignKey& key) { return std::ranges::find(key.names, name) != key.names.end(); });
  const Value* const section = section_of_path(config, path);
  const Value* const value = section && section->is_map() ? section->find(name) : nullptr;
  if (found == foreign_keys().end() || !value) return "";
  if (found->ours.empty()) return std::string(found->what);
  const std::string written =
      found->convert ? found->convert(*value, {*section, config.find("trainer")}) : flow(*value);
  return str("write ", found->ours, ": ", written);
}

}  // namespace easydel::elarge
