// The tables hold the plans as they were tuned on a machine with 1 MiB of L2. Change a row only together with a
// measurement of that shape.
#include "easydel/kernels/product_plan.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace easydel::kernels {
namespace {

constexpr auto rows = LeftSide::rows, tiles = LeftSide::tiles, pairs = LeftSide::pairs;
constexpr auto panels_f32 = RightSide::panels_f32, panels_bf16 = RightSide::panels_bf16, row_major = RightSide::rows;
constexpr Caches one_mib{}, two_mib{.l2_bytes = 2 << 20, .l3_bytes = 16 << 20};

struct Expected {
  int64_t row_tasks, rows_per_slab, rows_per_fill, fills_per_task;
  int64_t panels_per_batch, panels_per_packing_task;
  int64_t rows_per_chunk, chunks, panel_groups;

  bool operator==(const Expected&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Expected& e) {
  return out << "tasks of rows " << e.row_tasks << "; slab " << e.rows_per_slab << ", fill " << e.rows_per_fill << " x "
             << e.fills_per_task << "; batch " << e.panels_per_batch << ", packing " << e.panels_per_packing_task
             << "; chunk " << e.rows_per_chunk << " x " << e.chunks << ", groups " << e.panel_groups;
}

// The plan of a product and of its first slab and batch.
Expected plan_of(const ProductShape& shape, int threads, const Caches& caches) {
  const ProductPlan plan = plan_product(shape, threads, caches);
  const int64_t slab_rows = std::min(plan.rows_per_slab, shape.m);
  const SlabPlan slab = plan_slab(shape, slab_rows, caches);
  const TaskGrid grid =
      plan_tasks(shape, plan, slab_rows, std::min(slab.panels_per_batch, shape.panels()), threads, caches);
  return {plan.row_tasks,      plan.rows_per_slab,    plan.rows_per_fill,
          plan.fills_per_task, slab.panels_per_batch, slab.panels_per_packing_task,
          grid.rows_per_chunk, grid.chunks,           grid.panel_groups};
}

struct ProductCase {
  const char* name;
  ProductShape shape;
  int threads;
  Caches caches;
  Expected expected;
};

TEST(ProductPlan, OfEachKindOfProduct) {
  const ProductCase cases[] = {
      // One row: nothing to share but panels.
      {"decode by pairs", {1, 2048, 2048, pairs, panels_bf16}, 2, one_mib, {0, 8160, 1, 1, 64, 0, 1, 1, 6}},
      {"decode by FMAs", {1, 2048, 2048, rows, panels_bf16}, 2, one_mib, {0, 4032, 12, 1, 64, 0, 12, 1, 10}},
      {"decode in fp32", {1, 576, 576, rows, panels_f32}, 2, one_mib, {0, 14496, 12, 1, 18, 0, 12, 1, 6}},
      {"decode, head", {1, 49152, 576, pairs, panels_bf16}, 2, one_mib, {0, 29088, 1, 1, 1536, 0, 1, 1, 30}},
      // Many sequences: the threads share even a few fills.
      {"32 rows", {32, 1536, 576, pairs, panels_bf16}, 2, one_mib, {0, 29088, 11, 2, 48, 0, 33, 1, 6}},
      // A prompt by pairs: each task packs its own rows, unless they are too few or too long for L2.
      {"prompt by pairs", {512, 1536, 576, pairs, panels_bf16}, 2, one_mib, {4, 29088, 12, 18, 48, 0, 516, 1, 8}},
      {"96 rows", {96, 1536, 576, pairs, panels_bf16}, 2, one_mib, {2, 29088, 12, 4, 48, 0, 96, 1, 6}},
      {"95 rows", {95, 1536, 576, pairs, panels_bf16}, 2, one_mib, {0, 29088, 12, 4, 48, 0, 96, 1, 6}},
      {"long rows", {512, 2048, 11008, pairs, panels_bf16}, 2, one_mib, {0, 1440, 12, 1, 64, 0, 516, 1, 12}},
      {"prompt by tiles", {512, 2048, 2048, tiles, panels_bf16}, 2, one_mib, {0, 8160, 32, 2, 64, 0, 256, 2, 64}},
      {"more L2", {512, 2048, 2048, tiles, panels_bf16}, 2, two_mib, {0, 8160, 32, 2, 64, 0, 512, 1, 64}},
      {"long by tiles", {2048, 4096, 11008, tiles, panels_bf16}, 2, one_mib, {0, 1440, 32, 1, 128, 0, 480, 3, 8}},
      {"prompt by FMAs", {512, 1536, 576, rows, panels_bf16}, 2, one_mib, {0, 14496, 12, 9, 48, 0, 264, 2, 48}},
      {"prompt in fp32", {512, 1536, 576, rows, panels_f32}, 4, one_mib, {0, 14496, 12, 9, 48, 0, 264, 2, 48}},
      // Narrow weights.
      {"8 columns", {512, 8, 2048, pairs, panels_bf16}, 4, one_mib, {4, 8160, 12, 5, 1, 0, 516, 1, 1}},
      {"33 columns", {300, 33, 64, rows, panels_f32}, 4, one_mib, {0, 131040, 12, 7, 2, 0, 300, 1, 2}},
      // Gradients: the row-major right side is packed first, 8 MiB at a time.
      {"dx by pairs", {1024, 576, 1536, pairs, row_major}, 2, one_mib, {0, 10848, 12, 7, 84, 4, 516, 2, 3}},
      {"dx, more L2", {1024, 576, 1536, pairs, row_major}, 2, two_mib, {0, 10848, 12, 7, 168, 4, 1032, 1, 6}},
      {"dx by tiles", {1024, 2048, 1536, tiles, row_major}, 2, one_mib, {0, 10848, 32, 2, 84, 4, 352, 3, 64}},
      {"dx by FMAs", {1024, 576, 1536, rows, row_major}, 2, one_mib, {0, 5376, 12, 3, 18, 0, 348, 3, 18}},
      // Long rows by tiles gather panels that are used twice, and pack those that are used more often.
      {"long dx", {1024, 2048, 8192, tiles, row_major}, 2, one_mib, {0, 2016, 32, 1, 64, 0, 512, 2, 4}},
      {"longer dx", {2048, 2048, 8192, tiles, row_major}, 2, one_mib, {0, 2016, 32, 1, 16, 4, 512, 4, 1}},
      {"dw by pairs", {1536, 576, 1024, pairs, row_major, true}, 2, one_mib, {0, 16320, 96, 1, 128, 4, 516, 3, 4}},
      {"dw by tiles", {1536, 576, 1024, tiles, row_major, true}, 2, one_mib, {0, 16320, 128, 1, 128, 4, 512, 3, 18}},
      {"dw by FMAs", {1536, 576, 1024, rows, row_major, true}, 2, one_mib, {0, 8160, 12, 5, 18, 0, 384, 4, 18}},
  };
  for (const ProductCase& c : cases) EXPECT_EQ(plan_of(c.shape, c.threads, c.caches), c.expected) << c.name;
}

TEST(ProductPlan, ChoosesThePackedFormByOrderAndInstructions) {
  using enum AccumulationOrder;
  constexpr MatrixInstructions none{}, fast_pairs{.pairs = true}, amx{.tiles = true};
  EXPECT_EQ(left_of_product(fp32_chain, amx, 512), rows);
  EXPECT_EQ(left_of_product(bf16_tile, none, 512), rows);
  EXPECT_EQ(left_of_product(bf16_tile, amx, 4), tiles);
  EXPECT_EQ(left_of_product(bf16_tile, amx, 3), rows);
  EXPECT_EQ(left_of_grouped_product(bf16_tile, amx), tiles);
  EXPECT_EQ(left_of_product(bf16_pairs, fast_pairs, 1), pairs);
  EXPECT_EQ(left_of_product(bf16_pairs, amx, 512), rows);
  EXPECT_EQ(left_of_gradient(DType::bf16, DType::bf16, fast_pairs), pairs);
  EXPECT_EQ(left_of_gradient(DType::bf16, DType::bf16, {.pairs = true, .tiles = true}), tiles);
  EXPECT_EQ(left_of_gradient(DType::bf16, DType::f32, fast_pairs), rows);
}

// Every row is packed and multiplied by every panel exactly once.
TEST(ProductPlan, CoversTheWholeProduct) {
  for (const LeftSide left : {rows, tiles, pairs})
    for (const RightSide right : {panels_f32, panels_bf16, row_major})
      for (const int threads : {1, 2, 7})
        for (const int64_t m : {1, 5, 33, 97, 512, 9001})
          for (const int64_t n : {1, 33, 2048})
            for (const int64_t k : {1, 100, 4096}) {
              const ProductShape shape{m, n, k, left, right};
              const ProductPlan plan = plan_product(shape, threads);
              ASSERT_GE(plan.rows_per_slab, plan.rows_per_fill);
              ASSERT_EQ(plan.rows_per_fill % plan.rows_per_block == 0 || left == tiles, true);
              const int64_t slab = std::min(plan.rows_per_slab, m);
              const TaskGrid grid = plan_tasks(shape, plan, slab, shape.panels(), threads);
              ASSERT_GE(grid.rows_per_chunk * grid.chunks, slab);
              ASSERT_LT(grid.rows_per_chunk * (grid.chunks - 1), slab);
              ASSERT_GE(grid.panel_groups, 1);
              ASSERT_LE(grid.panel_groups, shape.panels());
              ASSERT_EQ(grid.rows_per_chunk % (left == tiles ? tile_rows : plan.rows_per_block), 0);
            }
}

struct ExpectedGroup {
  bool weight_in_place;
  int64_t rows_per_block, rows_per_fill, rows_per_piece, panels_per_call, rows_per_chunk;
  int64_t packing_tasks, packing_tasks_alone, product_tasks, product_tasks_alone;

