// Mask rules, evaluated pair by pair.
#include "easydel/ops/mask_info.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "easydel/base/error.h"

namespace easydel::ops {
namespace {

constexpr int32_t padding_id = -1;

void check_rows(const SegmentIds& ids, const char* what) {
  for (const auto& row : ids)
    if (row.size() != ids[0].size())
      refuse("mask", str(what, " have rows of ", ids[0].size(), " and of ", row.size()), "rows are equally long");
}

SegmentIds positions_of(const SegmentIds& segments, int32_t padding) {
  SegmentIds out = segments;
  for (auto& row : out) {
    int32_t previous = padding_id, at = 0;
    for (int32_t& id : row) {
      at = id == previous ? at + 1 : 0;
      previous = id;
      id = id < 0 ? padding : at;
    }
  }
  return out;
}

std::vector<int64_t> lengths_of(const SegmentIds& segments) {
  std::vector<int64_t> out;
  for (const auto& row : segments) out.push_back(std::ranges::count_if(row, [](int32_t id) { return id >= 0; }));
  return out;
}

}  // namespace

MaskInfo MaskInfo::full(int64_t batch, int64_t queries, int64_t keys) {
  return from_segments(SegmentIds(batch, std::vector<int32_t>(queries, 0)),
                       SegmentIds(batch, std::vector<int32_t>(keys, 0)));
}

MaskInfo MaskInfo::from_attention_mask(const std::vector<std::vector<uint8_t>>& valid, bool valid_is) {
  SegmentIds ids;
  for (const auto& row : valid) {
    ids.emplace_back();
    for (const uint8_t one : row) ids.back().push_back((one != 0) == valid_is ? 0 : padding_id);
  }
  return from_segments(std::move(ids));
}

MaskInfo MaskInfo::from_segments(SegmentIds queries, std::optional<SegmentIds> keys) {
  MaskInfo out;
  out.q_segments_ = std::move(queries);
  out.kv_segments_ = keys ? std::move(*keys) : out.q_segments_;
  check_rows(out.q_segments_, "queries");
  check_rows(out.kv_segments_, "keys");
  if (out.q_segments_.size() != out.kv_segments_.size())
    refuse("mask", str("queries have ", out.q_segments_.size(), " rows, keys ", out.kv_segments_.size()),
           "give ids for the same rows");
  return out.with({.kind = Kind::segments, .q = out.q_segments_, .kv = out.kv_segments_});
}

MaskInfo MaskInfo::from_pairs(std::vector<std::vector<std::vector<uint8_t>>> allowed) {
  MaskInfo out;
  for (const auto& row : allowed) {
    auto& q = out.q_segments_.emplace_back(row.size(), padding_id);
    auto& kv = out.kv_segments_.emplace_back(row.empty() ? 0 : row[0].size(), padding_id);
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].size() != kv.size())
        refuse("mask", str("a query has ", row[i].size(), " keys, another ", kv.size()), "rows are equally long");
      for (size_t k = 0; k < kv.size(); ++k)
        if (row[i][k]) q[i] = kv[k] = 0;  // a query that sees, or a key that is seen, is not padding
    }
  }
  check_rows(out.q_segments_, "queries");
  check_rows(out.kv_segments_, "keys");
  return out.with({.kind = Kind::pairs, .pairs = std::move(allowed)});
}

MaskInfo MaskInfo::from_cu_seqlens(const std::vector<int64_t>& starts_and_ends, int64_t length) {
  if (starts_and_ends.size() % 2 != 0)
    refuse("mask", str("cu_seqlens must have even length (batch*2), got ", starts_and_ends.size()),
           "give for each row where it begins and ends");
  SegmentIds ids;
  for (size_t i = 0; i < starts_and_ends.size(); i += 2) {
    const int64_t begin = starts_and_ends[i], end = starts_and_ends[i + 1];
    if (begin < 0 || end < begin || end > length)
      refuse("mask", str("a sequence from ", begin, " to ", end, " of ", length, " positions"),
             "begin and end lie within the row");
    auto& row = ids.emplace_back(length, padding_id);
    std::fill(row.begin() + begin, row.begin() + end, 0);
  }
  return from_segments(std::move(ids));
}

