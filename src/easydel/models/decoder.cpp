#include "easydel/models/decoder.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/nn/cache.h"

namespace easydel::models {
namespace {

using nn::Initial;
using nn::Pass;
using nn::Scope;
using nn::Split;

class Decoder final : public Model {
 public:
  Decoder(DecoderSpec spec, nn::Building& building) : spec_(std::move(spec)), compute_(building.compute) {
    spec_.names.base = building.head.stack_name(spec_.names.base);
    if (building.both_sides && spec_.causal) see_both_sides();
    const Scope root(building), base = root / spec_.names.base;
    const int64_t width = head_width();
    embedding_.emplace(base / spec_.names.embedding, spec_.vocabulary, width, spec_.deviation, Split::vocabulary,
                       spec_.padding);
    if (spec_.learned_positions)
      positions_.emplace(base / spec_.names.positions, spec_.max_positions + spec_.position_offset, spec_.hidden,
                         spec_.deviation, Split::none, spec_.positions_skip_id < 0 ? -1 : spec_.position_offset - 1);
    if (spec_.token_types > 0)
      token_types_.emplace(base / spec_.names.token_types, spec_.token_types, spec_.hidden, spec_.deviation,
                           Split::none);
    if (width != spec_.hidden) {
      project_in_.emplace(base / "project_in", width, spec_.hidden, nn::LinearOptions{.deviation = spec_.deviation});
      project_out_.emplace(base / "project_out", spec_.hidden, width, nn::LinearOptions{.deviation = spec_.deviation});
    }
    if (!spec_.names.embedding_norm.empty())
      embedding_norm_.emplace(base / spec_.names.embedding_norm, spec_.hidden, spec_.embedding_norm);
    if (spec_.ends) ends_ = spec_.ends(base);
    for (size_t i = 0; i < spec_.layers.size(); ++i) {
      const Scope scope = (base / spec_.names.layers / int64_t(i)).unit(int(i));
      const auto& build = spec_.layers[i].block;
      const auto as_spec_says = [&](const Scope& block, int64_t index) { return build_block(block, spec_, index); };
      blocks_.emplace_back(scope, build ? build : as_spec_says, int64_t(i));
    }
    if (!spec_.names.norm.empty())
      norm_.emplace(base / spec_.names.norm, spec_.hidden, spec_.last_norm.value_or(spec_.norm));
    build_head(root, building.head);
  }

  Outputs forward(const Inputs& inputs, Pass& pass) const override {
    const auto& stream = pass.stream();
    check(inputs.tokens.dim() == 1 && inputs.tokens.size(0) == stream.tokens(), "forward: ", inputs.tokens.sizes(),
          " tokens, the pass has ", stream.tokens());
    if (pass.attention == "auto") pass.attention = attention();
    Tensor x = embed(inputs, pass);
    if (ends_) x = ends_->enter(inputs.tokens, x, pass);
    Outputs out;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (pass.leaves_out(blocks_[i].path, spec_.layer_dropout)) continue;
      const bool last = i + 1 == blocks_.size() && !ends_;
      nn::LayerOutput made = (last ? nn::run_layer_wanted : nn::run_layer)(pass, blocks_[i], x);
      x = made.x;
      for (auto& [name, extra] : made.extras) out.extras.emplace(str(name, ".", i), std::move(extra));
    }
    if (ends_) x = pass.wanted(ends_->leave(x, pass));
    if (norm_) x = pass.name(str(spec_.names.base, spec_.names.base.empty() ? "" : ".", spec_.names.norm), (*norm_)(x));
    out.hidden = project_out_ ? (*project_out_)(x, pass, "project_out") : x;
    pass.finish();
    return out;
  }

  const nn::Head& head() const override {
    if (!head_)
      refuse("model", str("it is for ", name_of(task()), ": it has no language head"),
             "set model.task to causal-language-model");
    return *head_;
  }
  const nn::ClassHead* class_head() const override { return class_head_ ? &*class_head_ : nullptr; }
  std::optional<RouterLoss> router_loss() const override { return spec_.router_loss; }
  bool causal() const override { return spec_.causal; }
  int64_t layers() const override { return int64_t(blocks_.size()); }
  int64_t vocabulary() const override { return spec_.vocabulary; }
  int64_t max_positions() const override { return spec_.max_positions; }
  int64_t restart_length() const override { return spec_.restart_length; }

  std::unique_ptr<nn::Cache> make_cache(int64_t slots, int64_t length) const override {
    if (!spec_.causal)
      refuse("model", "its tokens see both sides: it does not generate text", "use a causal language model");
    nn::CacheShape shape{{}, compute_, embedding_->weight().entry().shard.device()};
    for (const auto& block : blocks_) shape.layers.push_back(block.layer->cache());
    return std::make_unique<nn::Cache>(shape, slots, length);
  }

  double training_flops_per_token(int64_t length) const override {
    double weights = head_ ? double(spec_.vocabulary) * double(head_width()) : 0.0, mixing = 0;
    for (const nn::Entry& entry : parameters().entries())
      if (entry.unit >= 0) weights += double(entry.elements());
    for (const auto& block : blocks_) {
      weights -= block.layer->idle_elements();
      mixing += block.layer->mixing_flops(length);
    }
    return 6.0 * weights + 3.0 * mixing;
  }

