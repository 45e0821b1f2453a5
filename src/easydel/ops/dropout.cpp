#include "easydel/ops/dropout.h"

#include <ATen/ops/empty.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/kernels/row_tasks.h"
#include "easydel/tensor/executor.h"
#include "easydel/tensor/random.h"

namespace easydel::ops {
namespace {

// value(u), with u uniform in [0, 1), for each channel of each token: fp32 [tokens, channels]. first_channel is a
// multiple of 4. `places`: of the tokens, from first_token on; null: they are neighbors.
template <class Value>
Tensor drawn(int64_t tokens, int64_t channels, uint64_t key, int64_t first_token, int64_t first_channel, Value&& value,
             const int64_t* places = nullptr) {
  Tensor out = at::empty({tokens, channels}, at::TensorOptions().dtype(at::kFloat));
  float* data = out.mutable_data_ptr<float>();
  const tensor::Key philox_key{uint32_t(key), uint32_t(key >> 32)};
  kernels::run_rows(tensor::executor(), tokens, channels, [&](int64_t t) {
    const auto token = uint64_t(first_token + (places ? places[t] : t));
    for (int64_t c = 0; c < channels; c += 4) {
      const auto bits = tensor::philox(philox_key, uint64_t((first_channel + c) / 4), token);
      for (int64_t i = c; i < std::min(c + 4, channels); ++i)
        data[t * channels + i] = value(tensor::uniform(bits[i - c]));
    }
  });
  return out;
}

// 0 or 1 / (1 - rate).
Tensor mask(int64_t tokens, int64_t channels, double rate, uint64_t key, int64_t first_token, int64_t first_channel = 0,
            const int64_t* places = nullptr) {
  const float kept = float(1.0 / (1.0 - rate)), limit = float(rate);
  return drawn(
      tokens, channels, key, first_token, first_channel, [&](float u) { return u < limit ? 0.0f : kept; }, places);
}

}  // namespace

uint64_t dropout_key(uint64_t seed, uint64_t step, std::string_view path) {
  const tensor::Key key = tensor::key_of(seed, path);
  const auto mixed = tensor::philox(key, step, 0x64726f70);
  return uint64_t(mixed[0]) | uint64_t(mixed[1]) << 32;
}

Tensor dropout(const Tensor& x, double rate, uint64_t key, int64_t first_token, const Tensor& tokens) {
  if (rate <= 0.0 || x.numel() == 0) return x;
  const Tensor places = tokens.defined() ? tokens.contiguous() : tokens;
  check(!places.defined() || places.numel() == x.size(0), "dropout: ", x.size(0), " rows of other tokens");
  const Tensor kept = mask(x.size(0), x.numel() / x.size(0), rate, key, first_token, 0,
                           places.defined() ? places.const_data_ptr<int64_t>() : nullptr);
  return x * kept.view(x.sizes()).to(x.device(), x.scalar_type());
}

Tensor uniform(int64_t tokens, int64_t channels, uint64_t key, int64_t first_token) {
  return drawn(tokens, channels, key, first_token, 0, [](float u) { return u; });
}

Tensor jitter(const Tensor& x, double amount, uint64_t key, int64_t first_token) {
  if (amount <= 0.0 || x.numel() == 0) return x;
  const float from = float(1.0 - amount), width = float(2.0 * amount);
  const Tensor factors =
      drawn(x.size(0), x.numel() / x.size(0), key, first_token, 0, [&](float u) { return from + width * u; });
  return x * factors.view(x.sizes()).to(x.device(), x.scalar_type());
}

Tensor dropout_rows(const Tensor& weights, double rate, uint64_t key, int64_t first_token, int64_t first_key) {
  if (rate <= 0.0 || weights.numel() == 0) return weights;
  const int64_t heads = weights.size(0), rows = weights.size(1), keys = weights.size(2);
  // A head's channels are counted from 0 per key, so a row's mask does not depend on the number of keys of other rows.
  std::vector<Tensor> parts;
  for (int64_t h = 0; h < heads; ++h)
    parts.push_back(mask(rows, keys, rate, key ^ (uint64_t(h) << 40), first_token, first_key));
  Tensor kept = at::empty({heads, rows, keys}, parts[0].options());
  for (int64_t h = 0; h < heads; ++h) kept.select(0, h).copy_(parts[h]);
  return weights * kept.to(weights.device());
}

}  // namespace easydel::ops
