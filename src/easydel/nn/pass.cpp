#include "easydel/nn/pass.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include "easydel/base/error.h"
#include "easydel/nn/memory.h"
#include "easydel/ops/attention_scores.h"

namespace easydel::nn {
namespace {

// For each sequence the positions begin[i], begin[i] + 1, ...
Tensor positions_from(const std::vector<int64_t>& begin, const std::vector<int64_t>& cu_seqlens) {
  std::vector<Tensor> parts;
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s)
    parts.push_back(
        at::arange(begin[s], begin[s] + cu_seqlens[s + 1] - cu_seqlens[s], at::TensorOptions().dtype(at::kLong)));
  return parts.empty() ? at::arange(0, at::TensorOptions().dtype(at::kLong)) : at::cat(parts);
}

}  // namespace

Pass Pass::over(std::vector<int64_t> cu_seqlens) {
  check(!cu_seqlens.empty() && cu_seqlens.front() == 0, "pass: cu_seqlens must begin with 0");
  Pass pass;
  Stream& text = pass.stream();
  text.positions = positions_from(std::vector<int64_t>(cu_seqlens.size(), 0), cu_seqlens);
  text.cu_seqlens = std::move(cu_seqlens);
  return pass;
}

Pass Pass::next(Memory& memory, std::vector<int64_t> prompts) {
  check(prompts.empty() || int64_t(prompts.size()) == memory.sequences(), "pass: ", prompts.size(), " prompts of ",
        memory.sequences(), " sequences");
  Pass pass;
  Stream& text = pass.stream();
  std::vector<int64_t> begin;
  text.cu_seqlens = {0};
  for (int64_t s = 0; s < memory.sequences(); ++s) {
    begin.push_back(memory.length(s));
    text.cu_seqlens.push_back(text.cu_seqlens.back() + memory.added(s));
  }
  text.positions = positions_from(begin, text.cu_seqlens);
  text.memory = &memory;
  text.prompts = std::move(prompts);
  return pass;
}

Stream& Pass::stream(std::string_view name) {
  const auto found = streams_.find(name);
  return found != streams_.end() ? found->second : streams_[std::string(name)];
}

const Stream& Pass::stream() const {
  const auto found = streams_.find(current_);
  check(found != streams_.end(), "pass: no stream '", current_, "'");
  return found->second;
}

Tensor Pass::attend(int64_t layer, const ops::AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& v,
                    const ops::RopeTable* rope) {
  const Stream& on = stream();
  ops::AttentionCall call;
  const bool some = q.size(0) != on.tokens();
  check(!some || (q.size(0) == on.requested_tokens() && !random_.training), "pass: queries of ", q.size(0),
        " tokens of ", on.tokens());
  KeyPages pages;
  if (on.memory) {
    on.memory->write(layer, 0, k, v, rope);
    pages = on.memory->ranges(layer);
    call.key_scales = pages.key_scales, call.value_scales = pages.value_scales;
  } else {
    pages.keys = rope ? ops::rope(k, *rope) : k, pages.values = v;
    call.masked = on.masked;
  }
  std::vector<ops::AttentionRange> ranges;
  int64_t row = 0;
  for (int64_t s = 0; s < on.sequences(); ++s) {
    const int64_t begin = on.cu_seqlens[size_t(s)], end = on.cu_seqlens[size_t(s) + 1];
    const int64_t first_row = row;
    row += some ? on.requested[size_t(s)] : end - begin;
    if (on.memory)
      ranges.push_back({first_row, row, 0, on.memory->length(s) + end - begin, pages.tables[size_t(s)]});
    else
      ranges.push_back({first_row, row, begin, end, {}});
  }
  call.sequences = ranges;
  if (requests("attn_weights") && activations_.capture && !on.memory && !some)
    for (const ops::AttentionRange& range : ranges) {
      const auto rows = [&](const Tensor& t) { return t.slice(0, range.begin, range.end); };
      activations_.name("attn_weights", ops::attention_weights(spec, rows(q), rows(pages.keys)));
    }
  return attend(spec, call, q, pages.keys, pages.values);
}

Tensor Pass::attend(const ops::AttentionSpec& spec, ops::AttentionCall call, const Tensor& q, const Tensor& k,
                    const Tensor& v) {
  ops::AttentionSpec own = spec;
  if (!random_.training) own.dropout = 0.0;
  if (own.dropout > 0) call.dropout_key = random_.key("attn_weights");
  call.first_token += random_.first_token;
  constexpr std::string_view result = "attn_dense", normalizers = "attn_dense.normalizers";
  ops::AttentionMemory memory{activations_.given(result), activations_.given(normalizers)};
  const bool keeps = activations_.keeps(result);
  if (keeps || memory.out.defined()) call.memory = &memory;
  const Tensor out = ops::attention(own, call, q, k, v, attention);
  if (keeps && memory.out.defined()) {
    activations_.keep(result, memory.out);
    activations_.keep(normalizers, memory.normalizers);
  }
  return out;
}

void Pass::finish() {
  for (auto& [name, on] : streams_)
    if (on.memory) on.memory->finish();
}

}  // namespace easydel::nn
