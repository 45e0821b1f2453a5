#include "easydel/nn/pass_rows.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include "easydel/ops/key_pages.h"

namespace easydel::nn {

KeyRows::KeyRows(Pass& pass, int64_t layer, int64_t head, Tensor row)
    : pass_(pass), on_(pass.stream()), row_(row.unsqueeze(1)) {
  if (!on_.memory) return;
  on_.memory->write(layer, head, row_, {}, nullptr);
  pages_ = on_.memory->ranges(layer);
  pages_.keys = pages_.keys.narrow(1, head, 1);
  if (pages_.key_scales.defined()) pages_.key_scales = pages_.key_scales.narrow(1, head, 1);
}

bool KeyRows::rounded() const { return on_.memory && pages_.keys.scalar_type() != row_.scalar_type(); }

Tensor KeyRows::up_to(std::span<const TokenSpan> spans) const {
  std::vector<Tensor> parts;
  for (const TokenSpan& span : spans)
    parts.push_back(on_.memory ? ops::gather_pages({pages_.keys, pages_.key_scales},
                                                   pages_.tables[size_t(span.sequence)], span.keys())
                                     .to(row_.scalar_type())
                               : row_.slice(0, span.begin - span.position, span.end));
  return (parts.size() == 1 ? parts[0] : at::cat(parts)).squeeze(1);
}

Tensor KeyRows::masked(const TokenSpan& span) const {
  if (on_.memory || !on_.masked.defined()) return {};
  return on_.masked.slice(0, span.begin - span.position, span.end);
}

Tensor KeyRows::attend(const ops::AttentionSpec& spec, std::span<const TokenSpan> spans, const Tensor& q, int64_t width,
                       int64_t v_dim) const {
  const int64_t first = spans.front().begin;
  std::vector<ops::AttentionRange> ranges;
  for (const TokenSpan& span : spans)
    if (on_.memory)
      ranges.push_back({span.begin - first, span.end - first, 0, span.keys(), pages_.tables[size_t(span.sequence)]});
    else
      ranges.push_back({span.begin - first, span.end - first, span.begin - span.position, span.end, {}});
  ops::AttentionCall call;
  call.sequences = ranges;
  if (!on_.memory) call.masked = on_.masked;
  if (pages_.key_scales.defined()) {
    const int64_t groups = pages_.key_scales.size(-1), size = pages_.keys.size(-1) / groups;
    call.key_scales = pages_.key_scales.narrow(-1, 0, width / size);
    call.value_scales = pages_.key_scales.narrow(-1, 0, v_dim / size);
  }
  const Tensor& rows = on_.memory ? pages_.keys : row_;
  return run(spec, call, spans, q, rows.narrow(-1, 0, width), rows.narrow(-1, 0, v_dim));
}

Tensor KeyRows::attend(const ops::AttentionSpec& spec, std::span<const TokenSpan> spans, const Tensor& q, int64_t width,
                       int64_t v_dim, const std::vector<KeyChoice>& choices) const {
  const int64_t first = spans.front().begin;
  std::vector<ops::AttentionRange> ranges;
  std::vector<Tensor> seen, masked;  // the rows that each token sees, and whether they are a fully masked token's
  bool any_masked = false;
  int64_t chosen = 0, begin = 0;
  for (const TokenSpan& span : spans) {
    for (int64_t token = span.begin; token < span.end; ++token) {
      const KeyChoice& choice = choices.at(size_t(token));
      ranges.push_back({token - first, token - first + 1, chosen, chosen + choice.keys.numel(), {}});
      chosen += choice.keys.numel();
      seen.push_back(choice.keys + begin);
      masked.push_back(at::full(choice.keys.sizes(), choice.fully_masked, choice.keys.options().dtype(at::kBool)));
      any_masked = any_masked || choice.fully_masked;
    }
    begin += span.keys();
  }
  const Tensor keys = up_to(spans).narrow(1, 0, width).index_select(0, at::cat(seen)).unsqueeze(1);
  ops::AttentionCall call;
  call.sequences = ranges;
  if (any_masked) call.masked = at::cat(masked);
  return run(spec, call, spans, q, keys, keys.narrow(2, 0, v_dim));
}

Tensor KeyRows::attend_expanded(const ops::AttentionSpec& spec, std::span<const TokenSpan> spans, const Tensor& q,
                                const Tensor& k, const Tensor& v) const {
  const int64_t first = spans.front().begin;
  std::vector<ops::AttentionRange> ranges;
  int64_t key = 0;
  for (const TokenSpan& span : spans) {
    ranges.push_back({span.begin - first, span.end - first, key, key + span.keys(), {}});
    key += span.keys();
  }
  ops::AttentionCall call;
  call.sequences = ranges;
  if (!on_.memory && on_.masked.defined()) call.masked = on_.masked.narrow(0, first, key);
  return run(spec, call, spans, q, k, v);
}

Tensor KeyRows::run(const ops::AttentionSpec& spec, ops::AttentionCall& call, std::span<const TokenSpan> spans,
                    const Tensor& q, const Tensor& k, const Tensor& v) const {
  ops::AttentionSpec own = spec;
  own.v_dim = v.size(-1);
  call.first_token = spans.front().begin;
  return pass_.attend(own, call, q, k, v);
}

}  // namespace easydel::nn
