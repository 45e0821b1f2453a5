#include "easydel/ops/rope.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace easydel::ops {
namespace {

// The bits of transformers' inverse frequencies (5.23, modeling_rope_utils.py), head dimension 8.
void expect_bits(const RopeSpec& spec, int64_t length, const std::vector<uint32_t>& bits) {
  const Tensor inverse = frequencies(spec, length).inverse;
  ASSERT_EQ(inverse.numel(), int64_t(bits.size()));
  EXPECT_EQ(std::memcmp(inverse.const_data_ptr<float>(), bits.data(), bits.size() * 4), 0);
}

RopeSpec spec_of(RopeType type) {
  RopeSpec spec;
  spec.type = type;
  spec.dim = 8;
  spec.max_positions = 64;
  spec.original_max_positions = 16;
  spec.factor = 4.0;
  return spec;
}

TEST(Rope, HasTransformersBitsForTheStandard) {
  const RopeSpec spec = spec_of(RopeType::standard);
  expect_bits(spec, 10, {0x3f800000u, 0x3dcccccdu, 0x3c23d70au, 0x3a83126fu});
}

TEST(Rope, HasTransformersBitsForLinear) {
  const RopeSpec spec = spec_of(RopeType::linear);
  expect_bits(spec, 10, {0x3e800000u, 0x3ccccccdu, 0x3b23d70au, 0x3983126fu});
}

TEST(Rope, HasTransformersBitsForDynamicWithinItsLength) {
  const RopeSpec spec = spec_of(RopeType::dynamic);
  expect_bits(spec, 10, {0x3f800000u, 0x3dcccccdu, 0x3c23d70au, 0x3a83126fu});
}

TEST(Rope, HasTransformersBitsForDynamicBeyondItsLength) {
  const RopeSpec spec = spec_of(RopeType::dynamic);
  expect_bits(spec, 100, {0x3f800000u, 0x3d8a4305u, 0x3b9558a5u, 0x39a151c4u});
}

TEST(Rope, HasTransformersBitsForYarn) {
  const RopeSpec spec = spec_of(RopeType::yarn);
  expect_bits(spec, 10, {0x3f800000u, 0x3ccccccdu, 0x3b23d70au, 0x3983126fu});
}

TEST(Rope, HasTransformersBitsForLlama3) {
  RopeSpec spec = spec_of(RopeType::llama3);
  spec.theta = 500000.0;
  spec.factor = 8.0;
  expect_bits(spec, 10, {0x3f13786eu, 0x3b9a08c8u, 0x39395d21u, 0x36df10c4u});
}

TEST(Rope, HasTransformersBitsForLongropeShort) {
  RopeSpec spec = spec_of(RopeType::longrope);
  spec.short_factor = {1.1, 1.2, 1.3, 1.4};
  spec.long_factor = {2.0, 2.5, 3.0, 3.5};
  expect_bits(spec, 10, {0x3f68ba2eu, 0x3daaaaabu, 0x3bfc0fc1u, 0x3a3b3ee7u});
}

TEST(Rope, HasTransformersBitsForLongropeLong) {
  RopeSpec spec = spec_of(RopeType::longrope);
  spec.short_factor = {1.1, 1.2, 1.3, 1.4};
  spec.long_factor = {2.0, 2.5, 3.0, 3.5};
  expect_bits(spec, 40, {0x3f000000u, 0x3d23d70au, 0x3b5a740eu, 0x3995cbecu});
}

TEST(Rope, HasTransformersBitsForProportional) {
  RopeSpec spec = spec_of(RopeType::proportional);
  spec.factor = 8.0;
  spec.angles = 2;
  expect_bits(spec, 10, {0x3e000000u, 0x3c4ccccdu, 0x00000000u, 0x00000000u});
}

TEST(Rope, HasTransformersBitsForYarnThatIsNotTruncated) {
  RopeSpec spec = spec_of(RopeType::yarn);
  spec.theta = 150000.0;
  spec.factor = 32.0;
  spec.truncate = false;
  expect_bits(spec, 10, {0x3f800000u, 0x3ad02194u, 0x38a93696u, 0x3689928cu});
}

TEST(Rope, EachPairTurnsByThePositionOfItsSection) {
  RopeSpec spec = spec_of(RopeType::standard);
  spec.dim = 16;
  spec.mrope_section = {4, 2, 2};
  const auto choice = [&] {
    const Tensor tensor = mrope_choice(spec);
    return std::vector<int64_t>(tensor.const_data_ptr<int64_t>(), tensor.const_data_ptr<int64_t>() + 8);
  };
  EXPECT_EQ(choice(), (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 2, 2}));
  spec.mrope_interleaved = true;
  EXPECT_EQ(choice(), (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 0}));
}

