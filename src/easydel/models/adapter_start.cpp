#include "easydel/models/adapter_start.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "easydel/quant/format_config.h"
#include "easydel/quant/quantize.h"
#include "easydel/tensor/random.h"

namespace easydel::models {
namespace {

using Decomposition = std::tuple<Tensor, Tensor, Tensor>;  // U [out, n], S [n], Vh [n, in]

Tensor orthogonal(const Tensor& columns) { return std::get<0>(at::linalg_qr(columns)); }

// By subspace iteration from a random basis (arXiv:0909.4061, algorithm 5.1), as torch.svd_lowrank computes it.
Decomposition first_singular_values(const Tensor& weight, int64_t count, int64_t iterations, const std::string& name) {
  const bool wide = weight.size(0) < weight.size(1);
  const Tensor tall = wide ? weight.t() : weight;
  const Tensor random = at::empty({tall.size(1), count}, weight.options());
  tensor::fill_normal(random, tensor::key_of(0, name), 1.0, random.sizes(), std::vector<int64_t>{0, 0});
  Tensor basis = orthogonal(at::matmul(tall, random));
  for (int64_t i = 0; i < iterations; ++i)
    basis = orthogonal(at::matmul(tall, orthogonal(at::matmul(tall.t(), basis))));
  const auto [u, s, vh] = at::linalg_svd(at::matmul(basis.t(), tall), /*full_matrices=*/false);
  const Tensor left = at::matmul(basis, u);
  return wide ? Decomposition{vh.t(), s, left.t()} : Decomposition{left, s, vh};
}

// Factors B sqrt(S) and sqrt(S) A of the first `count` singular values, which are divided by `divisor`.
std::pair<Tensor, Tensor> halves(const Decomposition& of, int64_t count, double divisor) {
  const auto& [u, s, vh] = of;
  const Tensor root = (s.narrow(0, 0, count) / divisor).sqrt();
  return {u.narrow(1, 0, count) * root, root.unsqueeze(1) * vh.narrow(0, 0, count)};
}

// bitsandbytes' codes of the values, decoded: nf4 in blocks of 64, or int8 of a row's fp16 values.
Tensor rounded(const Tensor& values, int64_t bits) {
  if (bits == 4) return quant::rounded(values, quant::format_of({.method = "nf4"}, "lora.loftq_config"));
  const Tensor half = values.to(at::kHalf).to(at::kFloat), most = half.abs().amax(1, /*keepdim=*/true);
  const Tensor codes = (half * most.reciprocal().mul(127)).round().masked_fill(most == 0, 0);
  return codes * most * (1.0 / 127.0);
}

LowRankStart loftq_start(const LoftqConfig& config, const Tensor& weight, int64_t count) {
  LowRankStart out;
  Tensor rest = weight;
  for (int64_t i = 0; i < config.loftq_iter; ++i) {
    out.base = rounded(rest.contiguous(), config.loftq_bits);
    std::tie(out.b, out.a) = halves(at::linalg_svd(weight - out.base, /*full_matrices=*/false), count, 1);
    rest = weight - at::matmul(out.b, out.a);
  }
  return out;
}

}  // namespace

LowRankStart low_rank_start(const LoraConfig& config, const std::string& module, const Tensor& weight) {
  const at::NoGradGuard no_gradient;
  const Tensor values = weight.detach().to(at::kFloat).contiguous();
  const int64_t rank = config.rank_of(module), count = std::min({rank, values.size(0), values.size(1)});
  const double scale = config.scale_of(module);
  const LoraStart& start = config.init_lora_weights;
  LowRankStart out;
  if (start.kind == LoraInit::loftq) {
    out = loftq_start(config.loftq_config.value_or(LoftqConfig{}), values, count);
  } else {
    if (start.kind == LoraInit::olora) {
      const auto [q, r] = at::linalg_qr(values);
      out.b = q.narrow(1, 0, count), out.a = r.narrow(0, 0, count);
    } else {
      const Decomposition found = start.iterations > 0
                                      ? first_singular_values(values, count, start.iterations, "pissa/" + module)
                                      : at::linalg_svd(values, /*full_matrices=*/false);
      std::tie(out.b, out.a) = halves(found, count, scale);
    }
    out.base = values - at::matmul(out.b, out.a) * scale;
  }
  if (rank > count) {
    out.a = at::constant_pad_nd(out.a, {0, 0, 0, rank - count});
    out.b = at::constant_pad_nd(out.b, {0, rank - count});
  }
  out.a = out.a.contiguous(), out.b = out.b.contiguous();
  return out;
}

}  // namespace easydel::models
