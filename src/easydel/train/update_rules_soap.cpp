// SOAP (arXiv:2409.11321): Adam in slowly rotating eigenbases. This file finds and follows the bases.
#include <ATen/ops/argsort.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/tensordot.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/train/update_rules.h"

namespace easydel::train {
namespace {

std::string gram_of(int64_t dim) { return str("gram", dim); }
std::string basis_of(int64_t dim) { return str("basis", dim); }

class Soap final : public UpdateRule {
 public:
  explicit Soap(const SoapOptions& options) : o_(options) {}
  bool whole() const override { return true; }

  OptimizerStates start(const Tensor& value) const override {
    OptimizerStates out = {
        {"mean", at::zeros_like(value)}, {"square", at::zeros_like(value)}, {"count", at::zeros({}, value.options())}};
    for (int64_t dim = 0; dim < value.dim(); ++dim) {
      if (!has_basis(value, dim)) continue;
      const int64_t rows = value.size(dim);
      for (const std::string& name : {gram_of(dim), basis_of(dim)})
        out.emplace(name, at::zeros({rows, rows}, value.options()));
    }
    return out;
  }

  void update(const Update& u) const override {
    Tensor& count = u.state("count");
    const double step = count.item<double>();  // updates before this one; the first one only initializes the bases
    count.add_(1);
    if (step == 0) {
      gather(u);
      for (int64_t dim = 0; dim < u.value.dim(); ++dim)
        if (has_basis(u.value, dim))
          u.state(basis_of(dim)).copy_(std::get<1>(at::linalg_eigh(u.state(gram_of(dim)).to(at::kDouble))).flip(1));
      return;
    }
    const Tensor turned = turn(u, u.gradient);
    Tensor &mean = u.state("mean"), &square = u.state("square");
    mean.mul_(o_.b1).add_(turned, 1 - o_.b1);
    square.mul_(o_.b2).addcmul_(turned, turned, 1 - o_.b2);
    const double rate = u.rate * std::sqrt(1 - std::pow(o_.b2, step)) / (1 - std::pow(o_.b1, step));
    u.value.add_(turn_back(u, mean / square.sqrt().add_(o_.eps)), -rate);
    if (u.decay != 0) u.value.mul_(1 - u.rate * u.decay);
    // After the update, so that a gradient never chooses the basis in which it is used.
    gather(u);
    if (int64_t(step) % o_.frequency != 0) return;
    const Tensor straight = turn_back(u, mean);
    follow(u);
    mean.copy_(turn(u, straight));
  }

 private:
  bool has_basis(const Tensor& value, int64_t dim) const { return value.dim() > 1 && value.size(dim) <= o_.max_rows; }

  void gather(const Update& u) const {
    for (int64_t dim = 0; dim < u.value.dim(); ++dim) {
      if (!has_basis(u.value, dim)) continue;
      const Tensor rows = u.gradient.movedim(dim, 0).reshape({u.value.size(dim), -1});
      u.state(gram_of(dim)).lerp_(rows.mm(rows.t()), 1 - o_.shampoo_b);
    }
  }

  // Rotates every dimension into its basis, or out of it: each contraction moves one dimension to the end, so after all
  // of them the order is the old one.
  Tensor contracted(const Update& u, Tensor x, int64_t of_basis) const {
    for (int64_t dim = 0; dim < u.value.dim(); ++dim)
      x = has_basis(u.value, dim) ? at::tensordot(x, u.state(basis_of(dim)), {0}, {of_basis}) : x.movedim(0, -1);
    return x;
  }
  Tensor turn(const Update& u, const Tensor& x) const { return contracted(u, x, 0); }
  Tensor turn_back(const Update& u, const Tensor& x) const { return contracted(u, x, 1); }

  // One power iteration; directions are sorted by their energy, the largest first.
  void follow(const Update& u) const {
    Tensor& square = u.state("square");
    for (int64_t dim = 0; dim < u.value.dim(); ++dim) {
      if (!has_basis(u.value, dim)) continue;
      const Tensor& gram = u.state(gram_of(dim));
      Tensor& basis = u.state(basis_of(dim));
      const Tensor order =
          at::argsort(at::diagonal(basis.t().mm(gram).mm(basis)), /*stable=*/true, 0, /*descending=*/true);
      square.copy_(square.index_select(dim, order));
      basis.copy_(std::get<0>(at::linalg_qr(gram.mm(basis.index_select(1, order)))));
    }
  }

  SoapOptions o_;
};

}  // namespace

std::unique_ptr<UpdateRule> soap(const SoapOptions& options) { return std::make_unique<Soap>(options); }

}  // namespace easydel::train
