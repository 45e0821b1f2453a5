#include "easydel/train/sampler.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/generation/generator.h"
#include "easydel/tensor/random.h"
#include "easydel/train/joint_error.h"

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

Sampler Sampler::with_kept_tokens() const {
  Sampler out = *this;
  out.kept_ = true;
  return out;
}

Sampler Sampler::mixed_with(const Sampler& other, double weight) const {
  Sampler out = *this;
  out.other_ = other.model_;
  out.blend_ = {other.model_.get(), weight, other.adapters_};
  return out;
}

namespace {

// A rank's samples, on all ranks of a group. Of single turns: nothing was inserted. Collective.
std::vector<Sample> samples_of(int64_t rank, const std::vector<Sample>& own, const collective::Group& ranks) {
  const bool sends = ranks.rank() == rank;
  // Of each sample: its number of ids, of log-probabilities, why it ended, and for how many ids it names what was kept.
  std::vector<int64_t> facts;
  std::vector<int32_t> ids, kept;  // the second: numbers of tokens, each followed by the tokens
  std::vector<float> logps, kept_logps;
  for (const Sample& one : sends ? own : std::vector<Sample>()) {
    facts.insert(facts.end(), {std::ssize(one.ids), std::ssize(one.logps), int64_t(one.reason), std::ssize(one.kept)});
    for (const std::vector<int32_t>& tokens : one.kept) {
      kept.push_back(int32_t(tokens.size()));
      kept.insert(kept.end(), tokens.begin(), tokens.end());
    }
    ids.insert(ids.end(), one.ids.begin(), one.ids.end());
    logps.insert(logps.end(), one.logps.begin(), one.logps.end());
    kept_logps.insert(kept_logps.end(), one.kept_logps.begin(), one.kept_logps.end());
  }
  const auto share = [&]<class T>(std::vector<T>& list, int64_t count) {
    Tensor numbers = at::empty({count}, c10::CppTypeToScalarType<T>::value);
    T* const begin = numbers.mutable_data_ptr<T>();
    if (sends) std::ranges::copy(list, begin);
    if (count > 0) ranks.broadcast(numbers, rank);
    list.assign(begin, begin + count);
  };
  std::vector<int64_t> count{std::ssize(facts), std::ssize(kept)};
  share(count, 2);
  share(facts, count[0]);
  share(kept, count[1]);
  int64_t all_ids = 0, all_logps = 0;
  for (size_t i = 0; i < facts.size(); i += 4) all_ids += facts[i], all_logps += facts[i + 1];
  share(ids, all_ids);
  share(logps, all_logps);
  share(kept_logps, all_logps);
  std::vector<Sample> out(facts.size() / 4);
  size_t id = 0, logp = 0, left = 0;
  const auto take = [](const auto& list, size_t at, int64_t size) {
    const auto begin = list.begin() + static_cast<std::ptrdiff_t>(at);
    return std::vector(begin, begin + static_cast<std::ptrdiff_t>(size));
  };
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t length = facts[4 * i], scored = facts[4 * i + 1];
    out[i].ids = take(ids, id, length);
    out[i].logps = take(logps, logp, scored);
    out[i].kept_logps = take(kept_logps, logp, scored);
    out[i].reason = generation::StopReason(facts[4 * i + 2]);
    for (int64_t k = 0; k < facts[4 * i + 3]; ++k) {
      out[i].kept.push_back(take(kept, left + 1, kept[left]));
      left += 1 + size_t(kept[left]);
    }
    id += size_t(length), logp += size_t(scored);
  }
  return out;
}

}  // namespace

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
  const collective::Group ranks = model_->team().group(mesh::batch_axes());
  if (ranks.alone()) return own_samples(requests, config, batch);
  const auto first_of = [&](int64_t rank) { return size_t(std::ssize(requests) * rank / ranks.size()); };
  const size_t begin = first_of(ranks.rank()), end = first_of(ranks.rank() + 1);
  std::vector<Sample> own;
  together(ranks, [&] { own = own_samples(std::span(requests).subspan(begin, end - begin), config, batch); });
  std::vector<Sample> out;
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    std::ranges::move(samples_of(rank, own, ranks), std::back_inserter(out));
  return out;
}

std::vector<Sample> Sampler::own_samples(std::span<const SampleRequest> requests,
                                         const generation::GenerationConfig& config, int64_t batch) const {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<generation::Request> all;
  for (const SampleRequest& request : requests) {
    generation::Request& one = all.emplace_back();
    one.prompt = request.prompt;
    one.config = config;
    one.config.seed = request.seed;
    if (request.max_new_tokens) one.config.max_new_tokens = *request.max_new_tokens;
    one.logps = config.num_beams == 1, one.kept = kept_;
  }
  const int64_t group = std::max<int64_t>(config.num_return_sequences, 1);
  generation::GeneratorOptions options;
  options.batch = (batch + group - 1) / group * group;
  options.adapters = adapters_, options.blend = blend_;
  if (const collective::Group shards = model_->team().group({"fsdp"}); !shards.alone())
    options.exchange = [shards](generation::RankState state) {
      const Tensor all = at::full({1}, int64_t(state), at::kLong);
      shards.all_reduce(all, collective::Reduce::max);
      return generation::RankState(all.item<int64_t>());
    };
  std::vector<Sample> out;
  size_t tokens = 0;
  for (generation::Result& result : generation::Generator(*model_, tokenizer_, options).run(all)) {
    Sample& sample = out.emplace_back();
    sample.ids = std::move(result.tokens);
    if (result.end) sample.ids.push_back(*result.end);
    sample.logps = std::move(result.logps), sample.kept_logps = std::move(result.kept_logps);
    sample.kept = std::move(result.kept);
    sample.reason = result.reason;
    tokens += sample.ids.size();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  log::debug("sampled ", out.size(), " completions of ", tokens, " tokens in ", seconds.count(), " s");
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
