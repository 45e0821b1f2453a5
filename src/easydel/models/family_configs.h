// The families as config.json names them, known without torch: what can be said of a folder before anything is loaded.
// How a family is built is families.cpp's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::models {

// What stands behind the stack.
enum class Task : uint8_t {
  causal_lm,
  masked_lm,
  base,
  sequence_classification,
  token_classification,
  question_answering
};

// How transformers' classes of a family call what most families call otherwise.
struct HeadNames {
  std::string_view token_classes = "score";  // the output of token classification
  std::string_view question_stack = {};      // the stack of question answering; empty: as in the other classes
};

struct FamilyConfig {
  std::string_view model_type;
  std::vector<std::string_view> architectures;  // with a language head; the other classes' names follow from the first
  bool reads_mxfp4 = false;                     // quantization_config may say mxfp4
  HeadNames names = {};
};

std::span<const FamilyConfig> family_configs();
// One more; see register_family_config, which also makes its classes known. UserError where the model_type is taken.
void add_family_config(const FamilyConfig& config);

// The family of a config.json that errors call `where`. UserError "where: key: what" where model_type or an
// architecture is unknown or not built yet, or where a key asks for what no family here has (quantized weights, pruned
// heads).
const FamilyConfig& family_config_of(const Value& config, const Where& where);

// What an architecture is for; nullopt: it is none of the family's.
std::optional<Task> task_of(const FamilyConfig& family, std::string_view architecture);
// The architecture of a family for a task. UserError where the family has no head of that kind.
std::string architecture_of(const FamilyConfig& family, Task task);
// What its classes begin with: "Llama", "GPT2"; families that are the text part of a larger one say "Gemma3Text".
std::string class_stem(const FamilyConfig& family);
// By the first of config.json's architectures; the family's language head where it names none. For a configuration that
// family_config_of took.
Task task_of(const Value& config, const FamilyConfig& family);
std::string_view name_of(Task task);  // "sequence classification"

}  // namespace easydel::models