MaskInfo MaskInfo::with(Rule rule) const {
  MaskInfo out = *this;
  out.rules_.push_back(std::move(rule));
  return out;
}

MaskInfo MaskInfo::apply_causal(int64_t offset) const { return with({.kind = Kind::causal, .a = offset}); }

MaskInfo MaskInfo::apply_sliding_window(int64_t left, int64_t right) const {
  return with({.kind = Kind::window, .a = left, .b = right});
}

MaskInfo MaskInfo::apply_chunked(int64_t chunk) const {
  if (chunk < 1) refuse("mask", str("chunks of ", chunk), "a chunk has at least one position");
  MaskInfo out = with({.kind = Kind::chunk, .a = chunk});
  for (SegmentIds* ids : {&out.q_segments_, &out.kv_segments_})
    for (auto& row : *ids)
      for (size_t i = 0; i < row.size(); ++i)
        if (row[i] >= 0) row[i] = int32_t(int64_t(i) / chunk + 1);
  return out;
}

MaskInfo MaskInfo::apply_token_type_ids(const SegmentIds& types, Combine combine, ZeroPolicy zero) const {
  if (int64_t(types.size()) != batch() || (batch() && (int64_t(types[0].size()) != queries() || queries() != keys())))
    refuse("mask", "token types are not as many as positions", "give one type for each position of each row");
  check_rows(types, "token types");
  MaskInfo out = with({.kind = Kind::types, .combine = combine, .zero = zero, .q = q_segments_, .kv = types});
  if (combine == Combine::unite) return out;
  for (SegmentIds* ids : {&out.q_segments_, &out.kv_segments_})
    for (size_t row = 0; row < ids->size(); ++row)
      for (size_t i = 0; i < (*ids)[row].size(); ++i)
        (*ids)[row][i] = types[row][i] == 0 || (*ids)[row][i] < 0 ? padding_id : types[row][i];
  return out;
}

MaskInfo MaskInfo::apply_kv_lengths(const std::vector<int64_t>& lengths, std::optional<int64_t> queries,
                                    std::optional<int64_t> end) const {
  if (!queries) refuse("mask", "q_len must be provided", "say how many queries each row has");
  if (!end)
    refuse("mask", "end_index must be provided when slicing queries", "say before which position the queries end");
  if (int64_t(lengths.size()) != batch())
    refuse("mask", str(lengths.size(), " lengths for ", batch(), " rows"), "give one for each row");
  if (*queries < 1 || *queries > *end || *end > this->queries())
    refuse("mask", str(*queries, " queries before position ", *end, " of ", this->queries()),
           "the queries lie within the row");
  MaskInfo out = with({.kind = Kind::lengths, .a = *end - *queries, .lengths = lengths});
  for (auto& row : out.q_segments_) row = std::vector<int32_t>(row.begin() + (*end - *queries), row.begin() + *end);
  for (size_t b = 0; b < lengths.size(); ++b)
    for (size_t k = 0; k < out.kv_segments_[b].size(); ++k)
      if (int64_t(k) >= lengths[b]) out.kv_segments_[b][k] = padding_id;
  return out;
}

bool MaskInfo::holds(const Rule& rule, int64_t row, int64_t query, int64_t key) const {
  switch (rule.kind) {
    case Kind::segments:
      return rule.q[row][query] >= 0 && rule.q[row][query] == rule.kv[row][key];
    case Kind::pairs:
      return rule.pairs[row][query][key] != 0;
    case Kind::causal:
      return key <= query + rule.a;
    case Kind::window:
      return key >= query - rule.a && key <= query + rule.b;
    case Kind::chunk:
      return query / rule.a == key / rule.a && key <= query;
    case Kind::lengths:
      return key < rule.lengths[row];
    case Kind::types: {
      const int32_t a = rule.kv[row][query], b = rule.kv[row][key];
      if (a != b || rule.q[row][query] < 0 || rule.q[row][key] < 0) return false;
      return a != 0 || rule.zero == ZeroPolicy::none;  // the types are equal, so it does not matter whose zeros count
    }
  }
  throw Bug("a rule of masks without a meaning");
}

