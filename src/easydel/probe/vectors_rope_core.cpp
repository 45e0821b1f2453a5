// Recorded cases of rotary positions: rope. Tables were rounded to bfloat16 when they were recorded, and are rounded
// here, too.
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/basic_rope.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

Value recorded_tensor(const Tensor& tensor, std::vector<int64_t> shape) {
  const Tensor values = tensor.to(at::kFloat).contiguous();
  Value data = Value::list();
  for (int64_t i = 0; i < values.numel(); ++i) data.items.push_back(Value::number(values.const_data_ptr<float>()[i]));
  Value out = Value::map();
  out.set("shape", list_of(shape));
  out.set("data", std::move(data));
  return out;
}

Tensor rounded(const Tensor& table) { return table.to(at::kBFloat16).to(at::kFloat); }

// The inputs of the recordings: ((step * i mod modulus) - middle) / middle.
Tensor input(int64_t tokens, int64_t heads, int64_t dim, int64_t step, int64_t modulus, int64_t middle) {
  const Tensor i = at::arange(tokens * heads * dim, at::TensorOptions().dtype(at::kLong));
  return (((i * step).remainder(modulus) - middle).to(at::kFloat) / double(middle)).view({tokens, heads, dim});
}

// [[0, 1, 2]], or for mrope [[[0, 1]], [[0, 1]], [[0, 0]]], as [tokens] or [3, tokens].
Tensor positions_of(const Value& rows) {
  std::vector<int64_t> numbers;
  const bool nested = !rows.items.empty() && !rows.items[0].items.empty() && rows.items[0].items[0].is_list();
  size_t length = 0;
  for (const Value& row : rows.items) {
    if (nested && row.items.size() != 1) refuse("positions", to_json(rows) + " is not a single batch row");
    const auto one = integers_of(nested ? row.items[0] : row);
    if (&row != &rows.items[0] && one.size() != length)
      refuse("positions", "rows of " + std::to_string(length) + " and " + std::to_string(one.size()) + " positions");
    length = one.size();
    numbers.insert(numbers.end(), one.begin(), one.end());
  }
  if (numbers.empty() || (nested && rows.items.size() != 3) || (!nested && rows.items.size() != 1))
    refuse("positions", to_json(rows) + " has not the shape [1, tokens] or [3, 1, tokens]");
  const Tensor out = at::tensor(at::ArrayRef<int64_t>(numbers), at::TensorOptions().dtype(at::kLong));
  return nested ? out.view({3, -1}) : out;
}

Value apply(const VectorCase& vector, const models::RopeRequest& request) {
  const Value& config = needed(vector, "config");
  const Tensor positions = positions_of(needed(vector, "positions"));
  const models::BasicRope rope = models::get_basic_rope(config, request);
  std::optional<Tensor> table;
  if (needed(vector, "use_frequency_table").as_bool().value_or(false))
    table = rounded(models::get_basic_frequencies(config, request));
  const int64_t dim = needed(config.is_map() ? VectorCase{vector.id, config} : vector, "head_dim").as_int().value_or(0),
                tokens = positions.size(-1);
  Value out = Value::map();
  out.set("q", recorded_tensor(rope(input(tokens, 2, dim, 37, 101, 50), positions, table), {1, tokens, 2, dim}));
  out.set("k", recorded_tensor(rope(input(tokens, 1, dim, 53, 97, 48), positions, table), {1, tokens, 1, dim}));
  out.set("dtype", Value::text("float32"));
  return out;
}

Value answer_rope(const VectorCase& vector, const VectorFile&) {
  const Value& config = needed(vector, "config");
  const std::string& what = needed(vector, "op").scalar;
  models::RopeRequest request{.rotary_dim = needed(vector, "rotary_dim").as_int()};
  if (const Value* const neox = vector.body.find("is_neox_style"))
    request.is_neox_style = neox->as_bool().value_or(true);
  if (what == "apply") return apply(vector, request);
  if (what == "get_basic_inv_frequencies") {
    const Tensor inverse = models::get_basic_inv_frequencies(config, request);
    return recorded_tensor(inverse, inverse.sizes().vec());
  }
  if (what != "get_basic_frequencies") throw VectorNotBuilt("the operation '" + what + "'");
  const Tensor table = rounded(models::get_basic_frequencies(config, request));
  std::vector<int64_t> rows;
  for (const int64_t row : {0, 1, 2, 3, 7, 15, 16, 20, 31, 63, 100})  // the recorded rows
    if (row < table.size(-2)) rows.push_back(row);
  const Tensor some =
      table.index_select(-2, at::tensor(at::ArrayRef<int64_t>(rows), at::TensorOptions().dtype(at::kLong)));
  Value out = Value::map();
  out.set("table_shape", list_of(table.sizes().vec()));
  out.set("dtype", Value::text("bfloat16"));
  out.set("rows", list_of(rows));
  out.set("values", recorded_tensor(some, some.sizes().vec()));
  return out;
}

// In cases with a table, a difference in the last fp32 bit may become one of bfloat16.
std::optional<double> tolerance(const VectorCase& vector) {
  const Value* const table = vector.body.find("use_frequency_table");
  const bool rounded =
      table ? table->as_bool().value_or(false) : needed(vector, "op").scalar == "get_basic_frequencies";
  return rounded ? std::optional(std::ldexp(1.0, -8)) : std::nullopt;
}

}  // namespace

VectorKind rope_vectors() { return {.name = "rope", .answer = answer_rope, .tolerance = tolerance}; }

}  // namespace easydel::probe
