// Attention as the models see it.
#pragma once

#include <cstdint>
#include <span>

#include "easydel/ops/attention_config.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

enum class AttentionKind : uint8_t { causal, full, cross, spans };

// Output of a query with no visible key (only happens for padding in probes; only the loss of a text's first token
// depends on it).
enum class FullyMasked : uint8_t {
  uniform,                   // attends to every key equally, and its scores have their gradient: the mask is added
  uniform_without_gradient,  // attends to every key equally, without a gradient: the mask replaces the scores
  uniform_over_past          // attends equally to every key that causality allows
};

// What a layer needs from attention. A backend says which of it it does not support.
struct AttentionSpec {
  AttentionKind kind = AttentionKind::causal;
  double scale = 1.0;
  // Hugging Face's sliding_window: a token sees itself and the window - 1 tokens before it; without causality also as
  // many after it. 0: all.
  int64_t window = 0;
  int64_t chunk = 0;     // tokens see only their own chunk of this many positions; 0: off
  double softcap = 0.0;  // scores become softcap * tanh(score / softcap); 0: off
  Tensor sinks;          // [heads], an additional logit in each row's softmax; undefined: none
  Tensor slopes;         // [heads], ALiBi: slope x distance is subtracted from each score; undefined: none
  // Falcon's variant: slope, key position and their product are bf16, added before the scale; positions count only
  // unmasked tokens.
  bool slopes_in_bf16 = false;
  Tensor bias;           // undefined: none
  int64_t v_dim = 0;     // 0: as k
  double dropout = 0.0;  // only while training
  FullyMasked fully_masked = FullyMasked::uniform;
};

// One sequence of a call: the rows of q with its tokens, and the rows of k and v with its keys. The last query is at
// the position of the last key, so tokens cached earlier come first among the keys.
struct AttentionRange {
  int64_t begin = 0, end = 0;          // rows of q
  int64_t key_begin = 0, key_end = 0;  // rows of k and v; with pages: positions, starting at 0
  // If k and v are pages: position t is token t % page_tokens of page pages[t / page_tokens].
  std::span<const int32_t> pages = {};
};

// What a call leaves for an equal later one that needs only its backward. A backend that supports it fills in undefined
// members, and uses defined ones instead of computing them; others ignore it.
struct AttentionMemory {
  Tensor out;          // [tokens, heads, v_dim], without a gradient
  Tensor normalizers;  // fp32 [tokens, heads]
};

// What one call runs over, in addition to q, k and v.
struct AttentionCall {
  std::span<const AttentionRange> sequences;
  Tensor masked;             // bool [keys]: masked keys (padding in a probe). Undefined: none
  uint64_t dropout_key = 0;  // key of the dropout mask if spec.dropout > 0
  int64_t first_token = 0;   // global index of row 0 of q, for that mask
  AttentionMemory* memory = nullptr;
  Tensor key_scales, value_scales;  // if k and v are pages of codes: fp32 [pages, kv_heads, page_tokens, groups]
};

// q [tokens, heads, head_dim], k [keys, kv_heads, head_dim], v [keys, kv_heads, v_dim] -> [tokens, heads, v_dim]. k and
// v may be the pages of a memory, [pages, kv_heads, page_tokens, ...]: then ranges have page tables, elements may be
// codes, and there is no gradient. Throws UserError if the backend of `mechanism` does not support the need. automatic:
// the best one that does.
Tensor attention(const AttentionSpec& spec, const AttentionCall& call, const Tensor& q, const Tensor& k,
                 const Tensor& v, AttentionMechanism mechanism = AttentionMechanism::automatic);

}  // namespace easydel::ops
