// Attention as the models see it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

enum class AttentionKind : uint8_t { causal, full, cross, spans };

// What a query does that sees no key at all (padding in a probe; nobody sees what comes of it but the loss of a text's
// first token).
enum class Blind : uint8_t {
  weighs_all,      // every key alike, and its scores have their gradient: a mask that is added
  weighs_all_cut,  // every key alike, without a gradient: a mask in place of the scores
  weighs_past      // every key within causal sight alike
};

// What a layer asks of attention; a backend says what of it it cannot serve.
struct AttentionSpec {
  AttentionKind kind = AttentionKind::causal;
  double scale = 1.0;
  // Hugging Face's sliding_window: a token sees itself and window - 1 before it, and where attention is full as many
  // behind it; 0: all
  int64_t window = 0;
  int64_t chunk = 0;     // tokens see only their own chunk of this many positions; 0: off
  double softcap = 0.0;  // scores become softcap * tanh(score / softcap); 0: off
  Tensor sinks;          // [heads], a logit beside each row's; undefined: none
  Tensor slopes;         // [heads], ALiBi: slope x distance is taken from each score; undefined: none
  // Falcon's: slope and key position are bf16, and so is their product, which is added before the scale; positions
  // count what is not hidden.
  bool slopes_in_bf16 = false;
  Tensor bias;           // undefined: none
  int64_t v_dim = 0;     // 0: as k
  double dropout = 0.0;  // only while training
  Blind blind = Blind::weighs_all;
};

// One sequence of a call: which rows of q are its tokens, which rows of k and v its keys. The last query is at the
// position of the last key, so tokens that were cached before come first among the keys.
struct AttentionRange {
  int64_t begin = 0, end = 0;          // rows of q
  int64_t key_begin = 0, key_end = 0;  // rows of k and v; with pages positions, from 0 on
  // Where k and v are pages: position t is token t % page_tokens of page pages[t / page_tokens].
  std::span<const int32_t> pages = {};
};

// What a call leaves for an equal later one that needs only its backward. A backend that can fills in what is
// undefined, and takes what is not instead of computing it; others leave it alone.
struct AttentionMemory {
  Tensor out;          // [tokens, heads, v_dim], without a gradient
  Tensor normalizers;  // fp32 [tokens, heads]
};

// What one call runs over, in addition to q, k and v.
struct AttentionCall {
  std::span<const AttentionRange> sequences;
  Tensor hidden;             // bool [keys]: keys that nobody sees (padding in a probe). Undefined: none
  uint64_t dropout_key = 0;  // of the dropout's mask, when spec.dropout > 0
  int64_t first_token = 0;   // global index of row 0 of q, for that mask
  AttentionMemory* memory = nullptr;
};

// q [tokens, heads, head_dim], k [keys, kv_heads, head_dim], v [keys, kv_heads, v_dim] -> [tokens, heads, v_dim]. k and
// v may be the pages of a memory, [pages, kv_heads, page_tokens, ...]: then ranges have page tables, and there is no
// gradient.
// `backend` is a name of ops/attention_backends.h or "auto". UserError where it cannot serve the need.
Tensor attention(const AttentionSpec& spec, const AttentionCall& call, const Tensor& q, const Tensor& k,
                 const Tensor& v, const std::string& backend = "auto");

}  // namespace easydel::ops