bool MaskInfo::allows(int64_t row, int64_t query, int64_t key) const {
  // Sliced queries count from the first of them.
  for (const Rule& rule : rules_)
    if (rule.kind == Kind::lengths) query += rule.a;
  bool allowed = true;
  for (const Rule& rule : rules_) {
    const bool one = holds(rule, row, query, key);
    const Combine combine = rule.kind == Kind::types ? rule.combine : Combine::intersect;
    allowed = combine == Combine::unite ? allowed || one : combine == Combine::replace ? one : allowed && one;
  }
  return allowed;
}

Tensor MaskInfo::table() const {
  Tensor out = at::empty({batch(), 1, queries(), keys()}, at::TensorOptions().dtype(at::kBool));
  bool* at = out.mutable_data_ptr<bool>();
  for (int64_t b = 0; b < batch(); ++b)
    for (int64_t q = 0; q < queries(); ++q)
      for (int64_t k = 0; k < keys(); ++k) *at++ = allows(b, q, k);
  return out;
}

Tensor MaskInfo::bias(at::ScalarType dtype) const {
  const Tensor allowed = table();
  const double lowest = dtype == at::kDouble     ? std::numeric_limits<double>::lowest()
                        : dtype == at::kHalf     ? -65504.0
                        : dtype == at::kBFloat16 ? -3.3895313892515355e38
                                                 : double(std::numeric_limits<float>::lowest());
  const auto options = at::TensorOptions().dtype(dtype);
  return at::where(allowed, at::zeros({}, options), at::full({}, lowest, options));
}

SegmentIds MaskInfo::q_positions() const { return positions_of(q_segments_, -1); }
SegmentIds MaskInfo::kv_positions() const { return positions_of(kv_segments_, std::numeric_limits<int32_t>::max()); }

std::vector<int64_t> MaskInfo::cu_seqlens(int64_t most, bool of_keys) const {
  std::vector<int64_t> out(most + 1, 0);
  for (const auto& row : of_keys ? kv_segments_ : q_segments_)
    for (const int32_t id : row)
      if (id >= 0 && id < most) ++out[id + 1];
  for (int64_t i = 0; i < most; ++i) out[i + 1] += out[i];
  return out;
}

std::optional<Tensor> fcm_mask(int64_t batch, int64_t length, double min_ratio, double max_ratio, bool deterministic,
                               uint64_t seed) {
  if (deterministic || max_ratio <= 0) return std::nullopt;
  if (min_ratio < 0 || min_ratio > max_ratio || max_ratio > 1)
    refuse("fcm_min_ratio", str(min_ratio, " to ", max_ratio, " is not a range within 0 to 1"),
           "0 <= fcm_min_ratio <= fcm_max_ratio <= 1");
  const tensor::Key ratios = tensor::key_of(seed, "fcm ratio"), keys = tensor::key_of(seed, "fcm");
  Tensor out = at::empty({batch, 1, length, length}, at::TensorOptions().dtype(at::kBool));
  bool* at = out.mutable_data_ptr<bool>();
  for (int64_t b = 0; b < batch; ++b) {
    const double ratio = min_ratio + (max_ratio - min_ratio) * tensor::uniform(tensor::philox(ratios, b)[0]);
    for (int64_t q = 0; q < length; ++q)
      for (int64_t k = 0; k < length; ++k)
        *at++ = k == 0 || tensor::uniform(tensor::philox(keys, q * length + k, b)[0]) > ratio;
  }
  return out;
}

std::vector<int64_t> MaskInfo::q_lengths() const { return lengths_of(q_segments_); }
std::vector<int64_t> MaskInfo::kv_lengths() const { return lengths_of(kv_segments_); }

}  // namespace easydel::ops
