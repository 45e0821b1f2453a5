#include "easydel/models/common_keys.h"

#include <algorithm>

#include "easydel/weights/dtype.h"

namespace easydel::models {
namespace {

// A tokenizer may name a token before it has an id: some files say -1.
bool is_token_id(const Value& value) { return value.is_null() || (value.as_int() && *value.as_int() >= -1); }

void check_ids(const Value& config, const char* key, const Where& where) {
  const Value* const value = config.find(key);
  if (!value) return;
  const bool fits = value->is_list() ? std::ranges::all_of(value->items, is_token_id) : is_token_id(*value);
  if (!fits)
    refuse(where.below(key), to_yaml_flow(*value) + " is not a token id, nor a list of token ids",
           "give a number such as 2, a list such as [2, 32000], or null");
}

void check_dtype(const Value& config, const char* key, const Where& where) {
  const Value* const value = config.find(key);
  if (!value || value->is_null()) return;
  const auto word = value->as_string();
  const auto type = weights::dtype_of_config(word.value_or(""));
  if (!word || (*word != "auto" && !(type && weights::is_floating(*type))))
    refuse(where.below(key), to_yaml_flow(*value) + " is not a dtype", "for example float32, bfloat16 or float16");
}

}  // namespace

void check_common_keys(const Value& config, const Where& where) {
  for (const char* key : {"torch_dtype", "dtype"}) check_dtype(config, key, where);
  for (const char* key : {"eos_token_id", "bos_token_id", "pad_token_id"}) check_ids(config, key, where);
}

}  // namespace easydel::models