 private:
  void see_both_sides() {
    spec_.causal = false;
    for (DecoderLayerSpec& layer : spec_.layers) {
      if (layer.mixer || layer.block || layer.chunk > 0)
        refuse(Where(FilePlace{"config.json"}, "is_causal"), "false is not built for this family", "leave it out");
      if (layer.window > 0) ++layer.window;  // so many to each side, beside itself
    }
  }

  void build_head(const Scope& root, const nn::HeadPlan& plan) {
    const int64_t width = head_width();
    nn::Parameter weight = embedding_->weight(), bias;
    if (!plan.language) {
      nn::ClassHeadSpec classes = spec_.classes ? *spec_.classes : plan.classes.value_or(nn::ClassHeadSpec());
      if (!classes.padding && spec_.padding >= 0) classes.padding = spec_.padding;
      if (spec_.classes || plan.classes) class_head_.emplace(root, width, std::move(classes));
    } else if (spec_.masked_head) {
      head_ = std::make_unique<nn::MaskedHead>(root, spec_.vocabulary, width, *spec_.masked_head,
                                               spec_.tied ? weight : nn::Parameter());
    } else {
      const Scope scope = root.head() / spec_.names.head;
      if (!spec_.tied)
        weight = scope.parameter(
            "weight", {spec_.vocabulary, width}, nn::Role::weight,
            {Split::vocabulary, Initial::normal(spec_.head_deviation.value_or(spec_.deviation)), "kernel", false});
      if (spec_.head_bias)
        bias = scope.parameter("bias", {spec_.vocabulary}, nn::Role::bias, {Split::none, Initial::zeros()});
      head_ = std::make_unique<nn::LmHead>(weight, bias, spec_.logit_multiplier, spec_.logit_softcap,
                                           spec_.tied ? scope.reader_of(weight) : nullptr);
    }
  }

  Tensor embed(const Inputs& inputs, Pass& pass) const {
    Tensor x = (*embedding_)(inputs.tokens, pass);
    if (spec_.embedding_multiplier != 1.0) x = x * spec_.embedding_multiplier;
    if (project_in_) x = (*project_in_)(x, pass, "project_in");
    if (token_types_)
      x = x + (*token_types_)(inputs.token_types.defined() ? inputs.token_types : at::zeros_like(inputs.tokens), pass);
    if (positions_) x = x + (*positions_)(counted(inputs.tokens, pass.stream()) + spec_.position_offset, pass);
    if (embedding_norm_) x = (*embedding_norm_)(x);
    return pass.name("embeddings", pass.dropout("embedding_dropout", x, spec_.embedding_dropout));
  }

  int64_t head_width() const { return spec_.embedding_size > 0 ? spec_.embedding_size : spec_.hidden; }

  // The positions that learned embeddings are looked up by; that of a token that does not count is -1.
  Tensor counted(const Tensor& tokens, const nn::Stream& stream) const {
    const bool by_id = spec_.positions_skip_id >= 0;
    if (!by_id && (!spec_.positions_skip_hidden || !stream.hidden.defined())) return stream.positions;
    const Tensor counts = (by_id ? tokens.ne(spec_.positions_skip_id) : stream.hidden.logical_not()).to(at::kLong);
    const Tensor before = stream.positions.to(counts.device());
    std::vector<Tensor> parts;
    for (int64_t s = 0; s < stream.sequences(); ++s) {
      const int64_t begin = stream.cu_seqlens[size_t(s)], end = stream.cu_seqlens[size_t(s) + 1];
      const Tensor part = counts.slice(0, begin, end);
      parts.push_back((part.cumsum(0) + before.slice(0, begin, std::min(begin + 1, end))) * part - 1);
    }
    return at::cat(parts);
  }

  DecoderSpec spec_;
  at::ScalarType compute_;
  std::optional<nn::Embedding> embedding_, positions_, token_types_;
  std::optional<nn::Linear> project_in_, project_out_;
  std::unique_ptr<DecoderEnds> ends_;
  std::vector<nn::PlacedLayer> blocks_;
  std::optional<nn::Norm> embedding_norm_, norm_;
  std::unique_ptr<nn::Head> head_;  // null: there is no language head
  std::optional<nn::ClassHead> class_head_;
};

}  // namespace

std::unique_ptr<Model> build_decoder(DecoderSpec spec, nn::Building& building) {
  if (!(spec.norm.epsilon >= 0.0) || !std::isfinite(spec.norm.epsilon))
    refuse(FilePlace{"config.json"}, str("norms cannot be computed with an epsilon of ", spec.norm.epsilon));
  for (const double share : {spec.attention_dropout, spec.embedding_dropout, spec.residual_dropout,
                             spec.mlp_dropout.value_or(0.0), spec.layer_dropout, spec.inner_dropout})
    if (!(share >= 0.0 && share < 1.0))
      refuse(FilePlace{"config.json"}, str("a dropout of ", share, " is no share of what is there"),
             "give 0 to below 1");
  return std::make_unique<Decoder>(std::move(spec), building);
}

}  // namespace easydel::models
