#include "easydel/tensor/mapped.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstring>

#include "easydel/base/files.h"
#include "easydel/kernels/row_tasks.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/executor.h"

namespace easydel::tensor {
namespace {

Tensor decoded(const weights::TensorView& view) {
  const Tensor out = at::empty(view.shape, at::TensorOptions().dtype(at::kFloat));
  const weights::GgmlForm& form = weights::form_of(*view.blocks);
  float* const to = out.mutable_data_ptr<float>();
  kernels::run_row_ranges(executor(), out.numel() / form.elements, form.elements, [&](int64_t begin, int64_t end) {
    weights::decode(form.type, view.bytes.data() + size_t(begin) * form.bytes, to + begin * form.elements,
                    (end - begin) * form.elements);
  });
  files::Mapped::forget(view.bytes);
  return out;
}

}  // namespace

Tensor from_view(const weights::TensorView& view) {
  if (view.blocks) return decoded(view);
  const auto options = at::TensorOptions().dtype(scalar_type(view.dtype));
  const size_t width = weights::size_of(view.dtype);
  if (view.bytes.empty()) return at::empty(view.shape, options);
  if (reinterpret_cast<uintptr_t>(view.bytes.data()) % width != 0) {
    Tensor copy = at::empty(view.shape, options);
    std::memcpy(copy.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
    return copy;
  }
  return at::from_blob(
      const_cast<std::byte*>(view.bytes.data()), view.shape, [owner = view.owner](void*) {}, options);
}

void forget(const Tensor& value) {
  if (!value.device().is_cpu() || !value.is_contiguous()) return;
  const auto* const data = static_cast<const std::byte*>(value.const_data_ptr());
  files::Mapped::forget({data, size_t(value.numel()) * value.element_size()});
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
