#include "easydel/nn/mla.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "easydel/nn/indexer.h"
#include "easydel/nn/pass_rows.h"
#include "easydel/nn/weight.h"
#include "easydel/ops/moe.h"

namespace easydel::nn {
namespace {

class Mla final : public Layer {
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
                {spec.bias, Split::input, spec.output_deviation, region_}) {
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
    const auto rotated = [&](const Tensor& t) {
      return spec_.rope ? ops::rope(t, pass.stream().rope_table(*spec_.rope)) : t;
    };
    Tensor low;
    if (q_a_) low = (*q_norm_)((*q_a_)(x, pass, "attn_query_a"));
    Tensor q = (*q_)(q_a_ ? low : x, pass, "attn_query").view({tokens, heads_, spec_.plain_dim + spec_.rope_dim});
    if (spec_.q_multiplier != 1.0) q = q * spec_.q_multiplier;
    const Tensor q_plain = q.narrow(2, 0, spec_.plain_dim);
    const Tensor q_rotated = rotated(q.narrow(2, spec_.plain_dim, spec_.rope_dim).contiguous());
    const Tensor both = kv_a_(x, pass, "attn_key_value");
    Tensor latent = kv_norm_(both.narrow(1, 0, spec_.kv_rank).contiguous());
    if (spec_.kv_multiplier != 1.0) latent = latent * spec_.kv_multiplier;
    const Tensor k_rotated = rotated(both.narrow(1, spec_.kv_rank, spec_.rope_dim).contiguous().unsqueeze(1));

    std::vector<Tensor> kept = {latent.unsqueeze(1), k_rotated};
    std::optional<Indexer::Query> query;
    if (indexer_) {
      kept.push_back(indexer_->keys(outside, pass).unsqueeze(1));
      query = indexer_->query(outside, low, pass);
    }
    const KeyRows rows(pass, layer_, spec_.cache_head, at::cat(kept, 2).squeeze(1));
    const std::vector<TokenSpan> spans = pass.stream().spans();
    std::vector<Tensor> parts;
    for (size_t i = 0, end; i < spans.size(); i = end) {
      const bool absorbs = is_absorbed(spans[i]);
      for (end = i + 1; end < spans.size() && is_absorbed(spans[end]) == absorbs;) ++end;
      const std::span<const TokenSpan> run(&spans[i], end - i);
      const auto part = [&](const Tensor& t) { return t.slice(0, run.front().begin, run.back().end); };
      if (absorbs)
        parts.push_back(absorbed(pass, rows, run, part(q_plain), part(q_rotated), query));
      else
        parts.push_back(expanded(pass, rows, run, part(q_plain), part(q_rotated), part(latent), part(k_rotated)));
    }
    const Tensor mixed = parts.size() == 1 ? parts[0] : at::cat(parts);
    return {output_(mixed.reshape({tokens, heads_ * spec_.v_dim}), pass, "attn_output"), {}};
  }

  CacheLayer cache() const override {
    // Latent vectors, rotated parts and keys of the indexer differ in size, so none shares its scales with another.
    int64_t group = std::gcd(spec_.kv_rank, spec_.rope_dim);
    if (indexer_) group = std::gcd(group, spec_.index_dim);
    return {.kv_heads = spec_.cache_heads, .k_dim = row_size(), .by_role = true, .key_group = group};
  }

  double mixing_flops(int64_t length) const override {
    double seen = double(length) / 2;
    if (chooses()) seen = std::min(seen, double(spec_.index_top));
    const double index = indexer_ ? double(spec_.index_heads * spec_.index_dim) * double(length) / 2 : 0.0;
    return 2.0 * (double(spec_.heads * (spec_.plain_dim + spec_.rope_dim + spec_.v_dim)) * seen + index);
  }