TEST(Rope, TurnsBackToWhereItCameFrom) {
  const Tensor x = at::randn({5, 2, 8}), positions = at::arange(5, at::kLong);
  const RopeTable table = rope_table(spec_of(RopeType::standard), positions, {0, 5});
  const RopeTable back{table.cos, -table.sin, false};
  EXPECT_TRUE(rope(rope(x, table), back).allclose(x, 1e-5, 1e-6));
}

TEST(Rope, TurnsRowsOnTheirWayIntoACache) {
  for (const bool interleaved : {false, true})
    for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
      RopeSpec spec = spec_of(RopeType::standard);
      spec.dim = 6;
      spec.interleaved = interleaved;
      const Tensor x = at::randn({7, 3, 10}).to(type);
      const RopeTable table = rope_table(spec, at::arange(4, 11, at::kLong), {0, 7});
      const Tensor whole = rope(x, table), cache = at::zeros({3, 20, 10}, x.options()).permute({1, 0, 2});
      rope_into(x.slice(0, 2, 6), table, 2, cache.slice(0, 5, 9));
      EXPECT_TRUE(cache.slice(0, 5, 9).equal(whole.slice(0, 2, 6)));
      EXPECT_TRUE(cache.slice(0, 0, 5).eq(0).all().item<bool>() && cache.slice(0, 9, 20).eq(0).all().item<bool>());
    }
}

TEST(Rope, TakesADynamicLengthFromEachSequenceAlone) {
  const RopeSpec spec = spec_of(RopeType::dynamic);
  const Tensor positions = at::cat({at::arange(100, at::kLong), at::arange(10, at::kLong)});
  const RopeTable both = rope_table(spec, positions, {0, 100, 110});
  const RopeTable alone = rope_table(spec, at::arange(10, at::kLong), {0, 10});
  EXPECT_TRUE(both.cos.slice(0, 100, 110).equal(alone.cos));
}

TEST(Rope, MultipliesADimensionThatIsAloneForwardAndBackward) {
  RopeSpec spec = spec_of(RopeType::standard);
  spec.dim = 1;
  spec.angles = 1;
  const RopeTable table = rope_table(spec, at::arange(5), {0, 5});
  const Tensor x = at::randn({5, 2, 6}).requires_grad_(true);
  const Tensor rotated = rope(x, table);
  const Tensor angle = at::arange(5).to(at::kFloat).unsqueeze(1), by = (angle.cos() - angle.sin()) * std::sqrt(2.0);
  EXPECT_LE((rotated.select(-1, 0) - x.select(-1, 0) * by).abs().max().item<float>(), 1e-6);
  EXPECT_TRUE(rotated.narrow(-1, 1, 5).equal(x.narrow(-1, 1, 5)));
  rotated.sum().backward();
  EXPECT_LE((x.grad().select(-1, 0) - by).abs().max().item<float>(), 1e-6);
  EXPECT_TRUE(x.grad().narrow(-1, 1, 5).eq(1).all().item<bool>());
  const Tensor rows = at::zeros({3, 2, 6});
  rope_into(x.detach().slice(0, 1, 4), table, 1, rows);
  EXPECT_TRUE(rows.equal(rotated.detach().slice(0, 1, 4)));
}

}  // namespace
}  // namespace easydel::ops
