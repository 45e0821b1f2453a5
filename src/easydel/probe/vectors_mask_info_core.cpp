// Recorded cases of masks: mask_info. A case's "op" lists the calls, joined by dots.
#include "easydel/base/error.h"
#include "easydel/ops/mask_info.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

using ops::MaskInfo, ops::SegmentIds;

SegmentIds ids_of(const Value& rows) {
  SegmentIds out;
  for (const Value& row : rows.items) {
    out.emplace_back();
    for (const int64_t id : integers_of(row)) out.back().push_back(int32_t(id));
  }
  return out;
}

std::vector<std::vector<uint8_t>> bits_of(const Value& rows) {
  std::vector<std::vector<uint8_t>> out;
  for (const Value& row : rows.items) {
    out.emplace_back();
    for (const int64_t bit : integers_of(row)) out.back().push_back(bit == 1);
  }
  return out;
}

size_t depth_of(const Value& value) {
  return value.is_list() && !value.items.empty() ? 1 + depth_of(value.items[0]) : value.is_list();
}

// [batch, positions], or pairs as [batch, queries, keys] or [batch, 1, queries, keys].
MaskInfo from_attention_mask(const VectorCase& vector) {
  const Value& mask = needed(vector, "attention_mask");
  const size_t depth = depth_of(mask);
  if (depth < 2 || depth > 4)
    refuse("attention_mask", str("has ", depth, " dimensions"),
           "give [batch, positions], [batch, queries, keys] or [batch, heads, queries, keys]");
  if (depth == 2) {
    const Value* const valid = vector.body.find("mask_is_valid");
    return MaskInfo::from_attention_mask(bits_of(mask), !valid || valid->as_bool().value_or(true));
  }
  std::vector<std::vector<std::vector<uint8_t>>> pairs;
  for (const Value& row : mask.items) {
    if (depth == 4 && row.items.size() != 1) throw VectorNotBuilt("a mask for each head");
    pairs.push_back(bits_of(depth == 4 ? row.items[0] : row));
  }
  return MaskInfo::from_pairs(std::move(pairs));
}

MaskInfo apply(const MaskInfo& mask, const std::string& step, const VectorCase& vector) {
  if (step == "apply_causal") {
    const Value* const offset = vector.body.find("offset");
    return mask.apply_causal(offset ? offset->as_int().value_or(0) : 0);
  }
  if (step == "apply_sliding_window") {
    const Value& window = needed(vector, "window");
    const std::vector<int64_t> sides =
        window.is_list() ? integers_of(window) : std::vector<int64_t>(2, window.as_int().value_or(0));
    if (sides.size() != 2)
      refuse("window", to_json(window) + " is not a window", "give a number, or the number of tokens before and after");
    return mask.apply_sliding_window(sides[0], sides[1]);
  }
  if (step == "apply_chunked") return mask.apply_chunked(needed(vector, "chunk").as_int().value_or(0));
  if (step == "apply_token_type_ids") {
    const std::string &combine = needed(vector, "combine").scalar, &zero = needed(vector, "zero_policy").scalar;
    using Combine = MaskInfo::Combine;
    using Zero = MaskInfo::ZeroPolicy;
    return mask.apply_token_type_ids(ids_of(needed(vector, "token_type_ids")),
                                     combine == "union"       ? Combine::unite
                                     : combine == "intersect" ? Combine::intersect
                                                              : Combine::replace,
                                     zero == "q"      ? Zero::q
                                     : zero == "kv"   ? Zero::kv
                                     : zero == "both" ? Zero::both
                                                      : Zero::none);
  }
  if (step == "apply_kv_lengths")
    return mask.apply_kv_lengths(integers_of(needed(vector, "kv_lengths")), std::nullopt, std::nullopt);
  if (step == "apply_kv_lengths(q_len=1)")
    return mask.apply_kv_lengths(integers_of(needed(vector, "kv_lengths")), 1, std::nullopt);
  throw VectorNotBuilt("the mask's " + step);
}

Value rows_of(const SegmentIds& ids) {
  Value out = Value::list();
  for (const auto& row : ids) out.items.push_back(list_of(std::vector<int64_t>(row.begin(), row.end())));
  return out;
}

// A value for every pair, as [batch][1][queries][keys].
Value pairs_of(const MaskInfo& mask, const std::function<Value(int64_t, int64_t, int64_t)>& one) {
  Value out = Value::list();
  for (int64_t b = 0; b < mask.batch(); ++b) {
    Value row = Value::list();
    for (int64_t q = 0; q < mask.queries(); ++q) {
      Value& keys = row.items.emplace_back(Value::list());
      for (int64_t k = 0; k < mask.keys(); ++k) keys.items.push_back(one(b, q, k));
    }
    out.items.emplace_back(Value::list()).items.push_back(std::move(row));
  }
  return out;
}

Value pair(Value a, Value b) {
  Value out = Value::list();
  out.items = {std::move(a), std::move(b)};
  return out;
}

Value answer_mask(const VectorCase& vector, const VectorFile&) {
  const std::string& what = needed(vector, "op").scalar;
  if (what == "from_cu_seqlens")
    return rows_of(MaskInfo::from_cu_seqlens(integers_of(needed(vector, "cu_seqlens_q")),
                                             needed(vector, "max_q_len").as_int().value_or(0))
                       .q_segment_ids());
  const std::string first = what.substr(0, what.find('.'));
  MaskInfo mask;
  if (first == "from_segments") {
    const Value* const keys = vector.body.find("kv_segment_ids");
    mask = MaskInfo::from_segments(ids_of(needed(vector, "q_segment_ids")),
                                   keys ? std::optional(ids_of(*keys)) : std::nullopt);
  } else {
    mask = from_attention_mask(vector);
    if (what == "q_lens,kv_lens") return pair(list_of(mask.q_lengths()), list_of(mask.kv_lengths()));
    if (first != "from_attention_mask") throw VectorNotBuilt("the mask's " + first);
  }
  for (size_t at = first.size(); at < what.size();) {
    const size_t end = what.find('.', at + 1);
    const std::string step = what.substr(at + 1, end - at - 1);
    at = std::min(end, what.size());
    if (step == "get_or_compute_positions") return pair(rows_of(mask.q_positions()), rows_of(mask.kv_positions()));
    if (step == "get_or_compute_qkv_cu_seqlens(max_segments=4)")
      return pair(list_of(mask.cu_seqlens(4)), list_of(mask.cu_seqlens(4, true)));
    if (step == "create_bias(float32)") {
      const Tensor bias = mask.bias(at::kFloat);
      const float* at_bias = bias.const_data_ptr<float>();
      return pairs_of(mask, [&](int64_t, int64_t, int64_t) { return Value::number(*at_bias++); });
    }
    mask = apply(mask, step, vector);
  }
  Value out = Value::map();
  out.set("mask",
          pairs_of(mask, [&](int64_t b, int64_t q, int64_t k) { return Value::integer(mask.allows(b, q, k)); }));
  out.set("q_segment_ids", rows_of(mask.q_segment_ids()));
  out.set("kv_segment_ids", rows_of(mask.kv_segment_ids()));
  return out;
}

}  // namespace

VectorKind mask_info_vectors() { return {.name = "mask_info", .answer = answer_mask}; }

}  // namespace easydel::probe
