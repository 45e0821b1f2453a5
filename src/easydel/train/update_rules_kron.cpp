// quad and skew: EasyDeL's two whitening optimizers (eformer/optimizers/_tx/white_kron.py; preconditioners of
// arXiv:1512.04202). A matrix is cut into blocks; each has a left and a right factor that whiten its momentum.
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "easydel/tensor/random.h"
#include "easydel/train/update_rules.h"

namespace easydel::train {
namespace {

constexpr double kept_bound = 0.95;  // decay of a factor's bound per update
constexpr int64_t probes = 4, iterations = 5;

// The same random numbers for every update and block, so that a run is reproducible.
Tensor normal(at::IntArrayRef shape, const char* name) {
  const Tensor out = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  tensor::fill_normal(out, tensor::key_of(0, name), 1, shape, std::vector<int64_t>(shape.size(), 0));
  return out;
}

// A lower bound of the spectral norm: a few power iterations on the longest row and four probes. `scale` has the
// magnitude of the entries.
double stretch(const Tensor& matrix, double scale) {
  if (!(scale > 0)) return 0;
  const Tensor a = matrix / scale;
  const Tensor energies = a.square().mean(1);
  const int64_t longest = energies.argmax().item<int64_t>();
  const Tensor start = normal({probes, a.size(1)}, "kron/probes").to(a.options());
  Tensor x = (a[longest] * energies[longest].rsqrt() + start).mm(a);
  for (int64_t i = 0; i < iterations; ++i) x = (x / x.abs().max()).mm(a);
  x = (x / at::linalg_vector_norm(x, 2, 1, true)).mm(a);
  return at::linalg_vector_norm(x, 2, 1).max().item<double>() * scale;
}

// Rotates a factor one step towards being symmetric and positive.
Tensor rotated(const Tensor& factor) {
  Tensor skew = factor.t() - factor;
  const double most = skew.abs().max().item<double>();
  if (!(most > 1.1754943508222875e-38)) return factor;
  skew = skew / most;
  const Tensor first = skew.mm(factor);
  const double gain = first.trace().item<double>();
  if (!(gain > 0)) return factor;
  const Tensor second = skew.mm(first);
  const double bend = second.trace().item<double>();
  double step = 0.125 / stretch(skew, skew.abs().max().item<double>());
  if (bend < 0) step = std::min(step, -gain / bend);
  return factor + step * (first + 0.5 * step * second);
}

class Kron final : public UpdateRule {
 public:
  explicit Kron(const KronOptions& options) : o_(options) {}
  bool whole() const override { return true; }

  OptimizerStates start(const Tensor& value) const override {
    OptimizerStates out = {{"mean", at::zeros_like(value)}};
    const Cuts cuts = cuts_of(value);
    const auto add = [&](const char* side, const char* bound, const Side& of) {
      const int64_t size = std::min(of.size, of.step);
      const std::vector<int64_t> shape =
          of.diagonal ? std::vector<int64_t>{cuts.blocks(), size} : std::vector<int64_t>{cuts.blocks(), size, size};
      out.emplace(
          side, of.diagonal ? at::ones(shape, value.options()) : at::eye(size, value.options()).expand(shape).clone());
      out.emplace(bound, at::zeros({cuts.blocks()}, value.options()));
    };
    add("left", "left_bound", cuts.rows);
    if (!cuts.vector) add("right", "right_bound", cuts.columns);
    return out;
  }

  void update(const Update& u) const override {
    Tensor& mean = u.state("mean");
    mean.mul_(o_.b1).add_(u.gradient, 1 - o_.b1);
    const Cuts cuts = cuts_of(u.value);
    const Tensor moment = (mean / (1 - std::pow(o_.b1, double(u.step)))).reshape({cuts.rows.size, cuts.columns.size});
    Tensor white = at::zeros_like(moment);
    int64_t block = 0;
    for (int64_t row = 0; row < cuts.rows.size; row += cuts.rows.step)
      for (int64_t column = 0; column < cuts.columns.size; column += cuts.columns.step, ++block) {
        const int64_t rows = std::min(cuts.rows.step, cuts.rows.size - row),
                      columns = std::min(cuts.columns.step, cuts.columns.size - column);
        const auto part = [&](const Tensor& of) { return of.narrow(0, row, rows).narrow(1, column, columns); };
        part(white).copy_(cuts.vector ? white_vector(u, part(moment)) : white_block(u, cuts, block, part(moment)));
      }
    const double size = root_mean_square(white);
    white.mul_(1.1 / std::max(size, 1.1) / 5);
    u.value.mul_(1 - u.rate * u.decay).sub_(white.view(u.value.sizes()), u.rate);
  }

