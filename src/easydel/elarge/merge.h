// Arithmetic of configuration documents: laying one over another, dropping nulls, and what words of the documents
// mean (number types, precisions, tasks), whatever section they stand in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/document.h"

namespace easydel::elarge {

// `over` laid on `base`: maps are joined key by key, everything else, null too, replaces what is there.
Value deep_merge(Value base, const Value& over);

// Without keys whose value is null, at any depth; a null that is an item of a list stays.
Value without_nulls(const Value& value);

// "bf16", "torch.bfloat16", "BF16" -> "bfloat16"; also the eight- and four-bit formats. UserError for an unknown word.
std::string number_type(std::string_view word, const std::string& where);

// "default", "high" or "highest"; nullopt for a null. UserError for an unknown word.
std::optional<std::string> precision_of(const Value& word, const std::string& where);

// The registry's name of a task ("causal-lm" -> "causal-language-model"); nullopt: none such, or one that the model's
// config.json decides (auto, auto-bind).
std::optional<std::string> task_of(std::string_view word);

}  // namespace easydel::elarge
