#include "easydel/models/decoder.h"

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_model.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/nn/cache.h"

namespace easydel::models {

using nn::Initial;
using nn::Pass;
using nn::Scope;
using nn::Split;

namespace {

DecoderSpec checked(DecoderSpec spec) {
  if (!(spec.norm.epsilon >= 0.0) || !std::isfinite(spec.norm.epsilon))
    refuse(FilePlace{"config.json"}, str("norms cannot be computed with an epsilon of ", spec.norm.epsilon));
  for (const double share :
       {spec.attention_dropout, spec.embedding_dropout, spec.residual_dropout, spec.mlp_dropout.value_or(0.0)})
    check_dropout(share);
  return spec;
}

}  // namespace

void check_dropout(double share) {
  if (!(share >= 0.0 && share < 1.0))
    refuse(FilePlace{"config.json"}, str("a dropout of ", share, " is out of range"), "give 0 to below 1");
}

Decoder::Decoder(DecoderSpec spec, nn::Building& building)
    : spec_(checked(std::move(spec))), compute_(building.compute) {
  spec_.names.base = building.head.stack_name(spec_.names.base);
  if (building.both_sides && spec_.causal) see_both_sides();
  const Scope root = Scope(building).on_stream(nn::text_stream), base = root / spec_.names.base;
  embedding_ = spec_.embedding ? spec_.embedding(base, spec_) : build_embedding(base, spec_);
  if (spec_.boundary) boundary_ = spec_.boundary(base);
  for (size_t i = 0; i < spec_.layers.size(); ++i) {
    const Scope scope = (base / spec_.names.layers / int64_t(i)).unit(int(i));
    const auto& build = spec_.layers[i].block;
    const auto as_spec_says = [&](const Scope& block, int64_t index) {
      return spec_.block_builder ? spec_.block_builder(block, spec_, index) : build_block(block, spec_, index);
    };
    blocks_.emplace_back(scope, build ? build : as_spec_says, int64_t(i));
  }
  if (!spec_.names.norm.empty())
    norm_.emplace(base / spec_.names.norm, spec_.hidden, spec_.last_norm.value_or(spec_.norm));
  build_head(root, building.head);
}

Decoder::~Decoder() = default;

Outputs Decoder::forward(const Inputs& inputs, Pass& pass) const {
  const auto& stream = pass.stream();
  check(inputs.tokens.dim() == 1 && inputs.tokens.size(0) == stream.tokens(), "forward: ", inputs.tokens.sizes(),
        " tokens, the pass has ", stream.tokens());
  if (pass.attention == ops::AttentionMechanism::automatic) pass.attention = attention();
  Tensor x = pass.name(
      "embeddings", pass.random().dropout("embedding_dropout", (*embedding_)(inputs, pass), spec_.embedding_dropout));
  if (boundary_) x = boundary_->enter(inputs, x, pass);
  Outputs out;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (leaves_out(blocks_[i].path, pass)) continue;
    const bool last = i + 1 == blocks_.size() && !boundary_;
    nn::LayerOutput output = (last ? nn::run_layer_requested : nn::run_layer)(pass, blocks_[i], x);
    x = output.x;
    for (auto& [name, extra] : output.extras) out.extras.emplace(str(name, ".", i), std::move(extra));
  }
  if (boundary_) x = pass.stream().requested_rows(boundary_->leave(x, pass));
  if (norm_) x = pass.name(str(spec_.names.base, spec_.names.base.empty() ? "" : ".", spec_.names.norm), (*norm_)(x));
  out.hidden = embedding_->leave(x, pass);
  pass.finish();
  return out;
}

const nn::Head& Decoder::head() const {
  if (!head_)
    refuse("model", str("it is for ", name_of(task()), ": it has no language head"),
           "set model.task to causal-language-model");
  return *head_;
}

std::vector<nn::CacheLayer> Decoder::cache_layers() const {
  std::vector<nn::CacheLayer> layers;
  for (const auto& block : blocks_) layers.push_back(block.layer->cache());
  return layers;
}

std::unique_ptr<nn::Cache> Decoder::make_cache(int64_t slots, int64_t length) const {
  if (!spec_.causal)
    refuse("model", "it attends to both sides, so it cannot generate text", "use a causal language model");
  nn::CacheShape shape{cache_layers(), nn::cache_type(cache_format_.format, compute_), device(),
                       cache_format_.group_size};
  return std::make_unique<nn::Cache>(std::move(shape), slots, length);
}

int64_t Decoder::turning_length() const {
  int64_t min_length = 0;
  const auto consider = [&](const ops::RopeSpec& rope) {
    const bool turns = rope.type == ops::RopeType::dynamic || rope.type == ops::RopeType::longrope;
    const int64_t length = rope.type == ops::RopeType::dynamic ? rope.max_positions : rope.original_max_positions;
    if (turns) min_length = min_length == 0 ? length : std::min(min_length, length);
  };
  if (spec_.rope) consider(*spec_.rope);
  for (const DecoderLayerSpec& layer : spec_.layers)
    if (layer.rope) consider(*layer.rope);
  return min_length;
}

double Decoder::training_flops_per_token(int64_t length) const {
  double weights = head_ ? double(spec_.vocabulary) * double(head_width()) : 0.0, mixing = 0;
  for (const nn::Entry& entry : parameters().entries())
    if (entry.unit >= 0) weights += double(entry.elements());
  for (const auto& block : blocks_) {
    weights -= block.layer->idle_elements();
    mixing += block.layer->mixing_flops(length);
  }
  return 6.0 * weights + 3.0 * mixing;
}

void Decoder::see_both_sides() {
  spec_.causal = false;
  for (DecoderLayerSpec& layer : spec_.layers) {
    if (layer.mixer || layer.block || layer.attention.chunk > 0)
      refuse(Where(FilePlace{"config.json"}, "is_causal"), "false is not built for this family", "leave it out");
    if (layer.attention.window > 0) ++layer.attention.window;  // this many on each side, in addition to itself
  }
}

void Decoder::build_head(const Scope& root, const nn::HeadPlan& plan) {
  const int64_t width = head_width();
  nn::Parameter weight = embedding_->table(), bias;
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
      weight = scope.parameter("weight", {spec_.vocabulary, width}, nn::Role::weight,
                               {Split::vocabulary, Initial::normal(spec_.deviation), "kernel", false});
    if (spec_.head_bias)
      bias = scope.parameter("bias", {spec_.vocabulary}, nn::Role::bias, {Split::none, Initial::zeros()});
    head_ = std::make_unique<nn::LmHead>(weight, bias, spec_.logit_multiplier, spec_.logit_softcap,
                                         spec_.tied ? scope.reader_of(weight) : nullptr);
  }
}

int64_t Decoder::head_width() const { return embedding_->table().entry().shape.at(1); }

std::unique_ptr<Model> build_decoder(DecoderSpec spec, nn::Building& building) {
  return std::make_unique<Decoder>(std::move(spec), building);
}

}  // namespace easydel::models
