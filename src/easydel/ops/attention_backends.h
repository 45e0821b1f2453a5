// The attention backends, and which of them supports a need.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "easydel/ops/attention.h"

namespace easydel::ops {

struct AttentionNeed {
  const AttentionSpec& spec;
  const AttentionCall& call;
  const Tensor &q, &k, &v;
  bool gradients = false;  // one of q, k, v requires a gradient
};

struct AttentionBackend {
  AttentionMechanism mechanism;  // whose word is the backend's name
  int rank;                      // automatic takes the highest that does not refuse
  std::string_view doc;
  std::optional<std::string> (*refuses)(const AttentionNeed&);  // why it does not support the need; nullopt: it does
  Tensor (*attend)(const AttentionNeed&);
  bool reads_pages = false;  // otherwise keys and values are gathered for it
};

std::span<const AttentionBackend> attention_backends();  // alphabetical; the list is in attention_backends.cpp
// The backend of a mechanism. Several of EasyDeL's mechanisms are one backend here: blocksparse and
// autoregressive_decodeattn are flash_attn2, cudnn is sdpa. Null for automatic and for mechanisms that are not built
// yet.
const AttentionBackend* backend_of(AttentionMechanism mechanism);
// Throws UserError "where: ..." for a mechanism that is not built yet. Call it before a model is built.
void check_attention(AttentionMechanism mechanism, const std::string& where = "attention");
// For backends that handle one sequence at a time: calls `one` for each, in order; [0, heads, v_dim] if there are none.
Tensor one_by_one(const AttentionNeed& need, Tensor (*one)(const AttentionNeed&, const AttentionRange&));
// Throws UserError with every reason if no backend that `mechanism` allows supports the need.
const AttentionBackend& pick_attention(AttentionMechanism mechanism, const AttentionNeed& need);

}  // namespace easydel::ops
