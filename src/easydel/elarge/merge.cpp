#include "easydel/elarge/merge.h"

#include <array>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/elarge/model_config.h"

namespace easydel::elarge {
namespace {

struct NumberType {
  std::string_view name;
  std::array<std::string_view, 4> words;
};
// The short words have the meaning of JAX: fp8 and mxfp8 are e5m2, nvfp8 is e4m3.
constexpr std::array number_types{
    NumberType{"bfloat16", {"bf16"}},
    NumberType{"float16", {"fp16", "f16", "half"}},
    NumberType{"float32", {"fp32", "f32", "float"}},
    NumberType{"float64", {"fp64", "f64", "double"}},
    NumberType{"float8_e5m2", {"fp8", "float8", "mxfp8", "fp8_e5m2"}},
    NumberType{"float8_e4m3", {"fp8_e4m3", "nvfp8"}},
    NumberType{"float8_e4m3fn", {"fp8_e4m3fn"}},
    NumberType{"float8_e4m3fnuz", {"fp8_e4m3fnuz"}},
    NumberType{"float8_e4m3b11fnuz", {"fp8_e4m3b11fnuz"}},
    NumberType{"float8_e3m4", {"fp8_e3m4"}},
    NumberType{"float8_e8m0fnu", {"fp8_e8m0fnu"}},
    NumberType{"float4_e2m1fn", {"fp4", "float4", "mxfp4"}},
    NumberType{"int8", {}},
    NumberType{"int4", {}},
    NumberType{"int32", {}},
    NumberType{"uint8", {}},
    NumberType{"uint4", {}},
};

}  // namespace

Value deep_merge(Value base, const Value& over) {
  if (!base.is_map() || !over.is_map()) return over;
  for (const auto& [key, value] : over.entries) {
    Value* const there = base.find(key);
    base.set(key, there ? deep_merge(*there, value) : value);
  }
  return base;
}

Value without_nulls(const Value& value) {
  Value out = value;
  out.key_places.clear();
  std::erase_if(out.entries, [](const auto& entry) { return entry.second.is_null(); });
  for (auto& [key, child] : out.entries) child = without_nulls(child);
  for (Value& item : out.items) item = without_nulls(item);
  return out;
}

Value with_derived_sizes(Value trainer) {
  const auto value_of = [&](std::string_view key) {
    const Value* const value = trainer.find(key);
    return value ? *value : Value{};
  };
  if (value_of("eval_batch_size").is_null()) trainer.set("eval_batch_size", value_of("total_batch_size"));
  const auto length = value_of("max_length").as_int(), prompt = value_of("max_prompt_length").as_int();
  if (trainer.find("max_completion_length") && value_of("max_completion_length").is_null() && length && prompt)
    trainer.set("max_completion_length", Value::integer(*length - *prompt));
  return trainer;
}

std::string number_type(std::string_view word, const std::string& where) {
  const std::string wanted = canonical(word.starts_with("torch.") ? word.substr(6) : word);
  std::vector<std::string> known;
  for (const NumberType& type : number_types) {
    if (type.name == wanted) return std::string(type.name);
    known.emplace_back(type.name);
    for (const std::string_view other : type.words) {
      if (other.empty()) continue;
      if (other == wanted) return std::string(type.name);
      known.emplace_back(other);
    }
  }
  refuse(where, "'" + std::string(word) + "' is not a dtype", did_you_mean(word, known));
}

std::optional<std::string> precision_of(const Value& word, const std::string& where) {
  if (word.is_null()) return std::nullopt;
  if (const auto precision = config::value_of<Precision>(word.scalar)) return std::string(config::word_of(*precision));
  std::vector<std::string> known;
  for (const auto& choice : choices(Precision{})) {
    known.emplace_back(choice.name);
    for (const std::string_view alias : choice.aliases)
      if (!alias.empty()) known.emplace_back(alias);
  }
  refuse(where, "'" + word.scalar + "' is not a precision", did_you_mean(word.scalar, known));
}

std::optional<std::string> task_of(std::string_view word) {
  const auto task = config::value_of<TaskType>(word);
  if (!task || *task == TaskType::auto_bind) return std::nullopt;
  return std::string(config::word_of(*task));
}

}  // namespace easydel::elarge
