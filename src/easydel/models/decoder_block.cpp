// A block of a decoder as its spec describes it: the places of the norms and what the residual sums hold.
#include "easydel/models/decoder_parts.h"

namespace easydel::models {
namespace {

using nn::Pass;
using nn::Scope;

class Block final : public nn::Layer {
 public:
  Block(const Scope& scope, const DecoderSpec& spec, int64_t index)
      : names_(spec.names),
        parallel_(spec.parallel_residual),
        residual_(spec.residual),
        multiplier_(spec.residual_multiplier) {
    const DecoderLayerSpec& own = spec.layers[size_t(index)];
    const auto norm = [&](std::optional<nn::Norm>& place, const std::string& name) {
      if (!name.empty()) place.emplace(scope / name, spec.hidden, spec.norm);
    };
    norm(before_mixer_, names_.before_mixer);
    mixer_ = own.mixer ? own.mixer(scope, index) : build_attention(scope / names_.attention, spec, index);
    norm(after_mixer_, names_.after_mixer);
    if (!names_.mlp.empty() || own.feed) {
      norm(before_feed_, names_.before_feed);
      feed_ = own.feed ? own.feed(scope, index) : build_feed(scope / names_.mlp, spec, index);
      norm(after_feed_, names_.after_feed);
    }
  }

  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override { return forward(x, pass, false); }
  nn::LayerOutput forward_requested(const Tensor& x, Pass& pass) const override { return forward(x, pass, true); }

  nn::CacheLayer cache() const override { return mixer_->cache(); }
  double mixing_flops(int64_t length) const override {
    return mixer_->mixing_flops(length) + (feed_ ? feed_->mixing_flops(length) : 0.0);
  }
  double idle_elements() const override { return mixer_->idle_elements() + (feed_ ? feed_->idle_elements() : 0.0); }

 private:
  // `requested`: after the mixer only the requested tokens go on.
  nn::LayerOutput forward(const Tensor& all, Pass& pass, bool requested) const {
    nn::LayerOutput out;
    const auto take = [&](nn::LayerOutput output) {
      out.extras.merge(output.extras);
      return output.x;
    };
    const auto run = [&](const nn::Layer& part, const Tensor& normed) { return take(part.forward(normed, pass)); };
    const auto rows = [&](const Tensor& t) { return requested ? pass.stream().requested_rows(t) : t; };
    const Tensor all_normed = normed_by(before_mixer_, all);
    const Tensor mixed = pass.name(
        names_.attention, requested ? take(mixer_->forward_requested(all_normed, pass)) : run(*mixer_, all_normed));
    const Tensor x = rows(all), normed = rows(all_normed);
    if (parallel_) {
      const Tensor fed =
          pass.name(names_.mlp, pass.name("mlp_output", run(*feed_, before_feed_ ? (*before_feed_)(x) : normed)));
      out.x = (residual_ == Residual::normed ? normed : x) + scaled(mixed) + scaled(fed);
      return out;
    }
    const Sum middle = sum(x, normed, mixed, after_mixer_, feed_ && before_feed_ ? &*before_feed_ : nullptr);
    pass.name("residual", middle.x);
    if (!feed_) {
      out.x = middle.x;
      return out;
    }
    const Tensor fed = pass.name(names_.mlp, pass.name("mlp_output", run(*feed_, middle.normed)));
    out.x = sum(middle.x, middle.normed, fed, after_feed_, nullptr).x;
    return out;
  }

  static Tensor normed_by(const std::optional<nn::Norm>& norm, const Tensor& x) { return norm ? (*norm)(x) : x; }

  Tensor scaled(const Tensor& added) const { return multiplier_ == 1.0 ? added : added * multiplier_; }

  struct Sum {
    Tensor x, normed;  // normed: the input of the next part
  };
  Sum sum(const Tensor& x, const Tensor& normed, const Tensor& added, const std::optional<nn::Norm>& norm_after,
          const nn::Norm* next) const {
    if (residual_ == Residual::norm_of_sum) {
      const Tensor all = norm_after ? norm_after->after_sum(x, scaled(added)).norm : x + scaled(added);
      return {all, next ? (*next)(all) : all};
    }
    const Tensor &base = residual_ == Residual::normed ? normed : x, term = scaled(normed_by(norm_after, added));
    if (next) {
      const auto [all, norm] = next->after_sum(base, term);
      return {all, norm};
    }
    const Tensor all = base + term;
    return {all, all};
  }

  const DecoderNames& names_;
  bool parallel_;
  Residual residual_;
  double multiplier_;
  std::optional<nn::Norm> before_mixer_, after_mixer_, before_feed_, after_feed_;
  std::unique_ptr<nn::Layer> mixer_, feed_;  // feed_ null: the block has no feed-forward
};

}  // namespace

std::unique_ptr<nn::Layer> build_block(const Scope& scope, const DecoderSpec& spec, int64_t layer) {
  return std::make_unique<Block>(scope, spec, layer);
}

}  // namespace easydel::models
