// One forward: which sequences it runs over, where keys, values and recurrent states are kept, whether gradients are
// needed, and what is captured on the way. Made for one call of Model::forward; not shared between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/nn/checkpointing_config.h"
#include "easydel/ops/attention.h"
#include "easydel/ops/recurrence.h"
#include "easydel/ops/rope.h"
#include "easydel/tensor/torch.h"

namespace easydel::nn {

class Memory;  // keys, values and recurrent states of the sequences of a pass: nn/memory.h

// A list of tokens that attend among themselves. Text models have one, "text"; encoder-decoders and vision towers
// add their own.
struct Stream {
  std::vector<int64_t> cu_seqlens;  // where each sequence begins: {0, n0, n0+n1, ...}
  Tensor positions;                 // int64 [tokens], or [3, tokens] for mrope
  Memory* memory = nullptr;         // of these sequences; null: nothing is kept (training, scoring)
  // Of each sequence the length of its whole prompt; the tokens after it were generated. Empty: every token up to the
  // end of this pass is prompt.
  std::vector<int64_t> prompts;
  // Final length of each sequence once its whole prompt has been read. Empty: the length that this pass reaches.
  std::vector<int64_t> lengths;
  Tensor hidden;  // bool [tokens]: keys that nobody sees (padding in a probe); undefined: none
  // Of each sequence how many of its last tokens the model's results are asked for; empty: all.
  std::vector<int64_t> wanted;

  int64_t tokens() const { return cu_seqlens.empty() ? 0 : cu_seqlens.back(); }
  int64_t sequences() const { return cu_seqlens.empty() ? 0 : int64_t(cu_seqlens.size()) - 1; }
  int64_t wanted_tokens() const {
    return wanted.empty() ? tokens() : std::accumulate(wanted.begin(), wanted.end(), int64_t(0));
  }
};

// What is kept of a layer's tensors until it runs again: by name, each in the order in which the layer makes them.
using KeptTensors = std::map<std::string, std::vector<Tensor>, std::less<>>;

// Which keys of its sequence a token sees, in ascending order. Blind: it sees none, and these are all there are.
struct KeyChoice {
  Tensor keys;  // int64
  bool blind = false;
};

// Neighbouring tokens of one sequence of a pass, all of its prompt or all generated.
struct TokenSpan {
  int64_t sequence = 0;
  int64_t begin = 0, end = 0;  // rows of the stream
  int64_t position = 0;        // of the first: number of tokens before it in the sequence
  bool prompt = true;
  int64_t prompt_length = 0;  // of the sequence

  int64_t tokens() const { return end - begin; }
  int64_t keys() const { return position + tokens(); }  // tokens that its last one sees, itself included
};

class Pass {
 public:
  Pass();
  // A pass over whole sequences that keeps nothing; positions count from 0 in each.
  static Pass over(std::vector<int64_t> cu_seqlens);
  // A pass over the tokens that `memory` is about to get; positions go on from those that are there. `prompts` as in
  // Stream. The memory must outlive the pass.
  static Pass next(Memory& memory, std::vector<int64_t> prompts = {});

  Stream& stream(std::string_view name = "text");
  const Stream& stream(std::string_view name = "text") const;

  CheckpointPolicy checkpointing;
  bool training = false;           // dropouts are on
  uint64_t seed = 0, step = 0;     // of everything random: f(seed, step, layer path, global token, channel)
  int64_t first_token = 0;         // global index of this pass's first token in the step
  std::string attention = "auto";  // backend by name

  // The tokens of a stream's sequences, in order, each sequence's prompt apart from what was generated. The arithmetic
  // of a token may depend on its position, on whether it is prompt and on the prompt's length, and on nothing else: not
  // on how a prompt was cut into passes.
  std::vector<TokenSpan> spans(std::string_view stream = "text") const;

  // What the caller needs in addition to the model's result, by name: "expert_tokens".
  void request(std::string name) { requests_.insert(std::move(name)); }
  bool requests(std::string_view name) const { return requests_.contains(name); }

  // q [tokens, heads, head_dim], k, v [tokens, kv_heads, ...] of layer `layer` on `stream`; keys and values go to the
  // memory if there is one. -> [tokens, heads, v_dim]. `rope`: the keys are not rotated yet; this rotates them. q may
  // be of the wanted tokens alone, as the result then is.
  Tensor attend(int64_t layer, const ops::AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& v,
                std::string_view stream = "text", const ops::RopeTable* rope = nullptr);

