#include "easydel/nn/adapted_weight.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/ops/activation.h"
#include "easydel/ops/low_rank.h"

namespace easydel::nn {
namespace {

// y + scale * p, given -p if the scale is positive (ops::subtract_scaled). For what ops::add_low_rank does not compute.
class Sum {
 public:
  explicit Sum(double scale) : scale_(scale) {}
  // The input of B that makes the product of the right sign.
  Tensor input(const Tensor& low) const { return scale_ < 0 ? low : -low; }
  Tensor operator()(const Tensor& y, const Tensor& product) const {
    return ops::subtract_scaled(y, product, std::fabs(scale_));
  }

 private:
  double scale_;
};

class LowRankHeads final : public HeadAdapter {
 public:
  LowRankHeads(const LowRank& adapter, const HeadRows& rows) : transposed_(rows.transposed), sum_(adapter.scale) {
    b_ = adapter.b.entry().weight->by_head(rows);
    a_ = adapter.a.entry().weight->by_head({1, 0, adapter.a.entry().shape[0], transposed_});
  }
  Tensor product(const Tensor& y, const Tensor& x, const std::vector<int64_t>& begin, Pass& pass) override {
    const std::vector<int64_t> all = {0, x.size(0)};
    const Tensor low = sum_.input(transposed_ ? b_->product(x, begin, {}, pass) : a_->product(x, all, {}, pass));
    return sum_(y, transposed_ ? a_->product(low, all, {}, pass) : b_->product(low, begin, {}, pass));
  }

 private:
  std::shared_ptr<WeightStack> a_, b_;
  bool transposed_;
  Sum sum_;
};

class LowRankAdapter final : public WeightAdapter {
 public:
  LowRankAdapter(std::shared_ptr<Weight> base, Parameter parameter, LowRank adapter, bool embedding)
      : base_(std::move(base)),
        parameter_(parameter),
        adapter_(std::move(adapter)),
        sum_(adapter_.scale),
        low_rank_(adapter_.a, adapter_.b, adapter_.scale),
        embedding_(embedding) {}

  Tensor product(Tensor y, const Tensor& x, const Tensor& bias, Pass& pass) override {
    return added(std::move(y), x, nullptr, bias, pass);
  }
  Tensor gated_product(Tensor y, const Tensor& x, const ops::GatedInput& made_of, const Tensor& bias,
                       Pass& pass) override {
    return added(std::move(y), x, &made_of, bias, pass);
  }
  OfLowRank of_low_rank(const Tensor& x, Pass& pass) override {
    if (at::GradMode::is_enabled() || embedding_ || adapter_.magnitude || adapter_.bias || !dropped(x, pass).is_same(x))
      return {};
    const auto forms = low_rank_.forms(x, pass);
    return forms && ops::adds_rows(*forms, x) ? OfLowRank{forms, adapter_.scale} : OfLowRank{};
  }
  // A tied head reads the base by itself, without this adapter, as in PEFT.
  Tensor lookup(const Tensor& y, const Tensor& indices, int64_t padding, Pass& pass) override {
    if (!embedding_) return y;
    const Tensor low = sum_.input(weight_of(adapter_.a).lookup(indices, padding, pass));
    const Tensor added = weight_of(adapter_.b).product(low, {}, {}, pass);
    return adapter_.magnitude ? scaled(y, y, added) : sum_(y, added);
  }
  std::vector<ops::Factors> factors(const Tensor& x, Pass& pass) override {
    if (embedding_) return {};
    const Tensor input = dropped(x, pass);
    const Tensor low = weight_of(adapter_.a).product(input, {}, {}, pass) * adapter_.scale;
    std::vector<ops::Factors> out = weight_of(adapter_.b).factors(low, pass);
    if (!adapter_.magnitude) return out;
    // ratio * (W x + scale * B A x) as W x + (ratio - 1) W x + ratio * B (scale * A x).
    const Tensor ratio = row_ratio().unsqueeze(1), b = adapter_.b.value() * ratio;
    out.front().weight = {b, b.detach().to(adapter_.b.entry().compute).contiguous(), nullptr};
    out.push_back({input, rest_of_base(ratio)});
    return out;
  }
  std::shared_ptr<HeadAdapter> by_head(const HeadRows& rows) override {
    return std::make_shared<LowRankHeads>(adapter_, rows);
  }

