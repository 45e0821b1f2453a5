// The words for attention backends in the configuration: EasyDeL's. Which backend of ours a word means, and which
// needs a backend can serve, is in ops/attention_backends.h. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/choice.h"

namespace easydel::ops {

enum class AttentionMechanism : uint8_t {
  automatic,
  vanilla,
  sdpa,
  flash_attn2,
  blocksparse,
  blockwise,
  ring,
  cudnn,
  autoregressive_decodeattn,
  page_attention,
  ragged_page_attention_v2,
  ragged_page_attention_v3,
  multi_latent_ragged_page_attention_v1,
  unified_attention,
  paged_flash_attention
};
constexpr auto choices(AttentionMechanism) {
  using enum AttentionMechanism;
  using config::Choice;
  return std::array{Choice{automatic, "auto"},
                    Choice{vanilla, "vanilla"},
                    Choice{sdpa, "sdpa"},
                    Choice{flash_attn2, "flash_attn2"}.also("flash"),
                    Choice{blocksparse, "blocksparse"}.also("splash"),
                    Choice{blockwise, "blockwise"},
                    Choice{ring, "ring"}.not_built(),
                    Choice{cudnn, "cudnn"},
                    Choice{autoregressive_decodeattn, "autoregressive_decodeattn"},
                    Choice{page_attention, "page_attention"}.not_built(),
                    Choice{ragged_page_attention_v2, "ragged_page_attention_v2"}.not_built(),
                    Choice{ragged_page_attention_v3, "ragged_page_attention_v3"}.not_built(),
                    Choice{multi_latent_ragged_page_attention_v1, "multi_latent_ragged_page_attention_v1"}.not_built(),
                    Choice{unified_attention, "unified_attention"}.not_built(),
                    Choice{paged_flash_attention, "paged_flash_attention"}.not_built()};
}

}  // namespace easydel::ops
