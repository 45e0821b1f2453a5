#include "easydel/probe/vector_tensors.h"

#include <ATen/ops/tensor.h>

#include "easydel/base/error.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

// The shape according to the first nested lists; add_numbers() checks the others against it.
std::vector<int64_t> shape_of(const Value& value) {
  std::vector<int64_t> shape;
  for (const Value* list = &value; list->is_list(); list = &list->items.front()) {
    shape.push_back(int64_t(list->items.size()));
    if (list->items.empty()) break;
  }
  return shape;
}

void add_numbers(const Value& value, size_t depth, const std::vector<int64_t>& shape, std::vector<double>& out) {
  if (!value.is_list()) {
    const auto number = value.as_double();
    if (!number || depth != shape.size()) refuse("vector", to_json(value) + " is not a number of a tensor");
    return out.push_back(*number);
  }
  const auto size = int64_t(value.items.size());
  if (depth >= shape.size() || shape[depth] != size) refuse("vector", "a tensor's lists are not of one length");
  for (const Value& item : value.items) add_numbers(item, depth + 1, shape, out);
}

Value number_of(double number, at::ScalarType type) {
  return at::isIntegralType(type, true) ? Value::integer(int64_t(number)) : Value::number(number);
}

}  // namespace

Tensor tensor_of(const Value& value, at::ScalarType type) {
  const std::vector<int64_t> shape = shape_of(value);
  std::vector<double> numbers;
  add_numbers(value, 0, shape, numbers);
  return at::tensor(numbers, at::TensorOptions().dtype(at::kDouble)).to(type).view(shape);
}

Tensor shaped_tensor_of(const Value& value, at::ScalarType type) {
  const Value *shape = value.find("shape"), *data = value.find("data");
  if (!shape || !data) refuse("vector", "a tensor has \"shape\" and \"data\"");
  return tensor_of(*data, type).view(integers_of(*shape));
}

Value nested_of(const Tensor& tensor) {
  const Tensor values = tensor.detach().to(at::kDouble);
  if (values.dim() == 0) return number_of(values.item<double>(), tensor.scalar_type());
  Value out = Value::list();
  for (int64_t i = 0; i < values.size(0); ++i) out.items.push_back(nested_of(tensor.detach()[i]));
  return out;
}

Value shaped_of(const Tensor& tensor) {
  Value out = Value::map();
  out.set("shape", list_of(tensor.sizes().vec()));
  Value& data = out.set("data", Value::list());
  const Tensor flat = tensor.detach().reshape({-1}).to(at::kDouble);
  for (int64_t i = 0; i < flat.numel(); ++i)
    data.items.push_back(number_of(flat[i].item<double>(), tensor.scalar_type()));
  return out;
}

double hashed(int64_t element, int64_t tensor) {
  uint32_t x = uint32_t(element + 1) * 2654435761u + uint32_t(tensor + 1) * 2246822519u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13, x *= 3266489917u, x ^= x >> 16;
  return double(x) / 4294967296.0 - 0.5;
}

}  // namespace easydel::probe
