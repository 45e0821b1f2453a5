// A policy that adds an adapter whose second half is zero to everything that it is asked about. The adapter's product
// is computed and added, so a model with it shows whether some code bypasses the policy or changes a bit.
#pragma once

#include <ATen/ops/arange.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "easydel/nn/adapted_weight.h"
#include "easydel/nn/weight_policy.h"

namespace easydel::models {

class ZeroAdapters final : public nn::WeightPolicy {
 public:
  explicit ZeroAdapters(int64_t rank = 2) : rank_(rank) {}

  std::shared_ptr<nn::Weight> linear(const nn::Scope& scope, nn::Entry& entry, std::shared_ptr<nn::Weight> weight,
                                     bool shared) override {
    ++made[shared ? "tied head" : entry.head ? "head" : "linear"];
    const Pair pair{add(scope, "lora_A.weight", {rank_, entry.shape[1]}, 0.1),
                    add(scope, "lora_B.weight", {entry.shape[0], rank_}, 0.0)};
    return std::make_shared<Adapted>(std::move(weight), pair, this);
  }
  // A is held by rows of the vocabulary, so that a token reads its own.
  std::shared_ptr<nn::Weight> embedding(const nn::Scope& scope, nn::Entry& entry,
                                        std::shared_ptr<nn::Weight> weight) override {
    ++made["embedding"];
    const Pair pair{add(scope, "lora_embedding_A", {entry.shape[0], rank_}, 0.1),
                    add(scope, "lora_embedding_B", {entry.shape[1], rank_}, 0.0)};
    return std::make_shared<AdaptedRows>(std::move(weight), pair, this);
  }
  std::shared_ptr<nn::WeightStack> experts(const nn::Scope& scope, nn::Entry& entry,
                                           std::shared_ptr<nn::WeightStack> weight) override {
    ++made["experts"];
    const Pair pair{add(scope, "lora_A.weight", {entry.shape[0], rank_, entry.shape[2]}, 0.1),
                    add(scope, "lora_B.weight", {entry.shape[0], entry.shape[1], rank_}, 0.0)};
    return std::make_shared<AdaptedStack>(std::move(weight), pair, this);
  }

  // Number of adapters created, and of products added, by kind.
  std::map<std::string, int64_t> made, used;

 private:
  struct Pair {
    nn::Entry *a, *b;
  };

  static nn::Entry* add(const nn::Scope& scope, const char* name, std::vector<int64_t> shape, double deviation) {
    const nn::Initial initial = deviation > 0 ? nn::Initial::normal(deviation) : nn::Initial::zeros();
    return &scope.parameter(name, std::move(shape), nn::Role::weight, {.initial = initial, .adapter = true}).entry();
  }

  // y + B A x, where `product` is -B A x: subtracting +0 leaves every number as it is, while adding it would make +0
  // of -0.
  static Tensor sum(const Tensor& y, const Tensor& product) { return y - product; }

  struct Adapted : nn::Weight {
    Adapted(std::shared_ptr<nn::Weight> weight, Pair pair, ZeroAdapters* counts)
        : base(std::move(weight)), of(pair), low_rank(nn::Parameter(of.a), nn::Parameter(of.b), 1), policy(counts) {}
    Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, nn::Pass& pass) override {
      return with_adapter(base->product(x, bias, name, pass), x, pass);
    }
    Tensor gated_product(const Tensor& gate, const Tensor& up, ops::Activation kind, const Tensor& bias,
                         std::string_view name, nn::Pass& pass) override {
      return product(ops::gated(gate, up, kind), bias, name, pass);
    }
    std::optional<AdaptedMatrix> adapted_matrix(const Tensor& x, nn::Pass& pass) override {
      std::optional<AdaptedMatrix> out = base->adapted_matrix(x, pass);
      const auto forms = out && !at::GradMode::is_enabled() ? low_rank.forms(x, pass) : nullptr;
      if (!forms || !ops::adds_rows(*forms, x)) return std::nullopt;
      ++policy->used["products"];
      out->added.push_back({{}, forms, 1});
      return out;
    }
    std::vector<ops::Factors> factors(const Tensor& x, nn::Pass& pass) override {
      ++policy->used["factors"];
      std::vector<ops::Factors> out = base->factors(x, pass);
      const Tensor low = of.a->weight->product(x, {}, {}, pass);
      for (ops::Factors& one : of.b->weight->factors(low, pass)) out.push_back(std::move(one));
      return out;
    }
    Tensor lookup(const Tensor& indices, int64_t padding, nn::Pass& pass) override {
      return base->lookup(indices, padding, pass);
    }
    std::shared_ptr<nn::WeightStack> by_head(const nn::HeadRows& rows) override {
      return std::make_shared<AdaptedHeads>(base->by_head(rows), of, rows, policy);
    }
    Tensor values() const override { return base->values(); }

    Tensor with_adapter(Tensor y, const Tensor& x, nn::Pass& pass) {
      ++policy->used["products"];
      return low_rank(std::move(y), x, pass);
    }

    std::shared_ptr<nn::Weight> base;
    Pair of;
    nn::LowRankSum low_rank;
    ZeroAdapters* policy;
  };

  struct AdaptedRows final : Adapted {
    using Adapted::Adapted;
    Tensor lookup(const Tensor& indices, int64_t padding, nn::Pass& pass) override {
      ++policy->used["lookups"];
      const Tensor low = of.a->weight->lookup(indices, padding, pass);
      return sum(base->lookup(indices, padding, pass), of.b->weight->product(-low, {}, {}, pass));
    }
  };

  struct AdaptedStack final : nn::WeightStack {
    AdaptedStack(std::shared_ptr<nn::WeightStack> weight, Pair pair, ZeroAdapters* counts)
        : base(std::move(weight)), of(pair), policy(counts) {}
    Tensor product(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, nn::Pass& pass) override {
      ++policy->used["stacks"];
      const Tensor low = of.a->stack->product(x, begin, {}, pass);
      return sum(base->product(x, begin, bias, pass), of.b->stack->product(-low, begin, {}, pass));
    }

    std::shared_ptr<nn::WeightStack> base;
    Pair of;
    ZeroAdapters* policy;
  };

  // All heads share A; each has its own rows of B.
  struct AdaptedHeads final : nn::WeightStack {
    AdaptedHeads(std::shared_ptr<nn::WeightStack> weight, Pair pair, const nn::HeadRows& rows, ZeroAdapters* counts)
        : base(std::move(weight)), transposed(rows.transposed), policy(counts) {
      b = pair.b->weight->by_head(rows);
      a = pair.a->weight->by_head({1, 0, pair.a->shape[0], transposed});
    }
    Tensor product(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, nn::Pass& pass) override {
      ++policy->used["heads"];
      const std::vector<int64_t> all = {0, x.size(0)};
      const Tensor low = transposed ? b->product(x, begin, {}, pass) : a->product(x, all, {}, pass);
      const Tensor added = transposed ? a->product(-low, all, {}, pass) : b->product(-low, begin, {}, pass);
      return sum(base->product(x, begin, bias, pass), added);
    }

    std::shared_ptr<nn::WeightStack> base, a, b;
    bool transposed;
    ZeroAdapters* policy;
  };

  int64_t rank_;
};

}  // namespace easydel::models
