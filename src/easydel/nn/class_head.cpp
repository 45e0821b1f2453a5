#include "easydel/nn/class_head.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <tuple>
#include <vector>

namespace easydel::nn {
namespace {

// The row of each sequence whose hidden state stands for the sequence.
std::vector<int64_t> pooled_rows(Pooling pooling, const Tensor& tokens, const Stream& on,
                                 std::optional<int64_t> padding) {
  const Tensor ids = tokens.to(at::kCPU).contiguous();
  const int64_t* const id = ids.const_data_ptr<int64_t>();
  const Tensor masked = on.masked.defined() ? on.masked.to(at::kCPU).contiguous() : Tensor();
  const auto is_skipped = [&](int64_t row) {
    return padding ? id[row] == *padding : masked.defined() && masked.const_data_ptr<bool>()[row];
  };
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < on.sequences(); ++s) {
    const int64_t begin = on.cu_seqlens[size_t(s)], end = on.cu_seqlens[size_t(s) + 1];
    int64_t row = pooling == Pooling::last ? end - 1 : begin;
    while (pooling == Pooling::last && row > begin && is_skipped(row)) --row;
    rows.push_back(row);
  }
  return rows;
}

Tensor means(const Tensor& hidden, const Stream& on) {
  std::vector<Tensor> out;
  for (int64_t s = 0; s < on.sequences(); ++s) {
    const int64_t begin = on.cu_seqlens[size_t(s)], end = on.cu_seqlens[size_t(s) + 1];
    const Tensor rows = hidden.slice(0, begin, end);
    if (!on.masked.defined()) {
      out.push_back(rows.mean(0));
      continue;
    }
    const Tensor counted =
        on.masked.slice(0, begin, end).logical_not().to(hidden.device()).to(hidden.scalar_type()).unsqueeze(1);
    out.push_back((rows * counted).sum(0) / counted.sum());
  }
  return at::stack(out);
}

// Each row's weight is its place in the sequence, from 1; masked tokens have none. fp32.
Tensor weighted_means(const Tensor& hidden, const Stream& on) {
  std::vector<Tensor> out;
  for (int64_t s = 0; s < on.sequences(); ++s) {
    const int64_t begin = on.cu_seqlens[size_t(s)], end = on.cu_seqlens[size_t(s) + 1];
    Tensor weights = at::arange(1, end - begin + 1, hidden.options().dtype(at::kFloat));
    if (on.masked.defined()) weights.masked_fill_(on.masked.slice(0, begin, end).to(hidden.device()), 0);
    const Tensor rows = hidden.slice(0, begin, end).to(at::kFloat) * weights.unsqueeze(1);
    out.push_back(rows.sum(0) / weights.sum().clamp_min(1e-9));
  }
  return at::stack(out);
}

Tensor maxima(const Tensor& hidden, const Stream& on) {
  std::vector<Tensor> out;
  for (int64_t s = 0; s < on.sequences(); ++s) {
    const int64_t begin = on.cu_seqlens[size_t(s)], end = on.cu_seqlens[size_t(s) + 1];
    Tensor rows = hidden.slice(0, begin, end);
    if (on.masked.defined())
      rows = rows.masked_fill(on.masked.slice(0, begin, end).to(hidden.device()).unsqueeze(1), -1e9);
    out.push_back(std::get<0>(rows.max(0)));
  }
  return at::stack(out);
}

}  // namespace

Tensor pool(const Tensor& hidden, Pooling pooling, const Tensor& tokens, const Pass& pass,
            std::optional<int64_t> padding) {
  if (pooling == Pooling::none) return hidden;
  if (pooling == Pooling::mean) return means(hidden, pass.stream());
  if (pooling == Pooling::weighted_mean) return weighted_means(hidden, pass.stream());
  if (pooling == Pooling::max) return maxima(hidden, pass.stream());
  const Tensor rows = at::tensor(pooled_rows(pooling, tokens, pass.stream(), padding), at::kLong);
  return hidden.index_select(0, rows.to(hidden.device()));
}

ClassHead::ClassHead(const Scope& root, int64_t size, ClassHeadSpec spec) : spec_(std::move(spec)) {
  const Scope scope = root.head();
  if (!spec_.dense.empty())
    dense_.emplace(scope / spec_.dense, size, size,
                   LinearOptions{.bias = spec_.dense_bias, .deviation = spec_.dense_deviation});
  if (!spec_.norm.empty())
    norm_.emplace(scope / spec_.norm, size,
                  Norm::Options{.kind = NormKind::layer, .epsilon = spec_.norm_epsilon, .bias = spec_.norm_bias});
  if (!spec_.output.empty())
    output_.emplace(scope / spec_.output, size, spec_.labels,
                    LinearOptions{.bias = spec_.output_bias, .deviation = spec_.output_deviation});
}

// The dropout mask of a pooled row is that of the token it was taken from, so it does not depend on what else is in the
// pass.
Tensor ClassHead::dropped(std::string_view name, const Tensor& x, const Tensor& tokens, Pass& pass) const {
  if (!pass.random().training || spec_.dropout <= 0.0) return x;
  if (spec_.pooling == Pooling::none) return pass.random().dropout(name, x, spec_.dropout);
  const Tensor mask = pass.random().dropout(name, at::ones({tokens.size(0), x.size(1)}, x.options()), spec_.dropout);
  const Pooling by = spec_.pooling == Pooling::mean ? Pooling::first : spec_.pooling;
  return x * pool(mask, by, tokens, pass, spec_.padding);
}

Tensor ClassHead::scores(const Tensor& hidden, const Tensor& tokens, Pass& pass) const {
  Tensor x = pool(hidden, spec_.pooling, tokens, pass, spec_.padding);
  std::optional<RowScope> pooled;
  if (spec_.pooling != Pooling::none) pooled.emplace(pass.stream(), RowScope::Rows::sequences);
  if (spec_.dropout_before_dense) x = dropped("head_input_dropout", x, tokens, pass);
  if (dense_) x = ops::activate((*dense_)(x, pass, "head_dense"), spec_.activation);
  if (norm_) x = (*norm_)(x);
  x = dropped("head_dropout", x, tokens, pass);
  if (output_) x = (*output_)(x, pass, "head_output");
  return x.to(at::kFloat);
}

}  // namespace easydel::nn
