// The attention backends by name, and which of them supports a need.
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
  std::string_view name;
  int rank;  // "auto" takes the highest that does not refuse
  std::string_view doc;
  std::optional<std::string> (*refuses)(const AttentionNeed&);  // why it does not support the need; nullopt: it does
  Tensor (*attend)(const AttentionNeed&);
  bool reads_pages = false;  // otherwise keys and values are gathered for it
};

std::span<const AttentionBackend> attention_backends();  // alphabetical; the list is in attention_backends.cpp
// The listed name for another name of EasyDeL's ("flash" and "blocksparse" are "flash_attn2", "cudnn" is "sdpa"); any
// other name is returned unchanged.
std::string_view canonical_attention(std::string_view name);
// Throws UserError "attention: ..." for an unknown name. Call it before a model is built.
void check_attention_name(std::string_view name, const std::string& where = "attention");
// For backends that handle one sequence at a time: calls `one` for each, in order; [0, heads, v_dim] if there are none.
Tensor one_by_one(const AttentionNeed& need, Tensor (*one)(const AttentionNeed&, const AttentionRange&));
const AttentionBackend& pick_attention(std::string_view name, const AttentionNeed& need);

}  // namespace easydel::ops
