// One forward: which sequences it runs over (nn/stream.h), what it draws at random (nn/randomness.h), what is kept or
// captured of its activations (nn/activations.h), and attention, which needs all three. Made for one call of
// Model::forward; not shared between threads.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/nn/activations.h"
#include "easydel/nn/randomness.h"
#include "easydel/nn/stream.h"
#include "easydel/ops/attention.h"
#include "easydel/tensor/torch.h"

namespace easydel::nn {

class Pass {
 public:
  // A pass over whole sequences that keeps nothing; positions count from 0 in each.
  static Pass over(std::vector<int64_t> cu_seqlens);
  // A pass over the tokens that `memory` is about to get; positions go on from those that are there. `prompts` as in
  // Stream. The memory must outlive the pass.
  static Pass next(Memory& memory, std::vector<int64_t> prompts = {});

  // The stream of the running layer; outside of layers, that of text.
  Stream& stream() { return stream(current_); }
  const Stream& stream() const;
  // The stream of this name, which is created empty when it is first asked for.
  Stream& stream(std::string_view name);

  Randomness& random() { return random_; }
  const Randomness& random() const { return random_; }
  Activations& activations() { return activations_; }
  const Activations& activations() const { return activations_; }

  // The backend that attends; automatic: the model's.
  ops::AttentionMechanism attention = ops::AttentionMechanism::automatic;

  // What the caller needs in addition to the model's result, by name: "expert_tokens".
  void request(std::string name) { requests_.insert(std::move(name)); }
  bool requests(std::string_view name) const { return requests_.contains(name); }

  // Activations::make and Activations::name: a named intermediate tensor, to keep and to capture.
  template <class Make>
  Tensor make(std::string_view name, Make&& make) {
    return activations_.make(name, std::forward<Make>(make));
  }
  Tensor name(std::string_view name, Tensor x) const { return activations_.name(name, std::move(x)); }

  // q [tokens, heads, head_dim], k, v [tokens, kv_heads, ...] of layer `layer` on the current stream; keys and values
  // go to the memory if there is one. -> [tokens, heads, v_dim]. `rope`: the keys are not rotated yet; this rotates
  // them. q may be of the requested tokens alone, as the result then is.
  Tensor attend(int64_t layer, const ops::AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& v,
                const ops::RopeTable* rope = nullptr);
  // ops::attention by this pass's backend, with its dropout if the model trains; the result is the checkpoint name
  // "attn_dense". call.first_token is the row of the stream that q begins with.
  Tensor attend(const ops::AttentionSpec& spec, ops::AttentionCall call, const Tensor& q, const Tensor& k,
                const Tensor& v);

  // Called by a model after its last layer: what was written to the memory counts.
  void finish();

 private:
  friend class LayerRun;
  std::map<std::string, Stream, std::less<>> streams_;
  std::string current_{text_stream};
  Randomness random_;
  Activations activations_;
  std::set<std::string, std::less<>> requests_;
};

}  // namespace easydel::nn
