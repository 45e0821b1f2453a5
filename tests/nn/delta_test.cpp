// The mixers by the gated delta rule: texts that arrive in pieces, and fused projections.
#include "easydel/nn/delta.h"

#include <gtest/gtest.h>

#include "nn/mixer_in_pieces.h"

namespace easydel::nn {
namespace {

DeltaSpec delta_spec(int64_t k_heads) {
  DeltaSpec spec;
  spec.hidden = 6, spec.k_heads = k_heads, spec.v_heads = 4, spec.k_dim = 8, spec.v_dim = 8, spec.deviation = 0.5;
  spec.output_deviation = 0.5;
  return spec;
}

// Rows of a fused projection: of each key head in turn its rows of all the parts.
Tensor fused(const std::vector<Tensor>& parts, int64_t heads) {
  std::vector<Tensor> rows;
  for (int64_t head = 0; head < heads; ++head)
    for (const Tensor& part : parts) {
      const int64_t count = part.size(0) / heads;
      rows.push_back(part.narrow(0, head * count, count));
    }
  return at::cat(rows);
}

TEST(GatedDelta, ReadsATextInPiecesAsAWholeAndFusedProjectionsAsOthers) {
  Built plain, together;
  const DeltaSpec spec = delta_spec(2);
  const GatedDelta mixer(plain.scope(), spec, false, 0), other(together.scope(), spec, true, 0);
  const Tensor out = expect_same_in_pieces(mixer, 6);
  EXPECT_GT(out.abs().max().item<float>(), 1e-3f);

  const auto value = [&](const char* name) { return plain.entry(name).shard; };
  const Tensor qkv = value("in_proj_qkv.weight");
  together.entry("in_proj_qkvz.weight")
      .shard.copy_(fused({qkv.slice(0, 0, 16), qkv.slice(0, 16, 32), qkv.slice(0, 32), value("in_proj_z.weight")}, 2));
  together.entry("in_proj_ba.weight").shard.copy_(fused({value("in_proj_b.weight"), value("in_proj_a.weight")}, 2));
  for (const char* name : {"conv1d.weight", "dt_bias", "A_log", "norm.weight", "out_proj.weight"})
    together.entry(name).shard.copy_(value(name));
  EXPECT_TRUE(expect_same_in_pieces(other, 6).allclose(out, 1e-5, 1e-5));
}

TEST(KimiDelta, ReadsATextInPiecesAsAWhole) {
  Built built;
  const KimiDelta mixer(built.scope(), delta_spec(4), 0);
  EXPECT_GT(expect_same_in_pieces(mixer, 6).abs().max().item<float>(), 1e-3f);
}

}  // namespace
}  // namespace easydel::nn