 private:
  struct Side {
    int64_t size = 1, step = 1;
    bool diagonal = false;
  };
  struct Cuts {
    Side rows, columns;
    bool vector = false;
    int64_t blocks() const { return pieces(rows) * pieces(columns); }
    static int64_t pieces(const Side& side) { return (side.size + side.step - 1) / side.step; }
  };

  Side side_of(int64_t size) const {
    const bool large = size > o_.max_dense;
    return {size, large ? size : o_.block, large};
  }

  // A tensor as a matrix: dimensions are joined as squarely as possible; a tensor with one dimension is a vector.
  Cuts cuts_of(const Tensor& value) const {
    const int64_t all = value.numel();
    int64_t rows = all, longest = 1, before = 1;
    for (const int64_t size : value.sizes()) longest = std::max(longest, size);
    if (longest == all) return {{all, std::max<int64_t>(all, 1), true}, {}, true};
    double best = 0;
    for (int64_t dim = 0; dim + 1 < value.dim(); ++dim) {
      before *= value.size(dim);
      const double square = double(std::min(before, all / before)) / double(std::max(before, all / before));
      if (square > best) best = square, rows = before;
    }
    return {side_of(rows), side_of(all / rows), false};
  }

  double rate_at(int64_t step) const {
    return std::max(o_.preconditioner_rate / std::sqrt(1 + double(step) / 10000), 0.4);
  }

  // Without noise, the factors of a block without gradients would grow without bound.
  Tensor with_noise(const Tensor& moment) const {
    Tensor& noise = noise_[moment.sizes().vec()];
    if (!noise.defined()) noise = normal(moment.sizes(), "kron/noise").to(moment.options()).mul_(1e-9);
    return moment + noise;
  }

  // Moves a factor towards a whitened block: `much` is the present size of its side, `even` the target.
  void follow(const Update& u, Tensor factor, Tensor bound, const Tensor& much, double even) const {
    const bool diagonal = factor.dim() == 1;
    const double most = (diagonal ? much : much.diagonal()).max().item<double>();
    const double now = (diagonal ? most : stretch(much, most)) + even;
    bound.fill_(std::max(kept_bound * bound.item<double>() + (1 - kept_bound) * now, now));
    const double step = rate_at(u.step) / bound.item<double>() / (o_.skew ? 1 : 2);
    if (diagonal) {
      const Tensor gain = 1 - step * (much - even);
      factor.mul_(o_.skew ? gain : gain.square());
      return;
    }
    const Tensor once = factor - step * (much.mm(factor) - even * factor);
    if (o_.skew) {
      factor.copy_(rotated(once));
      return;
    }
    const Tensor twice = once - step * (once.mm(much) - even * once);
    factor.copy_((twice + twice.t()) / 2);
  }

  static Tensor through(const Tensor& left, const Tensor& x, const Tensor& right) {
    const Tensor half = left.dim() == 1 ? left.square().unsqueeze(1) * x : left.t().mm(left.mm(x));
    return right.dim() == 1 ? half * right.square() : half.mm(right.t()).mm(right);
  }

  Tensor white_block(const Update& u, const Cuts& cuts, int64_t block, const Tensor& moment) const {
    const auto factor_of = [&](const char* side, const Side& of, int64_t size) {
      const Tensor factor = u.state(side)[block].narrow(0, 0, size);
      return of.diagonal ? factor : factor.narrow(1, 0, size);
    };
    const int64_t rows = moment.size(0), columns = moment.size(1);
    const Tensor left = factor_of("left", cuts.rows, rows), right = factor_of("right", cuts.columns, columns);
    if (u.step % 100 == 0) {  // rebalances the two factors
      const double l = left.abs().max().item<double>(), r = right.abs().max().item<double>(), both = std::sqrt(l * r);
      left.mul_(both / l);
      right.mul_(both / r);
    }
    const Tensor white = through(left, with_noise(moment), right);
    const bool over = cuts.rows.diagonal, across = cuts.columns.diagonal;
    follow(u, left, u.state("left_bound")[block], over ? white.square().sum(1) : white.mm(white.t()), double(columns));
    follow(u, right, u.state("right_bound")[block], across ? white.square().sum(0) : white.t().mm(white), double(rows));
    return through(left, moment, right);
  }

  Tensor white_vector(const Update& u, const Tensor& moment) const {
    const Tensor factor = u.state("left")[0], flat = moment.view({-1});
    follow(u, factor, u.state("left_bound")[0], (factor.square() * with_noise(flat)).square(), 1);
    return (factor.square() * flat).view(moment.sizes());
  }

  KronOptions o_;
  // by shape: the same for every update, and expensive to compute
  mutable std::map<std::vector<int64_t>, Tensor> noise_;
};

}  // namespace

std::unique_ptr<UpdateRule> kron(const KronOptions& options) { return std::make_unique<Kron>(options); }

}  // namespace easydel::train
