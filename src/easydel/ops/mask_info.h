// Which query may see which key: causal, sliding, chunked, by segment and by token type, like ejkernel's MaskInfo. A
// mask is a list of rules; the queries x keys table is computed only on request.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "easydel/tensor/random.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

using SegmentIds = std::vector<std::vector<int32_t>>;  // [batch][positions]; below 0: padding

class MaskInfo {
 public:
  enum class Combine : uint8_t { unite, intersect, replace };
  // Whose token type 0 belongs to no group: that of queries, of keys, of both, or of none (then zeros are a group,
  // too).
  enum class ZeroPolicy : uint8_t { q, kv, both, none };

  // Every query of the row sees every key.
  static MaskInfo full(int64_t batch, int64_t queries, int64_t keys);
  // valid [batch][positions]: queries and keys that are not padding see each other; `valid_is` false: the inverse.
  static MaskInfo from_attention_mask(const std::vector<std::vector<uint8_t>>& valid, bool valid_is = true);
  // allowed [batch][queries][keys]. Throws UserError if rows have different lengths.
  static MaskInfo from_pairs(std::vector<std::vector<std::vector<uint8_t>>> allowed);
  // Positions see each other if their ids are equal. Without ids for the keys, those of the queries are used.
  static MaskInfo from_segments(SegmentIds queries, std::optional<SegmentIds> keys = std::nullopt);
  // starts_and_ends: begin and end of each row's only sequence, out of `length` positions. Throws UserError for an odd
  // number of them, or one outside.
  static MaskInfo from_cu_seqlens(const std::vector<int64_t>& starts_and_ends, int64_t length);

  MaskInfo apply_causal(int64_t offset = 0) const;                   // keys up to query + offset
  MaskInfo apply_sliding_window(int64_t left, int64_t right) const;  // keys from query - left to query + right
  MaskInfo apply_chunked(int64_t chunk) const;                       // causal within chunks, which become the segments
  MaskInfo apply_token_type_ids(const SegmentIds& types, Combine combine, ZeroPolicy zero) const;
  // Row b has `lengths[b]` keys; its queries are the last `queries` before `end` (decoding). Throws UserError without
  // lengths.
  MaskInfo apply_kv_lengths(const std::vector<int64_t>& lengths, std::optional<int64_t> queries,
                            std::optional<int64_t> end) const;

  int64_t batch() const { return int64_t(q_segments_.size()); }
  int64_t queries() const { return batch() ? int64_t(q_segments_[0].size()) : 0; }
  int64_t keys() const { return batch() ? int64_t(kv_segments_[0].size()) : 0; }
  bool allows(int64_t row, int64_t query, int64_t key) const;
  const SegmentIds& q_segment_ids() const { return q_segments_; }
  const SegmentIds& kv_segment_ids() const { return kv_segments_; }

  Tensor table() const;                     // bool [batch, 1, queries, keys]
  Tensor bias(at::ScalarType dtype) const;  // 0 if allowed, else the dtype's lowest number
  // Positions count from the beginning of their run of one segment; padding is -1 for queries, 2^31 - 1 for keys.
  SegmentIds q_positions() const;
  SegmentIds kv_positions() const;
  // Cumulative number of tokens of segments 0, 1, ... over all rows: `most` + 1 numbers.
  std::vector<int64_t> cu_seqlens(int64_t most, bool of_keys = false) const;
  std::vector<int64_t> q_lengths() const;  // without padding, per row
  std::vector<int64_t> kv_lengths() const;

 private:
  enum class Kind : uint8_t { segments, pairs, causal, window, chunk, types, lengths };
  struct Rule {
    Kind kind;
    int64_t a = 0, b = 0;
    Combine combine = Combine::intersect;
    ZeroPolicy zero = ZeroPolicy::q;
    SegmentIds q = {}, kv = {};  // segments and types when the rule was added
    std::vector<std::vector<std::vector<uint8_t>>> pairs = {};
    std::vector<int64_t> lengths = {};
  };
  bool holds(const Rule& rule, int64_t row, int64_t query, int64_t key) const;
  MaskInfo with(Rule rule) const;
  SegmentIds q_segments_, kv_segments_;
  std::vector<Rule> rules_;
};

// Forgetful causal masking (arXiv 2210.13432): for each row a share between min_ratio and max_ratio of the keys is
// masked for each query, never the first key. bool [batch, 1, length, length], a function of `seed` only, not combined
// with the causal mask. nullopt if max_ratio is 0 or `deterministic` is true.
std::optional<Tensor> fcm_mask(int64_t batch, int64_t length, double min_ratio, double max_ratio, bool deterministic,
                               uint64_t seed);

}  // namespace easydel::ops