 private:
  Tensor added(Tensor y, const Tensor& x, const ops::GatedInput* made_of, const Tensor& bias, Pass& pass) {
    if (embedding_) return y;  // a product with an embedding's own weight is that of the base
    const Tensor input = dropped(x, pass);
    if (adapter_.magnitude) {
      const Tensor low = sum_.input(weight_of(adapter_.a).product(input, {}, {}, pass));
      return with_lengths(y, input, x, weight_of(adapter_.b).product(low, {}, {}, pass), bias, pass);
    }
    const Tensor out = low_rank_(std::move(y), input, pass, input.is_same(x) ? made_of : nullptr);
    return adapter_.bias ? out + adapter_.bias.value().to(out.scalar_type()) * adapter_.scale : out;
  }
  static Weight& weight_of(const Parameter& parameter) { return *parameter.entry().weight; }
  Tensor dropped(const Tensor& x, const Pass& pass) const {
    if (adapter_.dropout <= 0) return x;
    const Tensor& of_head = pass.stream().head_tokens;
    const bool taken = of_head.defined() && x.size(0) == of_head.numel();
    return pass.random().dropout(adapter_.path + ".lora_dropout", x, adapter_.dropout, taken ? of_head : Tensor());
  }

  // DoRA: ratio * (W x + scale * B A x) + bias, where ratio is the trained length of a row over its present one. While
  // x drops out, the base's own part of the difference is computed with what is left of x, as PEFT does.
  Tensor with_lengths(const Tensor& y, const Tensor& input, const Tensor& x, const Tensor& product, const Tensor& bias,
                      Pass& pass) {
    const Tensor plain = !input.is_same(x) ? base_->product(input, {}, {}, pass)
                         : bias.defined()  ? y - bias.to(y.scalar_type())
                                           : y;
    return scaled(y, plain, product);
  }
  // y is the base's result, `plain` its part that is scaled, and `product` that of sum_.input().
  Tensor scaled(const Tensor& y, const Tensor& plain, const Tensor& product) {
    const Tensor ratio = row_ratio();
    const double scale = std::fabs(adapter_.scale);
    const Tensor less = plain.to(at::kFloat) * (1 - ratio) + product.to(at::kFloat) * (ratio * scale);
    return (y.to(at::kFloat) - less).to(y.scalar_type());
  }
  Tensor row_ratio() { return adapter_.magnitude.value().to(at::kFloat) / lengths(); }
  // (ratio - 1) W for heads. Kept while nothing learns.
  ops::Matrix rest_of_base(const Tensor& ratio) {
    const bool learns = ratio.requires_grad();
    const uint64_t version = adapter_.magnitude.entry().version;
    if (!learns && rest_.compute.defined() && rest_versions_ == versions_ && rest_magnitude_ == version) return rest_;
    std::optional<c10::InferenceMode> kept_for_training;
    if (!learns) kept_for_training.emplace(false);
    const Tensor rest = parameter_.value().detach().to(at::kFloat) * (ratio - 1);
    ops::Matrix out{rest, rest.detach().to(parameter_.entry().compute).contiguous(), nullptr};
    if (!learns) rest_ = out, rest_versions_ = versions_, rest_magnitude_ = version;
    return out;
  }

  // They change once a step.
  Tensor lengths() {
    const std::array<uint64_t, 3> versions = {parameter_.entry().version, adapter_.a.entry().version,
                                              adapter_.b.entry().version};
    if (!lengths_.defined() || versions != versions_) {
      const c10::InferenceMode kept_for_training(false);
      const Tensor base = parameter_.value().detach(), a = adapter_.a.value().detach();
      lengths_ = row_lengths(embedding_ ? base.t() : base, embedding_ ? a.t() : a, adapter_.b.value().detach(),
                             adapter_.scale);
      versions_ = versions;
    }
    return lengths_;
  }

  std::shared_ptr<Weight> base_;
  Parameter parameter_;
  LowRank adapter_;
  Sum sum_;
  LowRankSum low_rank_;
  bool embedding_;
  Tensor lengths_;
  std::array<uint64_t, 3> versions_ = {}, rest_versions_ = {};
  ops::Matrix rest_;
  uint64_t rest_magnitude_ = 0;
};

class ReplacingAdapter final : public WeightAdapter {
 public:
  explicit ReplacingAdapter(std::shared_ptr<Weight> own) : own_(std::move(own)) {}

