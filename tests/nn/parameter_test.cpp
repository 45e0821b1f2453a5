// The table of parameters, and the rule for linear layers.
#include "easydel/nn/parameter.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/nn/weight.h"
#include "easydel/quant/quantize.h"
#include "nn/built.h"

namespace easydel::nn {
namespace {

Entry entry_of(Role role, std::vector<int64_t> shape) {
  Entry entry;
  entry.path = "model.layers.0.mlp.up_proj.weight";
  entry.role = role;
  entry.shape = std::move(shape);
  return entry;
}

TEST(Parameters, OnlyProductsOfTwoDimensionsAreLinearLayers) {
  Entry entry = entry_of(Role::weight, {4, 3});
  EXPECT_TRUE(is_linear(entry));
  entry.head = true;
  EXPECT_TRUE(is_linear(entry));  // an output layer is one
  entry.router = true;
  EXPECT_FALSE(is_linear(entry));
  entry.router = false;
  entry.adapter = true;
  EXPECT_FALSE(is_linear(entry));
  EXPECT_FALSE(is_linear(entry_of(Role::weight, {2, 4, 3})));  // experts
  for (const Role role : {Role::embedding, Role::norm, Role::bias, Role::other})
    EXPECT_FALSE(is_linear(entry_of(role, {4, 3})));
}

TEST(Parameters, AreNamedByTheirLayer) {
  Entry entry = entry_of(Role::weight, {4, 3});
  EXPECT_EQ(layer_name(entry), "model.layers.0.mlp.up_proj");
  entry.path = "model.A_log";
  EXPECT_EQ(layer_name(entry), "model.A_log");
}

TEST(Parameters, AreFoundByTheirPathAndHaveOneEach) {
  ParameterTable table;
  Entry& first = table.add(entry_of(Role::weight, {4, 3}));
  EXPECT_EQ(first.elements(), 12);
  EXPECT_EQ(table.find(first.path), &first);
  EXPECT_EQ(table.find("model"), nullptr);
  EXPECT_THROW(table.add(entry_of(Role::bias, {4})), Bug);
}

TEST(Parameters, OfCodesHaveTheValuesThatTheCodesStandFor) {
  Built built;
  const Parameter parameter =
      built.scope().parameter("weight", {24, 64}, Role::weight, {.initial = Initial::normal(0.1)});
  Entry& entry = parameter.entry();
  EXPECT_EQ(parameter.value().const_data_ptr(), entry.shard.const_data_ptr());
  const auto codes = quant::quantize(entry.shard, quant::format_of({.method = "nf4"}, "quantization"));
  entry.weight = quantized_weight(parameter, {{}, {}, nullptr, codes}, at::kFloat);
  entry.shard = Tensor();
  EXPECT_TRUE(parameter.value().equal(entry.weight->values()));
}

TEST(Parameters, CountWritesOfTheirShard) {
  Entry entry = entry_of(Role::weight, {4, 3});
  const uint64_t before = entry.version;
  entry.written();
  EXPECT_EQ(entry.version, before + 1);
}

}  // namespace
}  // namespace easydel::nn
