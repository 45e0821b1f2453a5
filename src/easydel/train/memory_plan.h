// The memory of a run at its peak, by what it is for, and what would make a run fit that does not. Bytes everywhere. No
// torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace easydel::train {

// What a micro-batch of `tokens` keeps for its backward: measured with few tokens, and then by the number of tokens.
struct ActivationCost {
  double fixed = 0, per_token = 0;
  double per_logit_row = 0;   // of a row of logits and its gradient
  int64_t rows_in_chunk = 0;  // at most so many rows of logits are computed at once; 0: all
  double at(int64_t tokens, int64_t labelled) const;
};

struct MemoryPlan {
  int64_t weights = 0;         // the parameters, and their copies in the computation's dtype
  int64_t gradients = 0;       // of all trainable parameters
  int64_t first_gradient = 0;  // the part of them that exists while all activations do: the output layer's
  int64_t optimizer = 0;
  int64_t side_models = 0;           // a reference, a teacher
  int64_t rest = 0;                  // data, tokenizer, the program and its libraries
  int64_t tokens = 0, labelled = 0;  // of the largest micro-batch
  int64_t micro_batches = 1;
  ActivationCost activations;
  int64_t before = 0;  // the peak so far, for example of loading

  int64_t activation_bytes() const { return int64_t(activations.at(tokens, labelled)); }
  // Gradients are complete only when the activations of a single micro-batch are gone.
  int64_t total() const;
  std::string text() const;  // "about 3.02 GB: weights 1.08 GB, ..."
};

// The keys that would bring a plan below `bytes`, each with a value where one can be computed; empty: none alone.
// `accumulation`: numbers of micro-batches that divide the update, ascending.
std::vector<std::string> what_would_fit(const MemoryPlan& plan, int64_t bytes, const std::vector<int64_t>& accumulation,
                                        int64_t longest, bool checkpointing);

std::string bytes_text(int64_t bytes);  // "3.02 GB", "12.5 MB"

}  // namespace easydel::train