  Tensor product(Tensor, const Tensor& x, const Tensor& bias, Pass& pass) override {
    return own_->product(x, bias, {}, pass);
  }
  Tensor lookup(const Tensor&, const Tensor& indices, int64_t padding, Pass& pass) override {
    return own_->lookup(indices, padding, pass);
  }
  std::vector<ops::Factors> factors(const Tensor& x, Pass& pass) override { return own_->factors(x, pass); }
  std::shared_ptr<HeadAdapter> by_head(const HeadRows& rows) override {
    return std::make_shared<Heads>(own_->by_head(rows));
  }
  Weight* replacement() override { return own_.get(); }

 private:
  struct Heads final : HeadAdapter {
    explicit Heads(std::shared_ptr<WeightStack> of_own) : own(std::move(of_own)) {}
    Tensor product(const Tensor&, const Tensor& x, const std::vector<int64_t>& begin, Pass& pass) override {
      return own->product(x, begin, {}, pass);
    }
    WeightStack* replacement() override { return own.get(); }
    std::shared_ptr<WeightStack> own;
  };

  std::shared_ptr<Weight> own_;
};

// A weight with one adapter, which all sequences have.
class AdaptedWeight final : public Weight {
 public:
  AdaptedWeight(std::shared_ptr<Weight> base, std::shared_ptr<WeightAdapter> adapter,
                std::shared_ptr<const AdapterSwitch> state)
      : base_(std::move(base)), adapter_(std::move(adapter)), state_(std::move(state)) {}

  Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, Pass& pass) override {
    if (Weight* const one = alone(pass)) return one->product(x, bias, name, pass);
    return adapter_->product(base_->product(x, bias, name, pass), x, bias, pass);
  }
  Tensor gated_product(const Tensor& gate, const Tensor& up, ops::Activation kind, const Tensor& bias,
                       std::string_view name, Pass& pass) override {
    if (Weight* const one = alone(pass)) return one->gated_product(gate, up, kind, bias, name, pass);
    const Tensor x = ops::gated(gate, up, kind);  // both products read it
    return adapter_->gated_product(base_->product(x, bias, name, pass), x, {gate, up, kind}, bias, pass);
  }
  std::optional<AdaptedMatrix> adapted_matrix(const Tensor& x, Pass& pass) override {
    if (Weight* const one = alone(pass)) return one->adapted_matrix(x, pass);
    std::optional<AdaptedMatrix> out = base_->adapted_matrix(x, pass);
    const WeightAdapter::OfLowRank own = out ? adapter_->of_low_rank(x, pass) : WeightAdapter::OfLowRank{};
    if (!own.forms || !out->added.empty()) return std::nullopt;
    out->added.push_back({{}, own.forms, own.scale});
    return out;
  }
  std::vector<ops::Factors> factors(const Tensor& x, Pass& pass) override {
    if (Weight* const one = alone(pass)) return one->factors(x, pass);
    std::vector<ops::Factors> out = base_->factors(x, pass);
    for (ops::Factors& one : adapter_->factors(x, pass)) out.push_back(std::move(one));
    return out;
  }
  Tensor lookup(const Tensor& indices, int64_t padding, Pass& pass) override {
    if (Weight* const one = alone(pass)) return one->lookup(indices, padding, pass);
    return adapter_->lookup(base_->lookup(indices, padding, pass), indices, padding, pass);
  }
  std::shared_ptr<WeightStack> by_head(const HeadRows& rows) override {
    return std::make_shared<Heads>(base_->by_head(rows), adapter_->by_head(rows), state_);
  }
  Tensor values() const override { return base_->values(); }
  Weight* base() override { return base_.get(); }

 private:
  struct Heads final : WeightStack {
    Heads(std::shared_ptr<WeightStack> of_base, std::shared_ptr<HeadAdapter> heads,
          std::shared_ptr<const AdapterSwitch> of_adapter)
        : base(std::move(of_base)), adapter(std::move(heads)), state(std::move(of_adapter)) {}
    Tensor product(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, Pass& pass) override {
      const bool off = !pass.stream().adapters || state->merged;
      if (WeightStack* const one = off ? base.get() : adapter->replacement()) return one->product(x, begin, bias, pass);
      return adapter->product(base->product(x, begin, bias, pass), x, begin, pass);
    }
    std::shared_ptr<WeightStack> base;
    std::shared_ptr<HeadAdapter> adapter;
    std::shared_ptr<const AdapterSwitch> state;
  };

  // The only weight that is read: the base without the adapter, or what replaces it; null: both are.
  Weight* alone(const Pass& pass) const {
    return !pass.stream().adapters || state_->merged ? base_.get() : adapter_->replacement();
  }

