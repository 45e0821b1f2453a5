// Recorded cases of adapters on a small llama: lora_targets. Answers which layers are adapted; the computation of
// adapters is not built yet.
#include "easydel/base/error.h"
#include "easydel/models/lora_targets.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

Value targets(const VectorCase& vector, const VectorFile&) {
  const Value &pattern = needed(vector, "pattern"), &rank = needed(vector, "rank");
  const Value config =
      parse_json(R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64, "tie_word_embeddings": false})");
  const auto found = models::lora_targets(*models::plan_parameters(config, vector.id),
                                          pattern.is_null() ? ".*" : pattern.scalar, rank.as_int().value_or(0));
  const Value* const expected = needed(vector, "expect").find("ok");
  if (expected && expected->find("split_keys")) throw VectorNotBuilt("what an adapter computes");
  Value out = Value::map();
  out.set("targets", list_of(found));
  out.set("enabled_before", Value::boolean(false));
  out.set("enabled", Value::boolean(!found.empty()));
  return out;
}

}  // namespace

VectorKind lora_targets_vectors() { return {.name = "lora_targets", .answer = targets}; }

}  // namespace easydel::probe
