// The families by config.json's names, without torch: everything about a folder that is known before it is loaded. How
// a family is built is in families.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::models {

// What follows the stack.
enum class Task : uint8_t {
  causal_lm,
  masked_lm,
  base,
  sequence_classification,
  token_classification,
  question_answering
};

// Names of heads in transformers' classes, where a family differs from most.
struct HeadNames {
  std::string_view token_classes = "score";  // the output layer of token classification
  std::string_view question_stack = {};      // the stack of question answering; empty: as in the other classes
};

// The input of a model's part.
enum class PartRole : uint8_t { text, vision, audio };
std::string_view name_of(PartRole role);

// A part of a model with its own configuration and tensors.
struct FamilyPart {
  PartRole role = PartRole::text;
  std::string_view config_key;             // where config.json describes it: "text_config"
  std::string_view model_type;             // if that does not have one
  std::vector<std::string_view> prefixes;  // of its tensors, after "model." or without it: "language_model."
};

struct FamilyConfig {
  std::string_view model_type;
  std::vector<std::string_view> architectures;  // with a language head; the other classes' names follow from the first
  bool reads_mxfp4 = false;                     // quantization_config may say mxfp4
  HeadNames names = {};
  std::vector<FamilyPart> parts = {};  // empty: the model is one part, the text
  // Of a model of several parts: whether head and embedding are one, where config.json does not say; whether logits are
  // the head's products as they are, whatever the text part's configuration says.
  bool tied_text = false, plain_logits = true;
};

std::span<const FamilyConfig> family_configs();
// Adds one; see register_family_config, which also registers its classes. UserError if the model_type is taken.
void add_family_config(const FamilyConfig& config);

// The families of several parts, of which the text part is built: each part's own family is one of family_configs.
std::span<const FamilyConfig> families_of_parts();
// That of a config.json; null: its model is of one part.
const FamilyConfig* family_of_parts(const Value& config);
const FamilyPart* part_of(const FamilyConfig& family, PartRole role);  // null: it has none

// The family of a config.json that errors call `where`. Throws UserError "where: key: what" if model_type or an
// architecture is unknown or not built yet, or if a key requests what no family supports (quantized weights, pruned
// heads).
const FamilyConfig& family_config_of(const Value& config, const Where& where);

// Keys that every family reads from a config.json that has them, and that files often leave out.
std::span<const std::string_view> common_keys();

// The task of an architecture; nullopt: it is not one of the family's.
std::optional<Task> task_of(const FamilyConfig& family, std::string_view architecture);
// The task that the ending of a class's name says, whatever its family: "ForCausalLM". nullopt: none that is built, or
// the bare stack's "Model", which says nothing.
std::optional<Task> task_of_ending(std::string_view architecture);
// The architecture of a family for a task. UserError if the family has no head of that kind.
std::string architecture_of(const FamilyConfig& family, Task task);
// What its classes begin with: "Llama", "GPT2"; families that are the text part of a larger one say "Gemma3Text".
std::string class_stem(const FamilyConfig& family);
// By the first of config.json's architectures; without one, the task of the family's language head. For a configuration
// that family_config_of accepted.
Task task_of(const Value& config, const FamilyConfig& family);
std::string_view name_of(Task task);  // "sequence classification"

}  // namespace easydel::models
