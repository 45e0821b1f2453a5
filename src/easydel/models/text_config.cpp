#include "easydel/models/text_config.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/models/family_configs.h"

namespace easydel::models {
namespace {

struct Whole {
  std::string_view model_type, text;  // text: what text_config is where it does not say
  bool tied = false;                  // where config.json does not say
  bool plain_head = true;             // logits are the head's products as they are, whatever text_config says
};

// Alphabetical. Defaults are those of transformers' configuration classes.
constexpr Whole kWholes[] = {
    {"aya_vision", "cohere2", true},
    {"cohere2_vision", "cohere2", true},
    {"gemma3", "gemma3_text", true},
    {"gemma3n", "gemma3n_text", true, false},
    {"gemma4", "gemma4_text", true, false},
    {"idefics3", "llama"},
    {"internvl", "qwen2", true},
    {"llama4", "llama4_text"},
    {"llava", "llama"},
    {"llava_next", "llama"},
    {"llava_onevision", "qwen2"},
    {"mistral3", "mistral", true},
    {"qwen3_5", "qwen3_5_text"},
    {"qwen3_5_moe", "qwen3_5_moe_text"},
    {"smolvlm", "llama"},
};

const Value* find(const Value& config, std::string_view key) {
  const Value* const value = config.find(key);
  return value && !value->is_null() ? value : nullptr;
}

// The task of the whole model's class: "...ForConditionalGeneration" writes text.
Task task_of_class(std::string_view architecture, const Where& where) {
  constexpr std::pair<std::string_view, Task> endings[] = {{"ForConditionalGeneration", Task::causal_lm},
                                                           {"ForCausalLM", Task::causal_lm},
                                                           {"ForSequenceClassification", Task::sequence_classification},
                                                           {"ForTokenClassification", Task::token_classification}};
  for (const auto& [ending, task] : endings)
    if (architecture.ends_with(ending)) return task;
  refuse(where.below("architectures"), "'" + std::string(architecture) + "' is not built yet",
         "of a model that sees or hears the text part is built: ...ForConditionalGeneration");
}

}  // namespace

std::optional<TextPart> text_part_of(const Value& config, const Where& where) {
  const Value* const type = find(config, "model_type");
  const auto whole = std::ranges::find(kWholes, type ? type->as_string().value_or("") : "", &Whole::model_type);
  if (whole == std::end(kWholes)) return std::nullopt;
  const Value* const text = find(config, "text_config");
  if (!text || !text->is_map())
    refuse(where.below("text_config"), text ? to_json(*text) + " is no mapping" : "is missing",
           "it holds the language model's keys");

  TextPart out{*text, std::string(whole->model_type)};
  if (!find(out.config, "model_type")) out.config.set("model_type", Value::text(std::string(whole->text)));
  const Value* const architectures = find(config, "architectures");
  const bool named = architectures && architectures->is_list() && !architectures->items.empty();
  const Task task =
      named ? task_of_class(architectures->items.front().as_string().value_or(""), where) : Task::causal_lm;
  Value bare = Value::map();
  bare.set("model_type", *out.config.find("model_type"));
  Value classes = Value::list();
  classes.items.push_back(Value::text(architecture_of(family_config_of(bare, where.below("text_config")), task)));
  out.config.set("architectures", std::move(classes));

  // Where the class ties nothing by default the text part may say it, as older files did.
  const auto tied = [](const Value& from, bool otherwise) {
    const Value* const said = find(from, "tie_word_embeddings");
    return said ? said->as_bool().value_or(false) : otherwise;
  };
  out.config.set("tie_word_embeddings",
                 Value::boolean(tied(config, whole->tied) || (!whole->tied && tied(*text, false))));
  // What the whole model says of its text, and the text part does not say itself.
  for (const char* key : {"dtype", "torch_dtype", "id2label", "label2id", "num_labels", "problem_type", "bos_token_id",
                          "eos_token_id", "pad_token_id", "quantization_config"})
    if (const Value* const value = find(config, key); value && !out.config.find(key)) out.config.set(key, *value);
  if (whole->plain_head) {
    out.config.set("final_logit_softcapping", Value());
    for (const char* key : {"logit_scale", "logits_scaling"}) out.config.set(key, Value::number(1.0));
  }
  return out;
}

std::string text_tensor_name(std::string_view name, std::string_view base) {
  const auto within = [](std::string_view& from, std::string_view prefix) {
    const bool is = from.starts_with(prefix);
    if (is) from.remove_prefix(prefix.size());
    return is;
  };
  std::string_view rest = name;
  const bool inside = within(rest, "model.");
  const bool text = within(rest, "language_model.") || within(rest, "text_model.");
  if (!text) return inside || !(name.starts_with("lm_head.") || name.starts_with("score.")) ? "" : std::string(name);
  // The whole language model stands there, or its stack.
  if (rest.starts_with("lm_head.")) return std::string(rest);
  within(rest, "model.");
  return std::string(base) + "." + std::string(rest);
}

}  // namespace easydel::models