  // ops::attention by this pass's backend; its result is the checkpoint name "attn_dense".
  Tensor attention_of(const ops::AttentionSpec& spec, ops::AttentionCall call, const Tensor& q, const Tensor& k,
                      const Tensor& v);

  // The same of a recurrent layer: its memory is state number `state` of the cached layer, [heads, k_dim, v_dim].
  // -> fp32 [tokens, heads, v_dim]
  Tensor recurrent(int64_t layer, size_t state, const ops::RecurrenceSpec& spec, const ops::RecurrenceTensors& in,
                   std::string_view stream = "text");
  // ops::causal_convolution with state [width - 1, channels], and ops::running_maximum with state [channels].
  Tensor convolve(int64_t layer, size_t state, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  std::string_view stream = "text");
  ops::RunningMaximum running_maximum(int64_t layer, size_t state, const Tensor& f, const Tensor& i,
                                      std::string_view stream = "text");
  // A recurrence that a family computes by itself: step(begin, end, before) of each sequence's rows [begin, end)
  // returns the state after them. `before` is the state that earlier passes left, or `initial`, fp32 [shape...].
  using Step = std::function<Tensor(int64_t begin, int64_t end, const Tensor& before)>;
  void each_sequence(int64_t layer, size_t state, const Tensor& initial, const Step& step,
                     std::string_view stream = "text");
  // Of x [tokens, ...] the wanted tokens' rows.
  Tensor wanted(const Tensor& x, std::string_view stream = "text") const;
  // x with zeros for hidden tokens: what a recurrence must not remember.
  Tensor visible(const Tensor& x, std::string_view stream = "text") const;

  // The angles of a stream's tokens, made once a pass. `spec` must outlive the pass.
  const ops::RopeTable& rope_table(const ops::RopeSpec& spec, std::string_view stream = "text");

  // x with a share of its elements dropped while training; `name` tells a layer's dropouts apart.
  Tensor dropout(std::string_view name, const Tensor& x, double rate);

  // Of each token the keys that layer `layer` chose for it in this pass: later layers may see the same. Recomputed
  // layers find what the first forward left.
  std::vector<KeyChoice>& choices(int64_t layer);

  // Whether this step of training leaves out all of the layer at `path`; it does so with probability `rate`.
  bool leaves_out(std::string_view path, double rate) const;
  uint64_t dropout_key(std::string_view name) const;  // of what a layer calls so
  // fp32 [tokens, channels]: random numbers in [0, 1).
  Tensor uniform(std::string_view name, int64_t tokens, int64_t channels) const;
  // x times random numbers in [1 - amount, 1 + amount] while training.
  Tensor jitter(std::string_view name, const Tensor& x, double amount);

  // A named intermediate tensor: a checkpoint name ("attn_query") or a part of the layer ("self_attn"). Where it is
  // asked for, it goes to `capture` under the layer's path ("model.layers.0.self_attn"), and into what is kept.
  Tensor name(std::string_view name, Tensor x);
  // In a recomputation, what the first forward kept under this name; else undefined. The op that makes the tensor
  // takes it as its given output, and names what it gives next. Only tensors that were asked for so are ever kept.
  Tensor given(std::string_view name);
  // Whether a backward follows: gradients are on, or this is the first forward of a layer that is recomputed.
  bool has_backward() const;
  std::function<void(std::string_view name, const Tensor&)> capture;  // for --trace, distillation

  // Called by a model after its last layer: what was written to the memory counts.
  void finish();

 private:
  friend class LayerRun;
  struct Memo;  // shared by copies of the pass
  std::map<std::string, Stream, std::less<>> streams_;
  std::shared_ptr<Memo> memo_;
  std::string prefix_;  // path of the running layer
  KeptTensors* saving_ = nullptr;
  const KeptTensors* giving_ = nullptr;
  std::string asked_;                                 // saving: the name whose maker could take it
  std::map<std::string, size_t, std::less<>> taken_;  // giving: how many of a name
  std::set<std::string, std::less<>> requests_;
};

}  // namespace easydel::nn
