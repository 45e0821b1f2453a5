#include "easydel/tensor/mapped.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstring>

#include "easydel/tensor/dtype.h"

namespace easydel::tensor {

Tensor from_view(const weights::TensorView& view) {
  const auto options = at::TensorOptions().dtype(scalar_type(view.dtype));
  const size_t width = weights::size_of(view.dtype);
  if (view.bytes.empty()) return at::empty(view.shape, options);
  if (reinterpret_cast<uintptr_t>(view.bytes.data()) % width != 0) {
    Tensor copy = at::empty(view.shape, options);
    std::memcpy(copy.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
    return copy;
  }
  return at::from_blob(const_cast<std::byte*>(view.bytes.data()), view.shape, [owner = view.owner](void*) {}, options);
}

weights::OutTensor to_file(std::string name, const Tensor& value, at::ScalarType type) {
  weights::OutTensor out{std::move(name), dtype_of(type), value.sizes().vec(), {}};
  out.write = [value, type](const std::function<void(const void*, size_t)>& sink) {
    const Tensor bytes = value.detach().to(at::kCPU, type).contiguous();
    sink(bytes.const_data_ptr(), size_t(bytes.numel()) * bytes.element_size());
  };
  return out;
}

}  // namespace easydel::tensor
