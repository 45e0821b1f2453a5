#include "easydel/nn/weight_forms.h"

#include "easydel/nn/gather.h"
#include "easydel/tensor/mapped.h"

namespace easydel::nn {

WeightForms::WeightForms(Parameter parameter, std::function<Tensor()> part)
    : parameter_(parameter), part_(std::move(part)) {}

void WeightForms::drop() {
  part_values_ = compute_ = Tensor();
  packed_.clear();
  used_ = false;
}

WeightForms::Values WeightForms::current(const Pass& pass) {
  const Entry& entry = parameter_.entry();
  const auto whole = [&] { return part_ ? part_() : parameter_.value(); };
  const auto computed = [&](const Tensor& values) { return values.detach().to(entry.compute).contiguous(); };
  // A weight that was gathered from other ranks is dropped after the call.
  if (is_gathered(entry)) {
    const Tensor master = whole();
    return {master, computed(master), false};
  }
  if (version_ != entry.version) {
    drop();
    version_ = entry.version;
  }
  // If a backward follows, the weight is about to change, or the backward reads it plain, and memory is needed for
  // activations: products pack panels as they go, and nothing is kept. This includes the first forward of a layer that
  // is recomputed.
  const bool has_backward = pass.activations().has_backward(), learns = entry.trainable && has_backward;
  if (has_backward) packed_.clear(), used_ = false;
  if (part_ && learns) {
    drop();
    const Tensor master = whole().contiguous();
    return {master, computed(master), false};
  }
  const c10::InferenceMode kept_for_training(false);  // it turns gradients on, too
  if (part_ && !part_values_.defined()) part_values_ = whole().detach().contiguous();
  const Tensor master = part_ ? part_values_ : parameter_.value();
  if (master.scalar_type() != entry.compute && !compute_.defined()) compute_ = computed(master);
  return {master, compute_.defined() ? compute_ : master, !has_backward};
}

ops::Matrix WeightForms::matrix(const Pass& pass) {
  const Values values = current(pass);
  ops::Matrix out{values.master, values.compute, nullptr};
  if (!values.packs) return out;
  if (!used_) {
    used_ = true;
    return out;
  }
  if (packed_.empty()) {
    packed_.push_back(ops::pack(out.compute));
    // The packed form replaces the file's own bytes.
    if (packed_[0] && parameter_.entry().version == 0) tensor::forget(values.master);
  }
  out.packed = packed_[0];
  return out;
}

ops::ExpertMatrices WeightForms::stack(const std::vector<int64_t>& begin, const Pass& pass) {
  const Values values = current(pass);
  ops::ExpertMatrices out{values.master, values.compute.detach(), {}};
  if (!values.packs) return out;
  packed_.resize(size_t(values.compute.size(0)));
  for (size_t e = 0; e + 1 < begin.size(); ++e)
    if (begin[e + 1] > begin[e] && !packed_[e]) packed_[e] = ops::pack(out.compute[int64_t(e)]);
  out.packed = packed_;
  return out;
}

void WeightForms::looked_up(int64_t rows) {
  constexpr int64_t most_rows = 64;  // each is 64 KiB of a file or more
  if (packed_.empty() || !packed_[0] || parameter_.entry().version != 0) return;
  rows_in_memory_ += rows;
  if (rows_in_memory_ < most_rows) return;
  rows_in_memory_ = 0;
  tensor::forget(parameter_.value());
}

Tensor WeightForms::copy() const { return version_ == parameter_.entry().version ? compute_ : Tensor(); }

void WeightForms::copied() {
  version_ = parameter_.entry().version;
  packed_.clear();
  used_ = false;
}

}  // namespace easydel::nn
