// Masks beyond the recorded vectors (tests/probe/recorded_vectors_test.cpp).
#include "easydel/ops/mask_info.h"

#include <gtest/gtest.h>

#include "easydel/ops/mask_details.h"
#include "support/data.h"

namespace easydel::ops {
namespace {

TEST(MaskInfo, AMillionPositionsCostNothingUntilTheTableIsAskedFor) {
  const MaskInfo mask = MaskInfo::full(1, 1 << 20, 1 << 20).apply_causal().apply_sliding_window(4095, 0);
  EXPECT_TRUE(mask.allows(0, 1000000, 1000000));
  EXPECT_TRUE(mask.allows(0, 1000000, 1000000 - 4095));
  EXPECT_FALSE(mask.allows(0, 1000000, 1000000 - 4096));
  EXPECT_FALSE(mask.allows(0, 5, 6));
}

TEST(MaskInfo, TheTableSaysWhatThePairsSay) {
  const MaskInfo mask = MaskInfo::from_segments({{0, 0, 1, 1, -1}}).apply_causal();
  const Tensor table = mask.table();
  EXPECT_EQ(table.sizes(), (at::IntArrayRef{1, 1, 5, 5}));
  for (int64_t q = 0; q < 5; ++q)
    for (int64_t k = 0; k < 5; ++k) EXPECT_EQ(table[0][0][q][k].item<bool>(), mask.allows(0, q, k)) << q << " " << k;
}

TEST(MaskInfo, DecodingSeesTheKeysThatAreThere) {
  const MaskInfo mask = MaskInfo::full(2, 8, 8).apply_causal().apply_kv_lengths({3, 8}, 1, 8);
  EXPECT_EQ(mask.queries(), 1);
  EXPECT_TRUE(mask.allows(0, 0, 2));
  EXPECT_FALSE(mask.allows(0, 0, 3));
  EXPECT_TRUE(mask.allows(1, 0, 7));
}

TEST(MaskInfo, RefusesWhatDoesNotFit) {
  const MaskInfo mask = MaskInfo::full(1, 4, 4);
  EXPECT_EQ(test::refusal([&] { mask.apply_kv_lengths({3}, std::nullopt, 4); }),
            "mask: q_len must be provided\n    say how many queries each row has");
  EXPECT_EQ(test::refusal([&] {
              mask.apply_kv_lengths({3, 4}, 1, 4);
            }),
            "mask: 2 lengths for 1 rows\n    give one for each row");
  EXPECT_EQ(test::refusal([&] { mask.apply_chunked(0); }), "mask: chunks of 0\n    a chunk has at least one position");
  EXPECT_EQ(test::refusal([] {
              MaskInfo::from_cu_seqlens({0, 3, 5}, 8);
            }),
            "mask: cu_seqlens must have even length (batch*2), got 3\n    give for each row where it begins and ends");
  EXPECT_EQ(test::refusal([] {
              MaskInfo::from_segments({{0, 0}, {0}});
            }),
            "mask: queries have rows of 2 and of 1\n    rows are equally long");
}

TEST(FcmMask, HidesAShareOfTheKeysButNeverTheFirst) {
  EXPECT_FALSE(fcm_mask(1, 8, 0.0, 0.5, true, 7));
  EXPECT_FALSE(fcm_mask(1, 8, 0.0, 0.0, false, 7));
  const Tensor mask = *fcm_mask(2, 200, 0.3, 0.3, false, 7);
  EXPECT_TRUE(mask.select(-1, 0).all().item<bool>());
  EXPECT_NEAR(1.0 - mask.to(at::kFloat).mean().item<double>(), 0.3, 0.02);
  EXPECT_TRUE(mask.equal(*fcm_mask(2, 200, 0.3, 0.3, false, 7)));
  EXPECT_FALSE(mask.equal(*fcm_mask(2, 200, 0.3, 0.3, false, 8)));
  EXPECT_EQ(test::refusal([] { fcm_mask(1, 4, 0.6, 0.5, false, 1); }),
            "fcm_min_ratio: 0.6 to 0.5 is not a range within 0 to 1\n    0 <= fcm_min_ratio <= fcm_max_ratio <= 1");
}

TEST(MaskDetails, EachLayerHasTheKindOfItsTypeAndTheWindowOfAll) {
  const auto details =
      get_mask_details(parse_yaml("{layer_types: [full_attention, sliding_attention, chunk_attention], sliding_window: "
                                  "7, attention_chunk_size: 9}"));
  ASSERT_TRUE(details);
  EXPECT_EQ(name_of((*details)[0].mask_type), "ATTN_MASK_FULL");
  EXPECT_EQ(name_of((*details)[1].mask_type), "ATTN_MASK_SLIDING");
  EXPECT_EQ(name_of((*details)[2].mask_type), "ATTN_MASK_CHUNK");
  for (const AttnMaskDetail& detail : *details) {
    EXPECT_EQ(detail.size, 7);
    EXPECT_EQ(detail.chunks, 9);
  }
  EXPECT_FALSE(get_mask_details(parse_yaml("{sliding_window: 7}")));
  EXPECT_EQ(test::refusal([] { get_mask_details(parse_yaml("{layer_types: [hybrid]}")); }),
            "layer_types: `hf_type` hybrid is not available\n"
            "    layers with masks: full_attention, sliding_attention, chunk_attention, chunked_attention");
}

}  // namespace
}  // namespace easydel::ops
