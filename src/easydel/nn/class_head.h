// Heads that score the classes of a sequence or of each token, and the pooling that text embeddings use too.
#pragma once

#include <optional>

#include "easydel/nn/head_plan.h"
#include "easydel/nn/layers.h"

namespace easydel::nn {

// hidden [tokens, size] of the pass's stream -> [sequences, size], with gradients. Masked tokens do not count in a
// mean, and are never taken as the last one. If `padding` is given, tokens with this id are not taken as the last one
// instead (ids `tokens`, int64 [tokens]). If no other is left, the first token is taken.
Tensor pool(const Tensor& hidden, Pooling pooling, const Tensor& tokens, const Pass& pass,
            std::optional<int64_t> padding = {});

class ClassHead {
 public:
  // `size`: of the hidden states. Its parameters are marked as the head's.
  ClassHead(const Scope& root, int64_t size, ClassHeadSpec spec);

  // hidden [tokens, size] of a pass over `tokens` -> fp32 [sequences, labels], or [tokens, labels] without pooling; of
  // width `size` where there is no output layer. With gradients where they are on.
  Tensor scores(const Tensor& hidden, const Tensor& tokens, Pass& pass) const;
  const ClassHeadSpec& spec() const { return spec_; }

 private:
  Tensor dropped(std::string_view name, const Tensor& x, const Tensor& tokens, Pass& pass) const;

  ClassHeadSpec spec_;
  std::optional<Linear> dense_, output_;
  std::optional<Norm> norm_;
};

}  // namespace easydel::nn
