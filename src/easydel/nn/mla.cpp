#include "easydel/nn/mla.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/nn/indexer.h"
#include "easydel/nn/weight.h"
#include "easydel/ops/moe.h"

namespace easydel::nn {
namespace {

// A range of sequences of a pass that are computed in one way.
struct Run {
  size_t begin, end;
  bool absorbed;
};

class Mla final : public Part {
 public:
  Mla(const Scope& scope, const MlaSpec& spec, int64_t layer)
      : spec_(spec),
        layer_(layer),
        region_(region_of(scope, spec)),
        heads_(spec.heads / region_.parts()),
        kv_a_(scope / "kv_a_proj_with_mqa", spec.size, spec.kv_rank + spec.rope_dim,
              {.bias = spec.bias, .deviation = spec.deviation}),
        kv_norm_(scope / "kv_a_layernorm", spec.kv_rank, norm_options()),
        kv_b_(scope / "kv_b_proj", spec.kv_rank, spec.heads * (spec.plain_dim + spec.v_dim), by_head()),
        output_(scope / "o_proj", spec.heads * spec.v_dim, spec.size,
                {spec.bias, Split::input, spec.output_deviation, false, region_}) {
    const int64_t queries = spec.heads * (spec.plain_dim + spec.rope_dim);
    if (spec.q_rank > 0) {
      q_a_.emplace(scope / "q_a_proj", spec.size, spec.q_rank,
                   LinearOptions{.bias = spec.bias, .deviation = spec.deviation});
      q_norm_.emplace(scope / "q_a_layernorm", spec.q_rank, norm_options());
      q_.emplace(scope / "q_b_proj", spec.q_rank, queries, by_head());
    } else {
      q_.emplace(scope / "q_proj", spec.size, queries, by_head());
    }
    if (spec.index_top > 0 && spec.index_source < 0) indexer_.emplace(scope / "indexer", spec);
    Weight& kv_b = *kv_b_.weight().entry().weight;
    key_weights_ = kv_b.by_head({heads_, 0, spec.plain_dim, true});
    value_weights_ = kv_b.by_head({heads_, spec.plain_dim, spec.v_dim, false});
    attention_.scale = spec.scale;
    attention_.dropout = spec.dropout;
  }

  LayerOutput forward(const Tensor& outside, Pass& pass) const override {
    const Tensor x = region_.enter(outside);
    const int64_t tokens = x.size(0);
    const auto turned = [&](const Tensor& t) { return spec_.rope ? ops::rope(t, pass.rope_table(*spec_.rope)) : t; };
    Tensor low;
    if (q_a_) low = (*q_norm_)((*q_a_)(x, pass, "attn_query_a"));
    Tensor q = (*q_)(q_a_ ? low : x, pass, "attn_query").view({tokens, heads_, spec_.plain_dim + spec_.rope_dim});
    if (spec_.q_multiplier != 1.0) q = q * spec_.q_multiplier;
    const Tensor q_plain = q.narrow(2, 0, spec_.plain_dim);
    const Tensor q_turned = turned(q.narrow(2, spec_.plain_dim, spec_.rope_dim).contiguous());
    const Tensor both = kv_a_(x, pass, "attn_key_value");
    Tensor latent = kv_norm_(both.narrow(1, 0, spec_.kv_rank).contiguous());
    if (spec_.kv_multiplier != 1.0) latent = latent * spec_.kv_multiplier;
    const Tensor k_turned = turned(both.narrow(1, spec_.kv_rank, spec_.rope_dim).contiguous().unsqueeze(1));

    std::vector<Tensor> kept = {latent.unsqueeze(1), k_turned};
    std::optional<Indexer::Query> query;
    if (indexer_) {
      kept.push_back(indexer_->keys(outside, pass).unsqueeze(1));
      query = indexer_->query(outside, low, pass);
    }
    const Tensor row = at::cat(kept, 2);
    const Stream& on = pass.stream();
    write(on, row);
    std::vector<Tensor> made;
    for (const Run& run : runs(on)) {
      const int64_t begin = on.cu_seqlens[run.begin], count = on.cu_seqlens[run.end] - begin;
      const auto part = [&](const Tensor& t) { return t.narrow(0, begin, count); };
      if (run.absorbed)
        made.push_back(absorbed(pass, run, part(q_plain), part(q_turned), row, query));
      else
        made.push_back(expanded(pass, run, part(q_plain), part(q_turned), part(latent), part(k_turned)));
    }
    const Tensor mixed = made.size() == 1 ? made[0] : at::cat(made);
    return {output_(mixed.reshape({tokens, heads_ * spec_.v_dim}), pass, "attn_output"), {}};
  }

