// RWKV-4 (arXiv 2305.13048): each channel is a weighted average of the past whose weights decay over time. transformers
// halves hidden states every `rescale_every` layers for half precision; the last norm undoes that, so it is not done
// here.
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <cmath>

#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/recurrent_keys.h"
#include "easydel/ops/exponential.h"

namespace easydel::models::zoo::rwkv {
namespace {

using nn::Initial;

struct RwkvSpec {
  int64_t hidden = 0, channels = 0, inner = 0, layers = 0;
};

// The share of a channel's own token; the rest comes from the previous one. Initially powers of the channel's index, as
// in the paper.
Initial mix(int64_t hidden, double power, double shift = 0.0) {
  return Initial::each([=](int64_t i, double) { return std::pow(double(i) / double(hidden), power) + shift; });
}

Tensor sigmoid(const Tensor& x) { return ops::activate(x, ops::Activation::sigmoid); }

// The previous token; zero at the beginning of a sequence.
Tensor before(const Tensor& x, int64_t layer, size_t state, nn::Pass& pass) {
  const Tensor weight = at::tensor({1.0f, 0.0f}).to(x.device(), x.scalar_type()).expand({x.size(1), 2});
  return pass.stream().convolve(layer, state, x, weight, {});
}

class Block final : public nn::Layer {
 public:
  Block(const nn::Scope& scope, const RwkvSpec& spec, const nn::Norm::Options& norm, int64_t layer)
      : spec_(spec), layer_(layer) {
    const int64_t hidden = spec.hidden, channels = spec.channels;
    const double depth = spec.layers > 1 ? double(layer) / double(spec.layers - 1) : 0.0;
    const double remaining_depth = 1.0 - double(layer) / double(spec.layers);
    if (layer == 0) first_norm_.emplace(scope / "pre_ln", hidden, norm);
    mixer_norm_.emplace(scope / "ln1", hidden, norm);
    feed_norm_.emplace(scope / "ln2", hidden, norm);
    const auto vector = [&](const nn::Scope& at, const char* name, std::vector<int64_t> shape, Initial initial) {
      return at.parameter(name, std::move(shape), nn::Role::other, {.initial = std::move(initial)});
    };
    const auto linear = [&](const nn::Scope& at, int64_t in, int64_t out) {
      return std::make_unique<nn::Linear>(at, in, out, nn::LinearOptions{.deviation = 1.0 / std::sqrt(double(in))});
    };
    const nn::Scope mixer = scope / "attention", feed = scope / "feed_forward";
    decay_ =
        vector(mixer, "time_decay", {channels}, Initial::each([=](int64_t i, double) {
                 return -5.0 + 8.0 * std::pow(channels > 1 ? double(i) / double(channels - 1) : 0.0, 0.7 + 1.3 * depth);
               }));
    first_ = vector(mixer, "time_first", {channels}, Initial::ones());
    mix_key_ = vector(mixer, "time_mix_key", {1, 1, hidden}, mix(hidden, remaining_depth));
    mix_value_ = vector(mixer, "time_mix_value", {1, 1, hidden}, mix(hidden, remaining_depth, 0.3 * depth));
    mix_receptance_ = vector(mixer, "time_mix_receptance", {1, 1, hidden}, mix(hidden, 0.5 * remaining_depth));
    key_ = linear(mixer / "key", hidden, channels);
    value_ = linear(mixer / "value", hidden, channels);
    receptance_ = linear(mixer / "receptance", hidden, channels);
    output_ = linear(mixer / "output", channels, hidden);
    feed_mix_key_ = vector(feed, "time_mix_key", {1, 1, hidden}, mix(hidden, remaining_depth));
    feed_mix_receptance_ = vector(feed, "time_mix_receptance", {1, 1, hidden}, mix(hidden, remaining_depth));
    feed_key_ = linear(feed / "key", hidden, spec.inner);
    feed_receptance_ = linear(feed / "receptance", hidden, hidden);
    feed_value_ = linear(feed / "value", spec.inner, hidden);
  }

  nn::LayerOutput forward(const Tensor& input, nn::Pass& pass) const override {
    const Tensor x = first_norm_ ? (*first_norm_)(input) : input;
    const Tensor middle = pass.name("residual", x + pass.name("attention", mixed((*mixer_norm_)(x), pass)));
    return {middle + pass.name("feed_forward", fed((*feed_norm_)(middle), pass)), {}};
  }

  nn::CacheLayer cache() const override {
    return {.states = {{1, spec_.hidden}, {1, spec_.hidden}, {1, 1, 2 * spec_.channels}, {spec_.channels}}};
  }
  double mixing_flops(int64_t) const override { return 12.0 * double(spec_.channels); }

