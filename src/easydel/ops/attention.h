// Attention as the models see it.
#pragma once

#include <cstdint>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

enum class AttentionKind : uint8_t { causal, full, cross, spans };

// What a layer asks of attention; a backend says what of it it cannot serve.
struct AttentionSpec {
  AttentionKind kind = AttentionKind::causal;
  double scale = 1.0;
  int64_t window = 0;    // Hugging Face's sliding_window: a token sees itself and window - 1 before it; 0: all
  int64_t chunk = 0;     // tokens see only their own chunk of this many positions; 0: off
  double softcap = 0.0;  // scores become softcap * tanh(score / softcap); 0: off
  Tensor sinks;          // [heads], a logit beside each row's; undefined: none
  Tensor slopes;         // [heads], ALiBi; undefined: none
  Tensor bias;           // undefined: none
  int64_t v_dim = 0;     // 0: as k
  double dropout = 0.0;  // only while training
};

}  // namespace easydel::ops