  CacheLayer cache() const override { return {spec_.cache_heads, row_size(), 0, {}}; }

  double mixing_flops(int64_t length) const override {
    double seen = double(length) / 2;
    if (chooses()) seen = std::min(seen, double(spec_.index_top));
    const double index = indexer_ ? double(spec_.index_heads * spec_.index_dim) * double(length) / 2 : 0.0;
    return 2.0 * (double(spec_.heads * (spec_.plain_dim + spec_.rope_dim + spec_.v_dim)) * seen + index);
  }

 private:
  Norm::Options norm_options() const { return {NormKind::rms, spec_.norm_epsilon, 0.0, false}; }
  LinearOptions by_head() const { return {false, Split::output, spec_.deviation, false, region_}; }
  // Attention's dropout counts the heads of all ranks.
  static Region region_of(const Scope& scope, const MlaSpec& spec) {
    return spec.dropout > 0 ? Region() : Region(scope.team(), {spec.heads});
  }
  // Whether its tokens see a choice of keys.
  bool chooses() const { return spec_.index_top > 0; }
  int64_t row_size() const { return spec_.kv_rank + spec_.rope_dim + (indexer_ ? spec_.index_dim : 0); }

  // This attention's rows of the cache: [slots * room, 1, row size].
  Tensor cache_rows(const Stream& on) const { return on.cache->keys(layer_).narrow(1, spec_.cache_head, 1); }

  void write(const Stream& on, const Tensor& row) const {
    if (!on.cache) return;
    const Tensor rows = cache_rows(on);
    for (size_t s = 0; s < size_t(on.sequences()); ++s) {
      const int64_t begin = on.cu_seqlens[s], count = on.cu_seqlens[s + 1] - begin;
      check(cached(on, s) + count <= on.cache->room(), "cache: ", count, " tokens more than its slots hold");
      rows.narrow(0, on.cache_slots[s] * on.cache->room() + cached(on, s), count).copy_(row.narrow(0, begin, count));
    }
  }

  int64_t cached(const Stream& on, size_t sequence) const {
    return on.cache ? on.cache->length(on.cache_slots[sequence]) : 0;
  }

  // What begins here makes keys and values of its own tokens; what goes on works on the cache's short vectors, and so
  // does a sequence whose tokens see a choice of keys.
  std::vector<Run> runs(const Stream& on) const {
    std::vector<Run> out;
    for (size_t s = 0; s < size_t(on.sequences()); ++s) {
      const int64_t before = cached(on, s), length = before + on.cu_seqlens[s + 1] - on.cu_seqlens[s];
      const bool absorbed = before > 0 || (chooses() && length > spec_.index_top);
      if (!out.empty() && out.back().absorbed == absorbed)
        out.back().end = s + 1;
      else
        out.push_back({s, s + 1, absorbed});
    }
    return out;
  }

  Tensor expanded(Pass& pass, const Run& run, const Tensor& q_plain, const Tensor& q_turned, const Tensor& latent,
                  const Tensor& k_turned) const {
    const Stream& on = pass.stream();
    const Tensor kv = kv_b_(latent, pass, "attn_value").view({latent.size(0), heads_, spec_.plain_dim + spec_.v_dim});
    const Tensor q = at::cat({q_plain, q_turned}, 2);
    const Tensor k = at::cat({kv.narrow(2, 0, spec_.plain_dim), k_turned.expand({-1, heads_, -1})}, 2);
    const Tensor v = kv.narrow(2, spec_.plain_dim, spec_.v_dim).contiguous();
    const int64_t first = on.cu_seqlens[run.begin];
    std::vector<ops::AttentionRange> ranges;
    for (size_t s = run.begin; s < run.end; ++s) {
      const int64_t begin = on.cu_seqlens[s] - first, end = on.cu_seqlens[s + 1] - first;
      ranges.push_back({begin, end, begin, end});
    }
    ops::AttentionCall call;
    call.sequences = ranges;
    if (on.hidden.defined()) call.hidden = on.hidden.narrow(0, first, latent.size(0));
    return attend(pass, call, first, q, k, v);
  }