 private:
  static Tensor between(const Tensor& x, const Tensor& last, const nn::Parameter& share) {
    const Tensor own = share.value().to(x.scalar_type()).view({-1});
    return x * own + last * (1 - own);
  }

  Tensor mixed(const Tensor& x, nn::Pass& pass) const {
    const int64_t tokens = x.size(0), channels = spec_.channels;
    const Tensor last = before(x, layer_, 0, pass);
    const Tensor k = (*key_)(between(x, last, mix_key_), pass, "mixer_key").to(at::kFloat);
    const Tensor v = (*value_)(between(x, last, mix_value_), pass, "mixer_value").to(at::kFloat);
    const Tensor r = sigmoid((*receptance_)(between(x, last, mix_receptance_), pass, "mixer_gate"));
    const Tensor fall = -ops::exponential(decay_.value().to(at::kFloat)).expand({tokens, channels});
    const Tensor bonus = k + first_.value().to(at::kFloat);

    // Sums of e^k v and e^k over the tokens before, scaled by e^-m with m the running maximum.
    const ops::RunningMaximum m = pass.stream().running_maximum(layer_, 3, fall, k);
    const Tensor written = ops::exponential(k - m.after), kept = m.before + fall - m.after;
    ops::RecurrenceTensors sums;
    sums.q = sums.k = at::ones({tokens, 1, 1}, k.options());
    sums.v = at::cat({written * v, written}, 1).unsqueeze(1);
    sums.by_column = at::cat({kept, kept}, 1).unsqueeze(1);
    const Tensor found = pass.stream().recurrent(layer_, 2, {.read_before = true}, sums).view({tokens, 2 * channels});
    const Tensor top = at::maximum(m.before, bonus);
    const Tensor past = ops::exponential(m.before - top), now = ops::exponential(bonus - top);
    const Tensor average =
        (past * found.narrow(1, 0, channels) + now * v) / (past * found.narrow(1, channels, channels) + now);
    return (*output_)(r * average.to(x.scalar_type()), pass, "mixer_output");
  }

  Tensor fed(const Tensor& x, nn::Pass& pass) const {
    const Tensor last = before(x, layer_, 1, pass);
    const Tensor key =
        ops::activate((*feed_key_)(between(x, last, feed_mix_key_), pass, "mlp_up"), ops::Activation::relu_squared);
    const Tensor r = sigmoid((*feed_receptance_)(between(x, last, feed_mix_receptance_), pass, "mlp_gate"));
    return r * (*feed_value_)(key, pass, "mlp_down");
  }

  RwkvSpec spec_;
  int64_t layer_;
  std::optional<nn::Norm> first_norm_, mixer_norm_, feed_norm_;
  nn::Parameter decay_, first_, mix_key_, mix_value_, mix_receptance_, feed_mix_key_, feed_mix_receptance_;
  std::unique_ptr<nn::Linear> key_, value_, receptance_, output_, feed_key_, feed_receptance_, feed_value_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.names = {.base = "rwkv", .embedding = "embeddings", .layers = "blocks", .norm = "ln_out", .head = "head"};
  spec.vocabulary = read_size(config, "vocab_size", 50277);
  spec.hidden = read_size(config, "hidden_size", 4096);
  spec.layers.resize(size_t(read_size(config, "num_hidden_layers", 32)));
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = 1e-5};  // for the last norm, whatever layer_norm_epsilon says
  spec.tied = config.boolean("tie_word_embeddings", false);
  // transformers initializes with orthogonal matrices; here each element has the same deviation.
  spec.deviation = 0.5 / std::sqrt(double(spec.hidden));  // for the head
  spec.embedding = [](const nn::Scope& base, DecoderSpec whole) {
    whole.deviation = 1e-4;
    return build_embedding(base, whole);
  };
  const RwkvSpec rwkv{spec.hidden, read_size(config, "attention_hidden_size", spec.hidden),
                      read_size(config, "intermediate_size", 4 * spec.hidden), int64_t(spec.layers.size())};
  nn::Norm::Options norm = spec.norm;
  norm.epsilon = config.number("layer_norm_epsilon", 1e-5);
  for (DecoderLayerSpec& layer : spec.layers)
    layer.block = [rwkv, norm](const nn::Scope& block, int64_t index) {
      return std::make_unique<Block>(block, rwkv, norm, index);
    };
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"rwkv", "rwkv", {}, build, false}; }

}  // namespace easydel::models::zoo::rwkv