  bool operator==(const ExpectedGroup&) const = default;
};
std::ostream& operator<<(std::ostream& out, const ExpectedGroup& e) {
  return out << (e.weight_in_place ? "in place" : "packed") << "; block " << e.rows_per_block << ", fill "
             << e.rows_per_fill << ", piece " << e.rows_per_piece << "; call " << e.panels_per_call << ", chunk "
             << e.rows_per_chunk << "; packing " << e.packing_tasks << " or " << e.packing_tasks_alone << ", product "
             << e.product_tasks << " or " << e.product_tasks_alone;
}

struct GroupCase {
  const char* name;
  ProductShape shape;
  GroupRight right;
  DType weight;
  ExpectedGroup expected;
};

TEST(GroupPlan, OfEachKindOfGroup) {
  constexpr auto unpacked = GroupRight::unpacked_weight, packed = GroupRight::packed_panels,
                 gradient = GroupRight::rows;
  constexpr auto bf16 = DType::bf16, f32 = DType::f32;
  constexpr int threads = 2;
  const GroupCase cases[] = {
      // Few rows read the weight in place: bf16, whole blocks of k, up to 128 rows.
      {"14 rows", {14, 2048, 768, pairs, panels_bf16}, unpacked, bf16, {true, 7, 32, 96, 1, 14, 1, 1, 1, 4}},
      {"128 rows", {128, 2048, 768, pairs, panels_bf16}, unpacked, bf16, {true, 12, 32, 128, 1, 132, 1, 2, 4, 4}},
      {"129 rows", {129, 2048, 768, pairs, panels_bf16}, unpacked, bf16, {false, 12, 12, 132, 1, 132, 1, 2, 4, 4}},
      {"k = 700", {14, 2048, 700, pairs, panels_bf16}, unpacked, bf16, {false, 7, 7, 96, 1, 14, 1, 2, 1, 4}},
      {"fp32", {14, 2048, 768, rows, panels_f32}, unpacked, f32, {false, 7, 12, 96, 1, 14, 1, 2, 6, 6}},
      {"packed", {64, 2048, 768, pairs, panels_bf16}, packed, bf16, {false, 11, 11, 96, 4, 66, 1, 2, 2, 4}},
      {"4096 rows", {4096, 2048, 768, pairs, panels_bf16}, unpacked, bf16, {false, 12, 12, 1032, 4, 516, 7, 8, 32, 32}},
      {"4096, packed", {4096, 2048, 768, pairs, panels_bf16}, packed, bf16, {false, 12, 12, 588, 4, 300, 4, 4, 16, 16}},
      {"tiles", {500, 2048, 768, tiles, panels_bf16}, unpacked, bf16, {false, 12, 32, 512, 4, 504, 4, 4, 32, 32}},
      {"dx", {64, 768, 2048, pairs, row_major}, gradient, bf16, {false, 11, 11, 96, 4, 66, 2, 2, 2, 4}},
      {"dx by FMAs", {1000, 768, 2048, rows, row_major}, gradient, f32, {false, 12, 12, 384, 4, 384, 16, 16, 24, 24}},
      {"dw", {2048, 768, 64, pairs, row_major, true}, gradient, bf16, {false, 12, 12, 2052, 8, 516, 2, 2, 2, 4}},
  };
  for (const GroupCase& c : cases) {
    const GroupPlan group = plan_group(c.shape, c.right, c.weight);
    const int64_t m = std::min(group.rows_per_piece, c.shape.m), panels = c.shape.panels();
    const PiecePlan piece = plan_piece(c.shape, group, c.right, m);
    EXPECT_EQ((ExpectedGroup{group.weight_in_place, group.rows_per_block, group.rows_per_fill, group.rows_per_piece,
                             piece.panels_per_call, piece.rows_per_chunk,
                             packing_tasks_of_piece(c.shape, group, m, false, threads),
                             packing_tasks_of_piece(c.shape, group, m, true, threads),
                             product_tasks_of_piece(c.shape, m, 64 * panels, false, threads),
                             product_tasks_of_piece(c.shape, m, panels, true, threads)}),
              c.expected)
        << c.name;
  }
}

struct ExpectedCodes {
  int64_t rows_per_block, rows_per_fill, rows_per_chunk, chunks, panels_per_task, panel_groups;

