// Where layers ask for parameters: names, marks, and the policies that decide how weights are read.
#include "easydel/nn/scope.h"

#include <gtest/gtest.h>

#include "easydel/nn/weight_policy.h"
#include "nn/built.h"

namespace easydel::nn {
namespace {

TEST(Scope, NamesParametersAsCheckpointsAndEasyDeLDo) {
  Built built;
  const Scope scope = (built.scope() / "model.layers" / 3).unit(3) / "mlp" / "up_proj";
  const Entry& weight = scope.parameter("weight", {4, 3}, Role::weight, {}).entry();
  EXPECT_EQ(weight.path, "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(weight.easydel_path, "model/layers/3/mlp/up_proj/kernel");
  EXPECT_EQ(weight.unit, 3);
  EXPECT_FALSE(weight.head);
  EXPECT_EQ(weight.source.tensors, std::vector<std::string>{weight.path});
  const Entry& norm = scope.head().parameter("norm", {4}, Role::norm, {.easydel_name = "scale"}).entry();
  EXPECT_EQ(norm.easydel_path, "model/layers/3/mlp/up_proj/scale");
  EXPECT_TRUE(norm.head);
  EXPECT_EQ((built.scope() / "").path(), "");
}

TEST(Scope, MakesReadersForWhatProductsRead) {
  Built built;
  const Scope scope = built.scope();
  EXPECT_NE(scope.parameter("a", {4, 3}, Role::weight, {}).entry().weight, nullptr);
  EXPECT_NE(scope.parameter("b", {4, 3}, Role::embedding, {}).entry().weight, nullptr);
  const Entry& stack = scope.parameter("c", {2, 4, 3}, Role::weight, {}).entry();
  EXPECT_EQ(stack.weight, nullptr);
  EXPECT_NE(stack.stack, nullptr);
  for (const Role role : {Role::norm, Role::bias, Role::other}) {
    const Entry& entry = scope.parameter(std::to_string(int(role)), {4, 3}, role, {}).entry();
    EXPECT_TRUE(!entry.weight && !entry.stack && !entry.forms);
  }
}

TEST(Scope, GivesWhatWasAskedForSinceAMark) {
  Built built;
  const Scope scope = built.scope();
  (void)scope.parameter("before", {1}, Role::bias, {});
  const size_t mark = scope.mark();
  (void)scope.parameter("after", {1}, Role::bias, {});
  ASSERT_EQ(scope.since(mark).size(), 1u);
  EXPECT_EQ(scope.since(mark)[0].entry().path, "after");
}

TEST(Scope, KeepsExactParametersInFp32) {
  Built built(at::kBFloat16);
  EXPECT_EQ(built.scope().parameter("a", {1}, Role::bias, {.exact = true}).entry().compute, at::kFloat);
  EXPECT_EQ(built.scope().parameter("b", {1}, Role::bias, {}).entry().compute, at::kBFloat16);
}

// Records its calls, and creates a parameter of its own for each linear layer.
struct Recorder final : WeightPolicy {
  std::vector<std::string> asked;

  std::shared_ptr<Weight> linear(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight,
                                 bool shared) override {
    asked.push_back("linear " + scope.path() + " " + entry.path + (shared ? " shared" : ""));
    (void)scope.parameter("adapter" + std::to_string(asked.size()), {2, 3}, Role::weight, {.adapter = true});
    return weight;
  }
  std::shared_ptr<Weight> embedding(const Scope&, Entry& entry, std::shared_ptr<Weight> weight) override {
    asked.push_back("embedding " + entry.path);
    return weight;
  }
  std::shared_ptr<WeightStack> experts(const Scope&, Entry& entry, std::shared_ptr<WeightStack> weight) override {
    asked.push_back("experts " + entry.path);
    return weight;
  }
};

TEST(Scope, AsksPoliciesForEachWeightOnce) {
  Built built;
  const auto policy = std::make_shared<Recorder>();
  built.building.weight_policies = {policy};
  const Scope scope = built.scope() / "m";
  const size_t mark = scope.mark();
  (void)(scope / "q").parameter("weight", {4, 3}, Role::weight, {});
  (void)scope.parameter("experts", {2, 4, 3}, Role::weight, {});
  (void)scope.parameter("router", {2, 3}, Role::weight, {.router = true});
  (void)scope.parameter("norm", {3}, Role::norm, {});
  const Parameter embedding = scope.parameter("embed", {9, 3}, Role::embedding, {});
  (void)(scope / "lm_head").reader_of(embedding);
  EXPECT_EQ(policy->asked, (std::vector<std::string>{"linear m.q m.q.weight", "experts m.experts", "embedding m.embed",
                                                     "linear m.lm_head m.embed shared"}));
  // The policy's parameters belong to the layer and follow the weight.
  EXPECT_EQ(scope.since(mark)[1].entry().path, "m.q.adapter1");
  EXPECT_TRUE(scope.since(mark)[1].entry().adapter);
}

TEST(Scope, GivesEachPolicyWhatTheOneBeforeItMade) {
  struct Replacing final : WeightPolicy {
    std::shared_ptr<Weight> given, made;
    std::shared_ptr<Weight> linear(const Scope&, Entry& entry, std::shared_ptr<Weight> weight, bool) override {
      given = weight;
      return made = dense_weight(entry.forms);
    }
  };
  Built built;
  const auto first = std::make_shared<Replacing>(), second = std::make_shared<Replacing>();
  built.building.weight_policies = {first, std::make_shared<WeightPolicy>(), second};
  const Entry& entry = built.scope().parameter("a", {4, 3}, Role::weight, {}).entry();
  EXPECT_EQ(second->given, first->made);
  EXPECT_EQ(entry.weight, second->made);
  EXPECT_NE(first->given, nullptr);
}

}  // namespace
}  // namespace easydel::nn
