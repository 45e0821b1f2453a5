#include "easydel/models/parts_config.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::models {
namespace {

const Value* find(const Value& config, std::string_view key) {
  const Value* const value = config.find(key);
  return value && !value->is_null() ? value : nullptr;
}

// The task of the whole model's class: "...ForConditionalGeneration" generates text.
Task task_of_class(std::string_view architecture, const Where& where) {
  if (architecture.ends_with("ForConditionalGeneration")) return Task::causal_lm;
  const auto task = task_of_ending(architecture);
  if (task == Task::causal_lm || task == Task::sequence_classification || task == Task::token_classification)
    return *task;
  refuse(where.below("architectures"), "'" + std::string(architecture) + "' is not built yet",
         "only the text part of a multimodal model is built: ...ForConditionalGeneration");
}

// Completes the text's config.json with keys of the whole one.
void complete_text(const Value& whole, const Where& where, const FamilyConfig& family, const std::string& key,
                   Value& text) {
  const Value* const architectures = find(whole, "architectures");
  const bool named = architectures && architectures->is_list() && !architectures->items.empty();
  const Task task =
      named ? task_of_class(architectures->items.front().as_string().value_or(""), where) : Task::causal_lm;
  Value bare = Value::map();
  bare.set("model_type", *text.find("model_type"));
  Value classes = Value::list();
  classes.items.push_back(Value::text(architecture_of(family_config_of(bare, where.below(key)), task)));
  text.set("architectures", std::move(classes));

  // If the class does not tie by default, the text part may say so, as in older files.
  const auto tied = [](const Value& from, bool otherwise) {
    const Value* const said = find(from, "tie_word_embeddings");
    return said ? said->as_bool().value_or(false) : otherwise;
  };
  text.set("tie_word_embeddings",
           Value::boolean(tied(whole, family.tied_text) || (!family.tied_text && tied(text, false))));
  // Keys of the whole model that apply to its text and that the text part does not have.
  for (const char* said : {"dtype", "torch_dtype", "id2label", "label2id", "num_labels", "problem_type", "bos_token_id",
                           "eos_token_id", "pad_token_id", "quantization_config"})
    if (const Value* const value = find(whole, said); value && !text.find(said)) text.set(said, *value);
  if (family.plain_logits) {
    text.set("final_logit_softcapping", Value());
    for (const char* scale : {"logit_scale", "logits_scaling"}) text.set(scale, Value::number(1.0));
  }
}

}  // namespace

Value part_config(const Value& config, const Where& where, PartRole role) {
  const FamilyConfig* const family = family_of_parts(config);
  if (!family && role == PartRole::text) return config;
  const FamilyPart* const part = family ? part_of(*family, role) : nullptr;
  if (!part) refuse(where.below("model_type"), str("a model of this type has no ", name_of(role), " part"));
  const std::string key(part->config_key);
  const Value* const own = find(config, key);
  if (!own || !own->is_map())
    refuse(where.below(key), own ? to_json(*own) + " is not a mapping" : "is missing",
           role == PartRole::text ? "it contains the language model's keys" : "it holds the part's keys");
  Value out = *own;
  if (!find(out, "model_type")) out.set("model_type", Value::text(std::string(part->model_type)));
  if (role == PartRole::text) complete_text(config, where, *family, key, out);
  return out;
}

std::string part_tensor_name(std::string_view name, const FamilyPart& part, std::string_view base) {
  const auto within = [](std::string_view& from, std::string_view prefix) {
    const bool found = from.starts_with(prefix);
    if (found) from.remove_prefix(prefix.size());
    return found;
  };
  std::string_view rest = name;
  const bool inside = within(rest, "model.");
  if (std::ranges::none_of(part.prefixes, [&](std::string_view prefix) { return within(rest, prefix); })) {
    const bool head = !inside && (name.starts_with("lm_head.") || name.starts_with("score."));
    return part.role == PartRole::text && head ? std::string(name) : "";
  }
  // This prefix contains the whole language model, or its stack.
  if (rest.starts_with("lm_head.")) return std::string(rest);
  within(rest, "model.");
  return std::string(base) + "." + std::string(rest);
}

}  // namespace easydel::models
