#include "easydel/nn/randomness.h"

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/ops/dropout.h"

namespace easydel::nn {

Tensor Randomness::dropout(std::string_view name, const Tensor& x, double rate, const Tensor& tokens) const {
  if (!training || rate <= 0.0) return x;
  return ops::dropout(x, rate, key(name), first_token, tokens);
}

Tensor Randomness::jitter(std::string_view name, const Tensor& x, double amount) const {
  if (!training || amount <= 0.0) return x;
  return ops::jitter(x, amount, key(name), first_token);
}

Tensor Randomness::noised_embeddings(const Tensor& x, const std::vector<int64_t>& cu_seqlens) const {
  if (!training || embedding_noise <= 0.0) return x;
  Tensor noise = uniform("embedding_noise", x.size(0), x.size(1)).mul(2.0).sub_(1.0);
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    const auto elements = double((cu_seqlens[s + 1] - cu_seqlens[s]) * x.size(1));
    if (elements > 0) noise.slice(0, cu_seqlens[s], cu_seqlens[s + 1]).mul_(embedding_noise / std::sqrt(elements));
  }
  return x + noise.to(x.options().requires_grad(false));
}

Tensor Randomness::uniform(std::string_view name, int64_t tokens, int64_t channels) const {
  return ops::uniform(tokens, channels, key(name), first_token);
}

bool Randomness::leaves_out(std::string_view path, double rate) const {
  if (!training || rate <= 0.0) return false;
  return ops::uniform(1, 1, ops::dropout_key(seed, step, str(path, ".layer_dropout")), 0).item<float>() < rate;
}

uint64_t Randomness::key(std::string_view name) const {
  return ops::dropout_key(seed, step, path_ + "." + std::string(name));
}

}  // namespace easydel::nn
