// What a forward draws at random while a model trains. Every number is a function of seed, step, the running layer's
// path, the name of the draw, the token's global index and the channel, so it does not depend on how a step is cut into
// micro-batches or on what is computed again. A part of nn::Pass.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::nn {

class Randomness {
 public:
  bool training = false;  // dropouts, jitter and left-out layers are on
  uint64_t seed = 0, step = 0;
  int64_t first_token = 0;     // global index of this pass's first token in the step
  double embedding_noise = 0;  // alpha of arXiv:2310.05914 (NEFTune); 0: none

  // x with a share of its elements dropped while training; `name` tells a layer's draws apart. `tokens`: of each row
  // the token of the pass, int64 on the CPU; undefined: the rows are the pass's tokens.
  Tensor dropout(std::string_view name, const Tensor& x, double rate, const Tensor& tokens = {}) const;
  // x times random numbers in [1 - amount, 1 + amount] while training.
  Tensor jitter(std::string_view name, const Tensor& x, double amount) const;
  // Embeddings [tokens, size] of the sequences, while training with uniform noise of at most embedding_noise /
  // sqrt(length of the sequence * size).
  Tensor noised_embeddings(const Tensor& x, const std::vector<int64_t>& cu_seqlens) const;
  // fp32 [tokens, channels]: random numbers in [0, 1).
  Tensor uniform(std::string_view name, int64_t tokens, int64_t channels) const;
  // Whether this step of training leaves out all of the layer at `path`; it does so with probability `rate`.
  bool leaves_out(std::string_view path, double rate) const;
  // The key of the draws that the running layer calls `name`.
  uint64_t key(std::string_view name) const;

 private:
  friend class LayerRun;
  std::string path_;  // of the running layer
};

}  // namespace easydel::nn
