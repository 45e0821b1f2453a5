#include "easydel/ops/attention_backends.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <array>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/ops/key_pages.h"

namespace easydel::ops {

AttentionBackend blockwise_attention();
AttentionBackend flash_attn2_attention();
AttentionBackend sdpa_attention();
AttentionBackend vanilla_attention();

std::span<const AttentionBackend> attention_backends() {
  static const std::array all = {
      blockwise_attention(),
      flash_attn2_attention(),
      sdpa_attention(),
      vanilla_attention(),
  };
  return all;
}

const AttentionBackend* backend_of(AttentionMechanism mechanism) {
  using enum AttentionMechanism;
  // EasyDeL has separate kernels for decoding and for masked blocks. Here one kernel does both: it splits the keys of
  // few queries over threads, and never reads fully masked blocks.
  if (mechanism == autoregressive_decodeattn || mechanism == blocksparse) mechanism = flash_attn2;
  if (mechanism == cudnn) mechanism = sdpa;
  for (const AttentionBackend& backend : attention_backends())
    if (backend.mechanism == mechanism) return &backend;
  return nullptr;
}

void check_attention(AttentionMechanism mechanism, const std::string& where) {
  if (mechanism == AttentionMechanism::automatic || backend_of(mechanism)) return;
  std::vector<std::string> known = {"auto"};
  for (const AttentionBackend& backend : attention_backends()) known.emplace_back(config::word_of(backend.mechanism));
  refuse(where, str("'", config::word_of(mechanism), "' is not built yet"), "built: " + join(known, ", "));
}

const AttentionBackend& pick_attention(AttentionMechanism mechanism, const AttentionNeed& need) {
  check_attention(mechanism);
  const AttentionBackend* const named = backend_of(mechanism);
  const AttentionBackend* best = nullptr;
  std::string refusals;
  for (const AttentionBackend& backend : attention_backends()) {
    if (named && named != &backend) continue;
    if (const auto why = backend.refuses(need))
      refusals += str(refusals.empty() ? "" : "\n    ", config::word_of(backend.mechanism), ": ", *why);
    else if (!best || backend.rank > best->rank)
      best = &backend;
  }
  if (best) return *best;
  refuse("attention", str("'", config::word_of(mechanism), "' cannot serve this model here"), refusals);
}

Tensor one_by_one(const AttentionNeed& need, Tensor (*one)(const AttentionNeed&, const AttentionRange&)) {
  std::vector<Tensor> parts;
  for (const AttentionRange& range : need.call.sequences) parts.push_back(one(need, range));
  if (parts.empty()) return at::empty({0, need.q.size(1), need.v.size(2)}, need.q.options());
  return parts.size() == 1 ? parts[0].contiguous() : at::cat(parts);
}

namespace {

// Calls a backend that does not support pages, after gathering keys and values contiguously in the dtype of q.
Tensor attend_gathered(const AttentionBackend& backend, const AttentionNeed& need) {
  std::vector<Tensor> keys, values;  // heads first
  std::vector<AttentionRange> ranges;
  int64_t rows = 0;
  for (const AttentionRange& range : need.call.sequences) {
    const auto gathered = [&](const Pages& pages) {
      return gather_pages(pages, range.pages, range.key_end).to(need.q.scalar_type()).transpose(0, 1);
    };
    keys.push_back(gathered({need.k, need.call.key_scales}));
    values.push_back(gathered({need.v, need.call.value_scales}));
    ranges.push_back({range.begin, range.end, rows, rows + range.key_end, {}});
    rows += range.key_end;
  }
  const auto all = [&](const std::vector<Tensor>& parts, const Tensor& pages) {
    if (parts.empty()) return at::empty({0, pages.size(1), head_dim_of(pages)}, need.q.options());
    return (parts.size() == 1 ? parts[0] : at::cat(parts, 1)).transpose(0, 1);
  };
  const Tensor k = all(keys, need.k), v = all(values, need.v);
  AttentionCall call = need.call;
  call.sequences = ranges;
  return backend.attend({need.spec, call, need.q, k, v, need.gradients});
}

}  // namespace

Tensor attention(const AttentionSpec& spec, const AttentionCall& call, const Tensor& q, const Tensor& k,
                 const Tensor& v, AttentionMechanism mechanism) {
  const bool gradients = at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad() ||
                                                        (spec.sinks.defined() && spec.sinks.requires_grad()));
  const AttentionNeed need{spec, call, q, k, v, gradients};
  const AttentionBackend& picked = pick_attention(mechanism, need);
  return k.dim() == 4 && !picked.reads_pages ? attend_gathered(picked, need) : picked.attend(need);
}

}  // namespace easydel::ops
