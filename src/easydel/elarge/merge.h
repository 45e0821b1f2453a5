// Operations on configuration documents: merging, dropping nulls, and the meaning of words (dtypes, precisions, tasks)
// that several sections use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/document.h"

namespace easydel::elarge {

// Merges `over` into `base`: maps are merged key by key; any other value, also null, replaces the one of `base`.
Value deep_merge(Value base, const Value& over);

// Removes keys whose value is null, at any depth; nulls in lists stay.
Value without_nulls(const Value& value);

// A trainer's section, with the sizes that follow from others where they are null: evaluation takes batches as large as
// training does, a completion has what its prompt leaves of max_length.
Value with_derived_sizes(Value trainer);

// "bf16", "torch.bfloat16", "BF16" -> "bfloat16"; also the eight- and four-bit formats. UserError for an unknown word.
std::string number_type(std::string_view word, const std::string& where);

// "default", "high" or "highest"; nullopt for a null. UserError for an unknown word.
std::optional<std::string> precision_of(const Value& word, const std::string& where);

// The registry's name of a task ("causal-lm" -> "causal-language-model"); nullopt: unknown, or decided by the model's
// config.json (auto, auto-bind).
std::optional<std::string> task_of(std::string_view word);

}  // namespace easydel::elarge
