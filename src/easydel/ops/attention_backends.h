// The attention backends by name, and which of them serves a need here.
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
  std::optional<std::string> (*refuses)(const AttentionNeed&);  // why it cannot serve; nothing: it can
  Tensor (*attend)(const AttentionNeed&);
  bool reads_pages = false;  // else keys and values are gathered for it
};

std::span<const AttentionBackend> attention_backends();  // alphabetical; the list is in attention_backends.cpp
// The name that stands in the list for another of upstream's ("flash" and "blocksparse" are "flash_attn2", "cudnn" is
// "sdpa"); the name itself where it is none.
std::string_view canonical_attention(std::string_view name);
// UserError "attention: ..." for an unknown name; checked before a model is built.
void check_attention_name(std::string_view name, const std::string& where = "attention");
// For backends that know one sequence at a time: `one` of each, in order; [0, heads, v_dim] where there are none.
Tensor one_by_one(const AttentionNeed& need, Tensor (*one)(const AttentionNeed&, const AttentionRange&));
const AttentionBackend& pick_attention(std::string_view name, const AttentionNeed& need);

}  // namespace easydel::ops
