// The memory of a run at its peak, by what it is for, and what would make a run fit that does not. Bytes everywhere. No
// torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/nn/checkpointing_config.h"

namespace easydel::train {

// What a micro-batch of `tokens` keeps for its backward: measured with few tokens, and then by the number of tokens.
struct ActivationCost {
  double fixed = 0, per_token = 0;
  double last_layer = 0;        // per token: of the layer whose backward comes last, when all gradients are there
  double per_pair = 0;          // of two tokens of one sequence: attention that keeps its scores
  double per_longest_pair = 0;  // the same in the longest sequence alone: what the backward of its scores needs beside
  double per_logit_row = 0;     // of a row of logits and its gradient
  int64_t rows_in_chunk = 0;    // at most so many rows of logits are computed at once; 0: all
  double at(int64_t tokens, int64_t labelled, int64_t pairs, int64_t longest_pairs) const;
  double at_end(int64_t tokens) const { return fixed + last_layer * double(tokens); }
};

struct MemoryPlan {
  int64_t weights = 0;         // the parameters, and their copies in the computation's dtype
  int64_t gradients = 0;       // of all trainable parameters
  int64_t first_gradient = 0;  // the part of them that exists while all activations do: the output layer's
  int64_t optimizer = 0;
  int64_t side_models = 0;           // a reference, a teacher
  int64_t completions = 0;           // keys and values while completions are sampled, before a step
  int64_t panels = 0;                // packed weights of the models that sample and score, apart from tensors' memory
  int64_t rest = 0;                  // data, tokenizer, the program and its libraries
  int64_t tokens = 0, labelled = 0;  // of the largest micro-batch
  int64_t pairs = 0;                 // sum of the squares of its sequences' lengths
  int64_t longest_pairs = 0;         // the square of the longest
  int64_t micro_batches = 1;
  ActivationCost activations;
  int64_t before = 0;  // the peak so far, for example of loading

  int64_t activation_bytes() const { return int64_t(activations.at(tokens, labelled, pairs, longest_pairs)); }
  // Gradients are complete only when the activations of a single micro-batch are gone, except those of the first layer.
  int64_t total() const;
  std::string text() const;  // "about 3.02 GB: weights 1.08 GB, ..."
};

// What of a run can still be changed.
struct RunChoices {
  std::vector<int64_t> accumulation = {};  // numbers of micro-batches that divide the update, ascending
  int64_t longest = 0;                     // tokens of the longest example, or of a completion
  bool recomputes = false;                 // nothing_saveable is on already
  bool is_fp32 = false;                    // the computation
  int64_t prompt = 0;                      // tokens before a completion
  const char* length_key = "trainer.max_length";
};
// Numbers of micro-batches that divide an update of `update` examples over `ranks`, from 2.
std::vector<int64_t> micro_batches_of(int64_t update, int64_t ranks);
// The keys that would bring a plan below `bytes`, each with a value where one can be computed; empty: none alone.
std::vector<std::string> what_would_fit(const MemoryPlan& plan, int64_t bytes, const RunChoices& choices);

// What a training step keeps, counted from the shapes in config.json before a model is loaded. When it is there, the
// trainer measures instead (trainer_memory.cpp).

// Sizes of a layer for one token; 0: config.json does not say.
struct LayerShapes {
  int64_t layers = 0, hidden = 0;
  int64_t inner = 0;           // of the feed-forward network; of all experts that a token goes through
  int64_t query = 0, key = 0;  // of all heads
  int64_t heads = 0;
  bool is_known() const { return layers > 0 && hidden > 0; }
  // Numbers that a layer keeps for each token: the residual and two normed inputs; rotated queries and keys, values,
  // the attended values; the gate, what it gates, and their product.
  int64_t elements() const { return 3 * hidden + 2 * query + 2 * key + 3 * inner; }
};
LayerShapes layer_shapes(const Value& config);  // config.json of a decoder

struct StepSetting {
  nn::CheckpointPolicy checkpointing = {};
  int64_t element_bytes = 4;  // of the computation's dtype
  bool keeps_scores = false;  // attention keeps the scores of all pairs of tokens (backend vanilla)
  int64_t vocabulary = 0;
  int64_t rows_in_chunk = 0;  // of logits; 0: chunk_rows(vocabulary)
};

// Within some 15 % of what is measured for blocks like Llama's. Nothing if the shapes are not known.
ActivationCost counted_activations(const LayerShapes& shapes, const StepSetting& setting);

// ActivationCost::last_layer: what the layer keeps, and its gradients.
double last_layer_bytes(const LayerShapes& shapes, int64_t element_bytes);

// Rows of logits that the loss computes at once, if no key says it: 64 MiB of them, from 16 to 4096.
int64_t chunk_rows(int64_t vocabulary);

std::string bytes_text(int64_t bytes);  // "3.02 GB", "12.5 MB"

}  // namespace easydel::train
