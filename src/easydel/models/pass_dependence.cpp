#include "easydel/models/pass_dependence.h"

#include <algorithm>

namespace easydel::models {

std::string pass_dependence(const Model& model) {
  const Value& config = model.config();
  const std::string type = model.model_type();
  if (type == "rwkv" || type == "xlstm") return "ATen computes the ends of its sweeps in another way than their middle";
  if (type == "minimax") return "blocks of lightning attention count from the first token of a pass";
  const Value* const alibi = config.find("alibi");
  if (alibi && alibi->as_bool().value_or(false))
    return "slopes in bf16 need the reference attention, whose products depend on the number of rows";
  const Value* const activation = config.find("hidden_act");
  if (model.compute_type() == at::kFloat && activation && activation->scalar == "mish")
    return "ATen computes the ends of its sweeps in another way than their middle";
  return {};
}

int64_t alike_length(const Model& model) {
  int64_t limit = 0;
  const auto limit_to = [&limit](int64_t length) {
    if (length > 0) limit = limit == 0 ? length : std::min(limit, length);
  };
  limit_to(model.turning_length());
  limit_to(model.restart_length());
  if (const Value* const chosen = model.config().find("index_topk")) limit_to(chosen->as_int().value_or(0));
  return limit;
}

}  // namespace easydel::models
