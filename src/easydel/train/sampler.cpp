#include "easydel/train/sampler.h"

#include "easydel/generation/generator.h"

namespace easydel::train {

std::vector<std::vector<int32_t>> Sampler::run(const std::vector<std::vector<int32_t>>& prompts,
                                               const generation::GenerationConfig& config) const {
  std::vector<generation::Request> requests;
  for (const std::vector<int32_t>& prompt : prompts) requests.push_back({prompt, config});
  std::vector<std::vector<int32_t>> out;
  for (generation::Result& result : generation::Generator(*model_, tokenizer_).run(requests)) {
    out.push_back(std::move(result.tokens));
    if (result.end) out.back().push_back(*result.end);
  }
  return out;
}

}  // namespace easydel::train
