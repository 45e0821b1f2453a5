// The watermark of arXiv:2306.04634: the previous tokens decide which tokens are green, by torch's generator and
// permutations, so that transformers' detector finds the marks.
#include <algorithm>

#include "easydel/generation/processors.h"
#include "easydel/tensor/permutation.h"

namespace easydel::generation {
namespace {

using tensor::torch_permutation;

class Watermark final : public Processor {
 public:
  Watermark(const WatermarkingConfig& config, int64_t vocabulary)
      : config_(config), vocabulary_(vocabulary), green_(int64_t(double(vocabulary) * config.greenlist_ratio)) {
    if (config.seeding_scheme == SeedingScheme::selfhash)
      table_ = torch_permutation(table_size, uint64_t(config.hashing_key));
  }

  void apply(const History& history, std::span<float> scores) const override {
    const auto width = size_t(config_.context_width);
    if (history.tokens.size() < width) return;
    const auto bias = float(config_.bias);
    if (config_.seeding_scheme == SeedingScheme::lefthash) {
      const Tensor drawn =
          torch_permutation(vocabulary_, seed(uint64_t(config_.hashing_key) * uint64_t(history.tokens.back())));
      for (const int64_t id : green(drawn)) scores[size_t(id)] += bias;
      return;
    }
    // With self-hashing, each of the likeliest tokens is tested for being green if it came next.
    constexpr size_t max_tokens = 40;
    std::vector<uint32_t> order(scores.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = uint32_t(i);
    const auto asked = order.begin() + static_cast<std::ptrdiff_t>(std::min(max_tokens, order.size()));
    std::partial_sort(order.begin(), asked, order.end(),
                      [&](uint32_t a, uint32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
    std::vector<TokenId> tokens(history.tokens.end() - static_cast<std::ptrdiff_t>(width - 1), history.tokens.end());
    tokens.push_back(0);
    for (auto id = order.begin(); id != asked; ++id) {
      tokens.back() = static_cast<TokenId>(*id);
      const Tensor drawn = torch_permutation(vocabulary_, self_seed(tokens));
      if (std::ranges::find(green(drawn), int64_t(*id)) != green(drawn).end()) scores[*id] += bias;
    }
  }

 private:
  static constexpr int64_t table_size = 1000003;
  // A hash that may have wrapped around: Python's remainder by 2^64 - 1.
  static uint64_t seed(uint64_t hash) { return int64_t(hash) < 0 ? hash - 1 : hash; }

  std::span<const int64_t> green(const Tensor& drawn) const {
    return {drawn.const_data_ptr<int64_t>(), size_t(green_)};
  }
  uint64_t self_seed(std::span<const TokenId> tokens) const {
    const int64_t* const table = table_.const_data_ptr<int64_t>();
    const auto hash = [&](TokenId id) { return uint64_t(table[id % table_size] + 1); };
    auto least = std::numeric_limits<int64_t>::max();
    for (const TokenId id : tokens)
      least = std::min(least, int64_t(uint64_t(config_.hashing_key) * hash(id) * hash(tokens.back())));
    return seed(uint64_t(least));
  }

  WatermarkingConfig config_;
  int64_t vocabulary_, green_;
  Tensor table_;
};

}  // namespace

std::unique_ptr<const Processor> make_watermark(const WatermarkingConfig& config, int64_t vocabulary) {
  return std::make_unique<const Watermark>(config, vocabulary);
}

}  // namespace easydel::generation
