#include "easydel/train/sampler.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "easydel/generation/generator.h"
#include "easydel/tensor/random.h"

namespace easydel::train {

uint64_t draw_seed(uint64_t seed, int64_t generation, uint64_t prompt, bool opponent) {
  const char* const stream = opponent ? "opponent" : "rollout";
  const auto bits = tensor::philox(tensor::key_of(seed, stream), uint64_t(generation), prompt);
  return uint64_t{bits[0]} << 32 | bits[1];
}

Sampler Sampler::without_adapters() const {
  Sampler out = *this;
  out.adapters_ = false;
  return out;
}

Sampler Sampler::mixed_with(const Sampler& other, double weight) const {
  Sampler out = *this;
  out.other_ = other.model_;
  out.blend_ = {other.model_.get(), weight, other.adapters_};
  return out;
}

std::vector<std::vector<int32_t>> Sampler::run(const std::vector<std::vector<int32_t>>& prompts,
                                               const generation::GenerationConfig& config) const {
  std::vector<SampleRequest> requests;
  for (const std::vector<int32_t>& prompt : prompts) requests.push_back({prompt, config.seed});
  std::vector<std::vector<int32_t>> out;
  for (Sample& sample : sample(requests, config)) out.push_back(std::move(sample.ids));
  return out;
}

std::vector<Sample> Sampler::sample(const std::vector<SampleRequest>& requests,
                                    const generation::GenerationConfig& config, int64_t batch) const {
  std::vector<generation::Request> all;
  for (const SampleRequest& request : requests) {
    generation::Request& one = all.emplace_back();
    one.prompt = request.prompt;
    one.config = config;
    one.config.seed = request.seed;
    if (request.max_new_tokens) one.config.max_new_tokens = *request.max_new_tokens;
    one.logps = config.num_beams == 1;
  }
  const int64_t group = std::max<int64_t>(config.num_return_sequences, 1);
  generation::GeneratorOptions options;
  options.batch = (batch + group - 1) / group * group;
  options.adapters = adapters_, options.blend = blend_;
  std::vector<Sample> out;
  for (generation::Result& result : generation::Generator(*model_, tokenizer_, options).run(all)) {
    Sample& sample = out.emplace_back();
    sample.ids = std::move(result.tokens);
    if (result.end) sample.ids.push_back(*result.end);
    sample.logps = std::move(result.logps), sample.kept_logps = std::move(result.kept_logps);
    sample.reason = result.reason;
  }
  return out;
}

int64_t Sampler::memory_bytes(int64_t sequences, int64_t length) const {
  constexpr int64_t page = nn::Cache::default_page_tokens;
  const auto& entries = model_->parameters().entries();
  const int64_t element = entries.empty() ? 4 : int64_t(c10::elementSize(entries.front().compute));
  int64_t bytes = 0;
  for (const nn::CacheLayer& layer : model_->cache_layers()) {
    bytes += (length + page - 1) / page * page * layer.kv_heads * (layer.k_dim + layer.v_dim) * element;
    for (const std::vector<int64_t>& state : layer.states)
      bytes += std::accumulate(state.begin(), state.end(), int64_t{4}, std::multiplies<>());
  }
  return sequences * bytes;
}

bool Sampler::same_bits() const {
  return model_->restart_length() == 0 && model_->turning_length() == 0 &&
         std::ranges::none_of(model_->cache_layers(),
                              [](const nn::CacheLayer& layer) { return layer.by_role || !layer.states.empty(); });
}

}  // namespace easydel::train
