#include "easydel/ops/logit_chunks.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "easydel/kernels/fused.h"
#include "easydel/tensor/executor.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

// In place. The bits of an element do not depend on its place, as those of ATen's tanh do: it computes the ends of its
// loops differently.
void take_tanh(const Tensor& logits) {
  if (!tensor::kernels_serve(logits)) {
    logits.tanh_();
    return;
  }
  // Rows of this many elements, so that threads share also the logits of one token.
  constexpr int64_t row = 1 << 14;
  const Tensor all = logits.view({-1});
  const int64_t rows = all.numel() / row, rest = all.numel() % row;
  const auto run = [](const Tensor& part) {
    if (part.numel() > 0)
      kernels::activate(tensor::executor(), kernels::Activation::tanh, tensor::input_of(part), {}, part.size(0),
                        part.size(1), tensor::output_of(part));
  };
  run(all.narrow(0, 0, rows * row).view({rows, row}));
  run(all.narrow(0, rows * row, rest).view({1, rest}));
}

}  // namespace

int64_t chunk_rows(int64_t rows, int64_t vocabulary, int64_t wanted) {
  if (wanted > 0) return wanted;
  const int64_t most = std::clamp<int64_t>((16 << 20) / vocabulary, 16, 4096);
  const int64_t chunks = std::max<int64_t>((rows + most - 1) / most, 1), even = (rows + chunks - 1) / chunks;
  return std::max<int64_t>((even + 15) / 16 * 16, 16);
}

// Packing the whole weight costs as much as packing its panels in a dozen products (measured at 49,152 x 576 to 262,144
// x 640), and takes memory in addition to all that a training step keeps.
bool pays_to_pack_for(int64_t rows, int64_t chunk) { return rows > 12 * chunk; }

std::vector<Factors> rows_of(const std::vector<Factors>& all, int64_t begin, int64_t end) {
  std::vector<Factors> out;
  for (const Factors& one : all) out.push_back({one.x.slice(0, begin, end), one.weight});
  return out;
}

std::vector<Tensor> inputs_of(const std::vector<Factors>& added) {
  std::vector<Tensor> out;
  for (const Factors& one : added) out.insert(out.end(), {one.x, one.weight.master});
  return out;
}

Matrix in_graph(const Matrix& weight, const Tensor& hidden) {
  Matrix out = weight;
  if (weight.in_codes()) out.master = out.compute = at::empty({0, 0}, hidden.options());
  return out;
}

Tensor head_product(const Tensor& hidden, const Matrix& weight, const Tensor& bias, const std::vector<Factors>& added) {
  const Tensor logits = multiply(hidden, weight, bias, at::kFloat);
  // Subtracting +0 changes no number; adding it would turn -0 into +0.
  for (const Factors& one : added) logits.sub_(multiply(one.x.neg(), one.weight, {}, at::kFloat));
  return logits;
}

Tensor chunk_logits(const Tensor& hidden, const Matrix& weight, const Tensor& bias, const std::vector<Factors>& added,
                    const LogitShape& shape, Tensor* bent) {
  Tensor logits = head_product(hidden, weight, bias, added);
  if (shape.multiplier != 1.0) logits.mul_(shape.multiplier);
  if (shape.softcap > 0) {
    take_tanh(logits.div_(shape.softcap));
    if (bent) *bent = logits.clone();
    logits.mul_(shape.softcap);
  }
  if (shape.temperature != 1.0) logits.div_(shape.temperature);
  return logits;
}

AddedGradient::AddedGradient(const Factors& factors, bool wants_x, bool wants_weight) : of(factors) {
  if (wants_x) x = at::empty(of.x.sizes(), of.x.options());
  if (wants_weight) weight = at::zeros(of.weight.compute.sizes(), of.x.options().dtype(at::kFloat));
}

void AddedGradient::add(const Tensor& gradient, int64_t begin, int64_t end) {
  const Tensor rows = gradient.contiguous();
  if (x.defined()) x.slice(0, begin, end).copy_(multiply_back(rows, of.weight.compute, x.scalar_type()));
  if (weight.defined()) add_weight_gradient(weight, rows, of.x.slice(0, begin, end));
}

Tensor AddedGradient::answer() const { return weight.defined() ? weight.to(of.weight.master.scalar_type()) : weight; }

}  // namespace easydel::ops