  std::shared_ptr<Weight> base_;
  std::shared_ptr<WeightAdapter> adapter_;
  std::shared_ptr<const AdapterSwitch> state_;
};

// Rows that are computed together, so that no fp32 copy of a weight is whole.
constexpr int64_t rows_per_panel = 256;

Tensor sum_of_panel(const Tensor& base, const Tensor& a, const Tensor& b, double scale) {
  return b.defined() ? ops::with_low_rank(base, a, b, scale) : base.to(at::kFloat);
}

}  // namespace

std::shared_ptr<const ops::LowRankForms> LowRankSum::forms(const Tensor& x, Pass& pass) {
  const Entry &a = a_.entry(), &b = b_.entry();
  if (a.shard.requires_grad() || b.shard.requires_grad()) {
    kept_ = {};
    return nullptr;
  }
  const auto matrix = [&](const Entry& of) { return of.weight->factors(x, pass).front().weight; };
  const std::array<uint64_t, 2> versions = {a.version, b.version};
  if (!kept_.forms || versions != kept_.versions) {
    kept_ = {matrix(a), matrix(b), nullptr, versions};
    kept_.forms = ops::low_rank_forms(kept_.a, kept_.b);
  }
  return kept_.forms;
}

Tensor LowRankSum::operator()(Tensor y, const Tensor& x, Pass& pass, const ops::GatedInput* made_of) {
  if (const auto own = forms(x, pass)) return ops::add_low_rank(std::move(y), x, kept_.a, kept_.b, scale_, own);
  const auto matrix = [&](const Entry& of) { return of.weight->factors(x, pass).front().weight; };
  return ops::add_low_rank(std::move(y), x, matrix(a_.entry()), matrix(b_.entry()), scale_, nullptr, made_of);
}

Tensor row_lengths(const Tensor& base, const Tensor& a, const Tensor& b, double scale) {
  const at::NoGradGuard no_gradient;
  const int64_t rows = base.size(0);
  const Tensor out = at::empty({rows}, base.options().dtype(at::kFloat));
  for (int64_t begin = 0; begin < rows; begin += rows_per_panel) {
    const int64_t count = std::min(rows_per_panel, rows - begin);
    const Tensor sum =
        sum_of_panel(base.narrow(0, begin, count), a, b.defined() ? b.narrow(0, begin, count) : b, scale);
    const Tensor wide = sum.to(at::kDouble);
    out.narrow(0, begin, count).copy_((wide * wide).sum(1).sqrt());
  }
  return out;
}

Tensor merged_values(const Tensor& base, const Tensor& a, const Tensor& b, const Tensor& magnitude, double scale) {
  const at::NoGradGuard no_gradient;
  const Tensor sum = sum_of_panel(base, a, b, scale);
  if (!magnitude.defined()) return sum;
  return sum * (magnitude.to(at::kFloat) / row_lengths(base, a, b, scale)).unsqueeze(1);
}

std::shared_ptr<WeightAdapter> low_rank_adapter(std::shared_ptr<Weight> base, Parameter parameter, LowRank adapter,
                                                bool embedding) {
  return std::make_shared<LowRankAdapter>(std::move(base), parameter, std::move(adapter), embedding);
}

std::shared_ptr<WeightAdapter> replacing_adapter(std::shared_ptr<Weight> own) {
  return std::make_shared<ReplacingAdapter>(std::move(own));
}

std::shared_ptr<Weight> adapted_weight(std::shared_ptr<Weight> base, Parameter parameter, LowRank adapter,
                                       bool embedding, std::shared_ptr<const AdapterSwitch> state) {
  auto own = low_rank_adapter(base, parameter, std::move(adapter), embedding);
  return adapted_weight(std::move(base), std::move(own), std::move(state));
}

std::shared_ptr<Weight> adapted_weight(std::shared_ptr<Weight> base, std::shared_ptr<WeightAdapter> adapter,
                                       std::shared_ptr<const AdapterSwitch> state) {
  return std::make_shared<AdaptedWeight>(std::move(base), std::move(adapter), std::move(state));
}

std::shared_ptr<Weight> replaced_weight(std::shared_ptr<Weight> base, std::shared_ptr<Weight> own,
                                        std::shared_ptr<const AdapterSwitch> state) {
  return std::make_shared<AdaptedWeight>(std::move(base), replacing_adapter(std::move(own)), std::move(state));
}

}  // namespace easydel::nn