 private:
  Norm::Options norm_options() const { return {NormKind::rms, spec_.norm_epsilon, 0.0, false}; }
  LinearOptions by_head() const { return {false, Split::output, spec_.deviation, region_}; }
  // Attention's dropout counts the heads of all ranks.
  static Region region_of(const Scope& scope, const MlaSpec& spec) {
    return spec.dropout > 0 ? Region() : Region(scope.team(), {spec.heads});
  }
  // Whether tokens see only a choice of keys.
  bool chooses() const { return spec_.index_top > 0; }
  int64_t row_size() const { return spec_.kv_rank + spec_.rope_dim + (indexer_ ? spec_.index_dim : 0); }

  // Whether a span's tokens attend in the latent space instead of expanding latent vectors to keys and values:
  // generated tokens, and those of a prompt that is longer than the number of keys a token may see.
  bool is_absorbed(const TokenSpan& span) const {
    return !span.prompt || (chooses() && span.prompt_length > spec_.index_top);
  }

  // If a prompt was cut, the keys and values of its earlier tokens are expanded again. The bits of a row do not depend
  // on the other rows, so they are those of the whole prompt.
  Tensor expanded(Pass& pass, const KeyRows& rows, std::span<const TokenSpan> spans, const Tensor& q_plain,
                  const Tensor& q_rotated, const Tensor& own_latent, const Tensor& own_k_rotated) const {
    Tensor latent = own_latent, k_rotated = own_k_rotated;
    if (rows.rounded() || std::ranges::any_of(spans, [](const TokenSpan& span) { return span.position > 0; })) {
      const Tensor all = rows.up_to(spans);
      latent = all.narrow(1, 0, spec_.kv_rank).contiguous();
      k_rotated = all.narrow(1, spec_.kv_rank, spec_.rope_dim).unsqueeze(1);
    }
    const RowScope keys(pass.stream(), RowScope::Rows::keys, spans);
    const Tensor kv = kv_b_(latent, pass, "attn_value").view({latent.size(0), heads_, spec_.plain_dim + spec_.v_dim});
    const Tensor q = at::cat({q_plain, q_rotated}, 2);
    const Tensor k = at::cat({kv.narrow(2, 0, spec_.plain_dim), k_rotated.expand({-1, heads_, -1})}, 2);
    const Tensor v = kv.narrow(2, spec_.plain_dim, spec_.v_dim).contiguous();
    return rows.attend_expanded(attention_, spans, q, k, v);
  }

  Tensor absorbed(Pass& pass, const KeyRows& rows, std::span<const TokenSpan> spans, const Tensor& q_plain,
                  const Tensor& q_rotated, const std::optional<Indexer::Query>& query) const {
    const RowScope tokens(pass.stream(), RowScope::Rows::tokens, spans);
    const Tensor q = at::cat({each_head(q_plain, *key_weights_, pass), q_rotated}, 2);
    const int64_t width = spec_.kv_rank + spec_.rope_dim;
    if (!chooses()) return each_head(rows.attend(attention_, spans, q, width, spec_.kv_rank), *value_weights_, pass);
    // A layer that uses another's choice absorbs the same spans as that layer.
    std::vector<KeyChoice>& choices = pass.stream().choices(indexer_ ? layer_ : spec_.index_source);
    if (indexer_) {
      choices.resize(size_t(pass.stream().tokens()));
      for (const TokenSpan& span : spans) {
        const auto part = [&](const Tensor& t) { return t.slice(0, span.begin, span.end); };
        const Tensor keys = rows.up_to({&span, 1}).narrow(1, width, spec_.index_dim);
        std::ranges::move(indexer_->choose({part(query->q), part(query->weights)}, keys.detach(), rows.masked(span)),
                          choices.begin() + span.begin);
      }
    }
    return each_head(rows.attend(attention_, spans, q, width, spec_.kv_rank, choices), *value_weights_, pass);
  }

  // x [tokens, heads, in] -> [tokens, heads, out]: each head by its own weight.
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
  // kv_b's halves: the first projects queries to the latent space, the second latent vectors to values.
  std::shared_ptr<WeightStack> key_weights_, value_weights_;
};

}  // namespace

std::unique_ptr<Layer> build_mla(const Scope& block, const MlaSpec& spec, int64_t layer) {
  return std::make_unique<Mla>(block / spec.name, spec, layer);
}

}  // namespace easydel::nn