  Tensor absorbed(Pass& pass, const Run& run, const Tensor& q_plain, const Tensor& q_turned, const Tensor& row,
                  const std::optional<Indexer::Query>& query) const {
    const Stream& on = pass.stream();
    const Tensor q = at::cat({each_head(q_plain, *key_weights_, pass), q_turned}, 2);
    const Tensor all = on.cache ? cache_rows(on) : row;
    const int64_t width = spec_.kv_rank + spec_.rope_dim, first = on.cu_seqlens[run.begin];
    std::vector<ops::AttentionRange> ranges;
    // Of tokens that see a choice: the rows of `all`, and which of those are a blind token's.
    std::vector<Tensor> seen, blind;
    bool any_blind = false;
    int64_t chosen = 0;
    // A layer that takes another's choice finds that layer's runs to be the same.
    std::vector<KeyChoice>* choices = nullptr;
    if (chooses()) choices = &pass.choices(indexer_ ? layer_ : spec_.index_source);
    if (indexer_) choices->resize(size_t(on.tokens()));
    ops::AttentionCall call;
    call.cached = on.cache != nullptr;
    for (size_t s = run.begin; s < run.end; ++s) {
      const int64_t begin = on.cu_seqlens[s] - first, end = on.cu_seqlens[s + 1] - first;
      const int64_t key_begin = on.cache ? on.cache_slots[s] * on.cache->room() : on.cu_seqlens[s];
      const int64_t key_end = key_begin + cached(on, s) + end - begin;
      if (!choices) {
        ranges.push_back({begin, end, key_begin, key_end});
        continue;
      }
      if (indexer_) {
        const auto part = [&](const Tensor& t) { return t.narrow(0, first + begin, end - begin); };
        const Tensor hidden = on.hidden.defined() ? on.hidden.slice(0, key_begin, key_end) : Tensor();
        const Tensor keys = all.slice(0, key_begin, key_end).select(1, 0).narrow(1, width, spec_.index_dim);
        std::ranges::move(indexer_->choose({part(query->q), part(query->weights)}, keys.detach(), hidden),
                          choices->begin() + first + begin);
      }
      for (int64_t token = begin; token < end; ++token) {
        const KeyChoice& choice = choices->at(size_t(first + token));
        ranges.push_back({token, token + 1, chosen, chosen + choice.keys.numel()});
        chosen += choice.keys.numel();
        seen.push_back(choice.keys + key_begin);
        blind.push_back(at::full(choice.keys.sizes(), choice.blind, choice.keys.options().dtype(at::kBool)));
        any_blind = any_blind || choice.blind;
      }
    }
    Tensor keys = all.narrow(2, 0, width);
    if (choices) {
      keys = keys.index_select(0, at::cat(seen));
      call.cached = false;
      if (any_blind) call.hidden = at::cat(blind);
    } else if (!on.cache) {
      call.hidden = on.hidden;
    }
    call.sequences = ranges;
    const Tensor mixed = attend(pass, call, first, q, keys, keys.narrow(2, 0, spec_.kv_rank));
    return each_head(mixed, *value_weights_, pass);
  }

  Tensor attend(Pass& pass, ops::AttentionCall& call, int64_t first, const Tensor& q, const Tensor& k,
                const Tensor& v) const {
    ops::AttentionSpec wanted = attention_;
    wanted.v_dim = v.size(2);
    if (!pass.training) wanted.dropout = 0.0;
    call.first_token = pass.first_token + first;
    if (wanted.dropout > 0) call.dropout_key = pass.dropout_key("attn_weights");
    return pass.attention_of(wanted, call, q, k, v);
  }

  // x [tokens, heads, in] -> [tokens, heads, out]: each head by its own weight, a row by itself.
  Tensor each_head(const Tensor& x, WeightStack& weights, Pass& pass) const {
    const int64_t tokens = x.size(0);
    std::vector<int64_t> begin;
    for (int64_t head = 0; head <= heads_; ++head) begin.push_back(head * tokens);
    const Tensor rows = x.transpose(0, 1).reshape({heads_ * tokens, x.size(2)});
    return weights.product(rows, begin, {}, pass).view({heads_, tokens, -1}).transpose(0, 1);
  }

  MlaSpec spec_;
  int64_t layer_;
  Region region_;
  int64_t heads_;  // of this rank
  ops::AttentionSpec attention_;
  std::optional<Linear> q_a_, q_;
  std::optional<Norm> q_norm_;
  Linear kv_a_;
  Norm kv_norm_;
  Linear kv_b_, output_;
  std::optional<Indexer> indexer_;
  // kv_b's halves: the first takes queries to short vectors, the second short vectors to values.
  std::shared_ptr<WeightStack> key_weights_, value_weights_;
};

}  // namespace

std::unique_ptr<Part> build_mla(const Scope& block, const MlaSpec& spec, int64_t layer) {
  return std::make_unique<Mla>(block / spec.name, spec, layer);
}

}  // namespace easydel::nn
