// One forward: which sequences it runs over, where keys, values and recurrent states live, whether gradients are
// wanted, and what is captured on the way. Made for one call of Model::forward; not shared between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/ops/attention.h"
#include "easydel/tensor/torch.h"

namespace easydel::nn {

class Cache;  // keys, values and recurrent states of running sequences: nn/cache.h

// A list of tokens that attend among themselves. Text models have one, "text"; encoder-decoders and vision towers
// bring their own beside it.
struct Stream {
  std::vector<int64_t> cu_seqlens;   // where each sequence begins: {0, n0, n0+n1, ...}
  Tensor positions;                  // int64 [tokens], or [3, tokens] for mrope
  Cache* cache = nullptr;            // null: nothing is kept (training, scoring)
  std::vector<int64_t> cache_slots;  // with a cache: the slot of each sequence
};

// What activations are kept for the backward.
enum class Checkpointing : uint8_t { none, nothing_saveable };

class Pass {
 public:
  // A pass over whole sequences without a cache; positions count from 0 in each.
  static Pass over(std::vector<int64_t> cu_seqlens);

  Stream& stream(std::string_view name = "text");
  const Stream& stream(std::string_view name = "text") const;

  Checkpointing checkpointing = Checkpointing::none;
  bool training = false;           // dropouts are on
  uint64_t seed = 0, step = 0;     // of everything random: f(seed, step, layer path, global token, channel)
  int64_t first_token = 0;         // global index of this pass's first token in the step
  std::string attention = "auto";  // backend by name

  // q [tokens, heads, head_dim], k, v [tokens, kv_heads, ...] of layer `layer` on `stream`; writes keys and values
  // to the cache where there is one. -> [tokens, heads, v_dim]
  Tensor attend(int64_t layer, const ops::AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& v,
                std::string_view stream = "text");

  // A named intermediate tensor (the checkpoint names, and every layer's output by its path): where it is asked for,
  // it is handed to `capture`. Returns x, or the given output in a recomputation.
  Tensor name(std::string_view name, Tensor x);
  std::function<void(std::string_view name, const Tensor&)> capture;  // for --trace, distillation

 private:
  std::map<std::string, Stream, std::less<>> streams_;
};

}  // namespace easydel::nn