  bool operator==(const ExpectedCodes&) const = default;
};
std::ostream& operator<<(std::ostream& out, const ExpectedCodes& e) {
  return out << "block " << e.rows_per_block << ", fill " << e.rows_per_fill << "; chunk " << e.rows_per_chunk << " x "
             << e.chunks << "; panels " << e.panels_per_task << " x " << e.panel_groups;
}

struct CodesCase {
  const char* name;
  CodesShape shape;
  int threads;
  Caches caches;
  ExpectedCodes expected;
};

TEST(CodesPlan, OfEachKindOfProduct) {
  const CodesCase cases[] = {
      // One row: nothing to share but panels.
      {"8 bits, decode", {1, 2048, 2048, 1, true, rows}, 2, one_mib, {12, 32, 504, 1, 11, 6}},
      {"4 bits, decode by pairs", {1, 2048, 2048, 32, false, pairs}, 2, one_mib, {1, 1, 256, 1, 11, 6}},
      {"4 bits, decode by FMAs", {1, 576, 576, 9, false, rows}, 2, one_mib, {12, 12, 444, 1, 3, 6}},
      // Few rows of pairs with few scales read four panels side by side.
      {"one scale, head", {1, 49152, 576, 1, false, pairs}, 2, one_mib, {1, 1, 910, 1, 56, 28}},
      {"two scales", {4, 576, 1536, 2, false, pairs}, 2, one_mib, {4, 4, 340, 1, 4, 5}},
      {"one panel more", {1, 33, 32, 1, false, pairs}, 1, one_mib, {1, 1, 16384, 1, 4, 1}},
      // Of a prompt, a chunk of the left side stays in L2.
      {"8 bits, prompt", {512, 1536, 576, 1, true, rows}, 4, one_mib, {12, 32, 1812, 1, 3, 16}},
      {"8 bits, 13 rows by tiles", {13, 2048, 2048, 1, true, tiles}, 2, one_mib, {32, 32, 512, 1, 11, 6}},
      {"8 bits, long rows by tiles", {512, 2048, 11008, 1, true, tiles}, 2, one_mib, {32, 32, 256, 2, 1, 64}},
      {"4 bits, prompt by pairs", {512, 1536, 576, 9, false, pairs}, 2, one_mib, {12, 12, 900, 1, 1, 48}},
      {"4 bits, prompt by tiles", {512, 2048, 2048, 32, false, tiles}, 4, one_mib, {32, 32, 256, 2, 3, 22}},
      {"more L2", {512, 2048, 2048, 32, false, tiles}, 4, two_mib, {32, 32, 512, 1, 1, 64}},
      {"4 bits, long rows", {512, 2048, 11008, 172, false, rows}, 2, one_mib, {12, 12, 96, 6, 1, 64}},
      {"33 columns", {300, 33, 64, 1, false, rows}, 4, one_mib, {12, 12, 4092, 1, 1, 2}},
  };
  for (const CodesCase& c : cases) {
    const CodesPlan plan = plan_codes(c.shape, c.threads, c.caches);
    EXPECT_EQ((ExpectedCodes{plan.rows_per_block, plan.rows_per_fill, plan.rows_per_chunk, plan.chunks,
                             plan.panels_per_task, plan.panel_groups}),
              c.expected)
        << c.name;
  }
}

TEST(CodesPlan, ChoosesThePackedFormByOrderAndInstructions) {
  using enum AccumulationOrder;
  constexpr MatrixInstructions none{}, fast_pairs{.pairs = true}, amx{.pairs = true, .tiles = true};
  EXPECT_EQ(left_of_codes(true, bf16_pairs, fast_pairs, 512), rows);
  EXPECT_EQ(left_of_codes(true, bf16_tile, amx, 12), rows);
  EXPECT_EQ(left_of_codes(true, fp32_chain, amx, 13), tiles);
  EXPECT_EQ(left_of_codes(false, fp32_chain, amx, 512), rows);
  EXPECT_EQ(left_of_codes(false, bf16_pairs, none, 512), rows);
  EXPECT_EQ(left_of_codes(false, bf16_pairs, amx, 1), pairs);
  EXPECT_EQ(left_of_codes(false, bf16_tile, amx, 4), rows);
  EXPECT_EQ(left_of_codes(false, bf16_tile, amx, 5), tiles);
}

// Every row is multiplied by every panel exactly once, and chunks are whole blocks.
TEST(CodesPlan, CoversTheWholeProduct) {
  for (const LeftSide left : {rows, tiles, pairs})
    for (const bool bytes : {false, true})
      for (const int threads : {1, 2, 7})
        for (const int64_t m : {1, 5, 33, 97, 512, 9001})
          for (const int64_t n : {1, 33, 2048})
            for (const int64_t k : {32, 128, 11008}) {
              if (bytes && left == pairs) continue;
              const CodesShape shape{m, n, k, 1, bytes, left};
              const CodesPlan plan = plan_codes(shape, threads);
              ASSERT_GE(plan.rows_per_chunk * plan.chunks, m);
              ASSERT_LT(plan.rows_per_chunk * (plan.chunks - 1), m);
              ASSERT_EQ(plan.rows_per_chunk % plan.rows_per_block, 0);
              ASSERT_GE(plan.panels_per_task * plan.panel_groups, shape.panels());
              ASSERT_LT(plan.panels_per_task * (plan.panel_groups - 1), shape.panels());
              ASSERT_EQ(plan.tasks(), plan.chunks * plan.panel_groups);
            }
}

// They decide bits of gradients: no machine, no number of threads and no cache changes them.
TEST(DxPlan, CutsLongSumsAtFixedPlaces) {
  const auto of_bf16 = [](int64_t n) { return plan_dx_of_bf16(n).terms_per_stretch; };
  EXPECT_EQ(of_bf16(0), 0);
  EXPECT_EQ(of_bf16(1536), 1536);
  EXPECT_EQ(of_bf16(1537), 800);
  EXPECT_EQ(of_bf16(3072), 1536);
  EXPECT_EQ(of_bf16(16384), 1504);
  EXPECT_EQ(plan_dx_of_rows(2048).terms_per_stretch, 2048);
  EXPECT_EQ(plan_dx_of_rows(2049).terms_per_stretch, 2048);
  EXPECT_EQ(max_terms_of_grouped_dx, 2048);
}

}  // namespace
}  // namespace easydel::kernels
