// The layers that decoders are composed of. Each takes its scope first, then its sizes.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "easydel/nn/pass.h"
#include "easydel/nn/region.h"
#include "easydel/nn/scope.h"
#include "easydel/ops/activation.h"
#include "easydel/ops/norm.h"

namespace easydel::nn {

struct LinearOptions {
  bool bias = false;
  Split split = Split::none;
  double deviation = 0.02;  // of initial values
  Region region = {};       // divided: this rank computes its part of the output, or from its part of the input
  std::optional<Initial> initial = {};  // of the weight, instead of normal values
};

class Linear {
 public:
  struct Named {
    const Linear* layer;
    std::string_view name;
  };
  Linear(const Scope& scope, int64_t in, int64_t out, const LinearOptions& options);
  // x [tokens, in] -> [tokens, out], named `name` in the pass. In a divided region a split output is this rank's part
  // of `out`, and a split input its part of `in`.
  Tensor operator()(const Tensor& x, Pass& pass, std::string_view name) const;
  // What each layer makes of x. Without a backward their products are made together (ops::products).
  static std::vector<Tensor> of_one_input(const Tensor& x, Pass& pass, std::span<const Named> layers);
  Parameter weight() const { return weight_; }
  // The same of ops::gated(gate, up).
  Tensor gated(const Tensor& gate, const Tensor& up, ops::Activation kind, Pass& pass, std::string_view name) const;

 private:
  // product(bias, name), summed over the ranks of a divided region. The sum is computed again in a recomputation.
  template <class Product>
  Tensor finish(Pass& pass, std::string_view name, Product&& product) const;

  Parameter weight_, bias_;
  Region sum_;  // divided: a product with a split input is summed over its ranks
};

class Embedding {
 public:
  // Row `padding` starts at zero and gets no gradient from the lookup, as torch's padding_idx; -1: none.
  Embedding(const Scope& scope, int64_t rows, int64_t size, double deviation, Split split = Split::vocabulary,
            int64_t padding = -1);
  Tensor operator()(const Tensor& indices, Pass& pass) const;  // int64 [tokens] -> [tokens, size]
  Parameter weight() const { return weight_; }

 private:
  Parameter weight_;
  int64_t padding_;
  bool of_tokens_;  // instead of positions or types of tokens
};

enum class NormKind : uint8_t { rms, layer };

class Norm {
 public:
  struct Options {
    NormKind kind = NormKind::rms;
    double epsilon = 1e-6;
    double offset = 0.0;     // the scale is offset + weight
    bool bias = true;        // layer norms only
    bool shift = false;      // rms norms: with a bias
    bool in_region = false;  // its input is divided over ranks of the tensor axis
    bool weight = true;      // false: without parameters
    bool wide = false;       // rms norms: scaled in fp32 and then rounded, as with an offset
  };
  Norm(const Scope& scope, int64_t size, const Options& options);
  Tensor operator()(const Tensor& x) const;                              // over the last dimension
  ops::NormOfSum after_sum(const Tensor& x, const Tensor& added) const;  // of x + added, and the sum

 private:
  Tensor shifted(const Tensor& x) const;

  Options options_;
  Parameter weight_, bias_;
};

// down(activation(gate(x)) * up(x))
class GatedMlp {
 public:
  GatedMlp(const Scope& scope, int64_t size, int64_t inner, ops::Activation activation, const LinearOptions& options);
  Tensor operator()(const Tensor& x, Pass& pass) const;

 private:
  Region region_;
  Linear gate_, up_, down_;
  ops::Activation activation_;
};

// down(activation(up(x)))
class Mlp {
 public:
  struct Names {
    std::string_view up, down;
  };
  Mlp(const Scope& scope, int64_t size, int64_t inner, ops::Activation activation, const LinearOptions& up,
      const LinearOptions& down, const Names& names);
  Tensor operator()(const Tensor& x, Pass& pass) const;

 private:
  Region region_;
  Linear up_, down_;
  ops::Activation activation_;
};

}  // namespace easydel::nn
