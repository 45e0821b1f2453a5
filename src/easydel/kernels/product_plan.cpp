#include "easydel/kernels/product_plan.h"

#include <algorithm>

namespace easydel::kernels {
namespace {

constexpr int64_t packed_bytes_per_task = 1 << 18;
constexpr int64_t left_bytes_per_slab = 32 << 20;  // a vocabulary on the left costs no more memory than this
constexpr int64_t min_rows_per_chunk = 96;
constexpr int64_t min_rows_per_chunk_of_rows = 384;  // pay for gathering a panel from a row-major right side
constexpr int64_t multiply_adds_per_task = 1 << 23, multiply_adds_per_tile_task = 1 << 25;  // some 100 us
constexpr int64_t rows_of_start_cost = 16;  // starting a panel costs about as much as multiplying so many rows

// By tiles, rows that overflow L2 are processed 512 rows x 16 panels at a time, with the accumulators in L2 instead.
constexpr int64_t rows_per_long_chunk = 512, panels_per_long_task = 16;
bool is_long_by_tiles(const ProductShape& shape, int64_t rows, const Caches& caches) {
  return shape.left == LeftSide::tiles &&
         shape.packed_row_bytes() * std::min<int64_t>(rows, 256) > l2_bytes_for_tiles(caches.l2_bytes);
}

// Rows per chunk, a multiple of `block`: as many as `bytes` hold but at least `min_rows`, in equal chunks.
int64_t rows_per_chunk(int64_t rows, int64_t row_bytes, int64_t block, int64_t bytes, int64_t min_rows) {
  const int64_t max_blocks = std::max(min_rows / block, bytes / (std::max<int64_t>(row_bytes, 1) * block));
  const int64_t blocks = divide_up(rows, block), chunks = divide_up(blocks, max_blocks);
  return divide_up(blocks, std::max<int64_t>(chunks, 1)) * block;
}

// Number of tasks if each packs its own rows: 0 if the rows are too long for L2, or too few to read every panel for.
int64_t row_tasks_of(const ProductShape& shape, int threads, const Caches& caches) {
  constexpr int64_t min_rows = 48, max_rows = 160, min_rows_in_l2 = 96;
  if (shape.left != LeftSide::pairs || shape.right != RightSide::panels_bf16) return 0;
  const int64_t rows_in_l2 = l2_bytes_for_pairs(caches.l2_bytes) / std::max<int64_t>(shape.packed_row_bytes(), 1);
  if (rows_in_l2 < min_rows_in_l2) return 0;
  const int64_t tasks = round_up(divide_up(shape.m, std::min(max_rows, rows_in_l2)), threads);
  return shape.m >= tasks * min_rows ? tasks : 0;
}

// Columns of a transposed left side are packed in whole blocks.
int64_t rows_per_block_of_pairs(const ProductShape& shape) {
  return shape.transposed ? block_rows : equal_block_rows(shape.m);
}

int64_t rows_per_block(const ProductShape& shape) {
  if (shape.left == LeftSide::tiles) return tile_rows;
  return shape.left == LeftSide::pairs ? rows_per_block_of_pairs(shape) : block_rows;
}

// Cuts `units` into equal tasks of about `units_per_task`.
int64_t equal_tasks(int64_t units, int64_t units_per_task, bool is_only_piece, int threads) {
  const int64_t min_tasks = divide_up(units, std::clamp<int64_t>(units_per_task, 1, units));
  return task_count(min_tasks, units, is_only_piece ? threads : 1);
}

}  // namespace

LeftSide left_of_grouped_product(AccumulationOrder order, MatrixInstructions has) {
  if (order == AccumulationOrder::bf16_tile && has.tiles) return LeftSide::tiles;
  if (order == AccumulationOrder::bf16_pairs && has.pairs) return LeftSide::pairs;
  return LeftSide::rows;
}

LeftSide left_of_product(AccumulationOrder order, MatrixInstructions has, int64_t m) {
  constexpr int64_t min_rows_by_tiles = 4;
  const LeftSide left = left_of_grouped_product(order, has);
  return left == LeftSide::tiles && m < min_rows_by_tiles ? LeftSide::rows : left;
}

LeftSide left_of_gradient(DType left, DType right, MatrixInstructions has) {
  if (left != DType::bf16 || right != DType::bf16) return LeftSide::rows;
  return has.tiles ? LeftSide::tiles : has.pairs ? LeftSide::pairs : LeftSide::rows;
}

int64_t ProductShape::padded_k() const {
  if (left == LeftSide::pairs) return round_up(k, k_block) / 2;
  return left == LeftSide::tiles || right == RightSide::panels_bf16 ? round_up(k, k_block) : k;
}

ProductPlan plan_product(const ProductShape& shape, int threads, const Caches& caches) {
  ProductPlan plan;
  plan.row_tasks = row_tasks_of(shape, threads, caches);
  const int64_t row_bytes = std::max<int64_t>(shape.padded_k(), 1) * ProductShape::element_bytes(shape.left);
  plan.rows_per_slab = std::max<int64_t>(192, left_bytes_per_slab / row_bytes / 96 * 96);
  plan.rows_per_block = shape.left == LeftSide::pairs ? rows_per_block_of_pairs(shape) : block_rows;
  plan.rows_per_fill = rows_per_block(shape);
  if (shape.transposed && shape.left == LeftSide::tiles) plan.rows_per_fill = 4 * tile_rows;   // 4 lines of a row
  if (shape.transposed && shape.left == LeftSide::pairs) plan.rows_per_fill = 8 * block_rows;  // 3 lines of a row
  // Even a few fills are shared by all threads: the rows were written by all of them, and none can multiply before.
  const int64_t fills = divide_up(shape.m, plan.rows_per_fill);
  plan.fills_per_task = std::clamp<int64_t>(packed_bytes_per_task / (row_bytes * plan.rows_per_fill), 1,
                                            std::max<int64_t>(1, divide_up(fills, threads)));
  return plan;
}

SlabPlan plan_slab(const ProductShape& shape, int64_t rows, const Caches& caches) {
  const SlabPlan all_panels{.panels_per_batch = shape.panels()};
  if (shape.right != RightSide::rows || shape.left == LeftSide::rows) return all_panels;
  // Long rows by tiles that use each panel only once or twice gather it themselves.
  if (is_long_by_tiles(shape, rows, caches) && rows <= 2 * rows_per_long_chunk) return all_panels;
  constexpr int64_t panels_per_task = 4;  // so that whole cache lines of a row are read
  const int64_t panel_bytes = round_up(shape.k, k_block) * panel_columns * 2;
  const int64_t panels_in_l3 = caches.l3_bytes / std::max<int64_t>(panel_bytes, 1) / panels_per_task * panels_per_task;
  return {.panels_per_batch = std::max(panels_per_task, panels_in_l3), .panels_per_packing_task = panels_per_task};
}

TaskGrid plan_tasks(const ProductShape& shape, const ProductPlan& plan, int64_t rows, int64_t panels, int threads,
                    const Caches& caches) {
  const bool tiles = shape.left == LeftSide::tiles, pairs = shape.left == LeftSide::pairs;
  const bool is_long = is_long_by_tiles(shape, rows, caches);
  const int64_t padded_k = shape.padded_k(), l2 = caches.l2_bytes;
  TaskGrid grid;
  // The chunk's left side stays in L2 or streams from L3, and each panel is read from memory once per chunk. Of pairs
  // the stretch that is read again and again stays in L2.
  if (pairs) {
    const int64_t stretch_bytes = std::min(padded_k, pairs_per_stretch) * 4;
    grid.rows_per_chunk = rows_per_chunk(rows, stretch_bytes, plan.rows_per_block, l2 / 16 * 9, min_rows_per_chunk);
  } else if (is_long) {
    grid.rows_per_chunk = rows_per_chunk(rows, padded_k * 2, tile_rows, 0, rows_per_long_chunk);
  } else if (tiles) {
    grid.rows_per_chunk = rows_per_chunk(rows, padded_k * 2, tile_rows, l2_bytes_for_tiles(l2), min_rows_per_chunk);
  } else {
    const int64_t min_rows = shape.right == RightSide::rows ? min_rows_per_chunk_of_rows : min_rows_per_chunk;
    grid.rows_per_chunk = rows_per_chunk(rows, padded_k * 4, block_rows, l2, min_rows);
  }
  grid.chunks = divide_up(rows, std::max<int64_t>(grid.rows_per_chunk, 1));

  // Tasks are short, so that a thread that comes late still finds work, and equal if there are few of them. Long pairs
  // want more panels per task, for which a stretch of the left side is read once.
  const int64_t work = padded_k * panel_columns * (std::min(grid.rows_per_chunk, rows) + rows_of_start_cost);
  const int64_t max_panels = std::max<int64_t>(1, divide_up(panels * grid.chunks, (is_long ? 1 : 3) * threads));
  const bool in_stretches = pairs && padded_k > pairs_per_stretch && rows > plan.rows_per_block;
  const int64_t min_panels = std::min<int64_t>(is_long ? panels_per_long_task : in_stretches ? 6 : 1, max_panels);
  const int64_t panels_per_task =
      std::clamp((tiles ? multiply_adds_per_tile_task : multiply_adds_per_task) / std::max<int64_t>(work, 1),
                 min_panels, max_panels);
  grid.panel_groups = task_count(divide_up(panels, panels_per_task), panels, grid.chunks % threads ? threads : 1);
  return grid;
}

GroupPlan plan_group(const ProductShape& shape, GroupRight right, DType weight, const Caches& caches) {
  constexpr int64_t max_rows_in_place = 128;
  GroupPlan plan;
  // Packing a weight for few rows takes longer than their product gains by it, as long as the rows stay in L2.
  plan.weight_in_place = shape.left == LeftSide::pairs && right == GroupRight::unpacked_weight &&
                         weight == DType::bf16 && shape.k % k_block == 0 && shape.m <= max_rows_in_place &&
                         shape.m * shape.k * bytes_of(DType::bf16) <= caches.l2_bytes;
  plan.rows_per_block = rows_per_block_of_pairs(shape);
  plan.rows_per_fill = plan.weight_in_place ? panel_columns : rows_per_block(shape);
  // Each piece gathers or packs its right side anew: then pieces are larger.
  const bool gathers = right == GroupRight::rows && shape.left != LeftSide::pairs;
  const bool packs =
      right == GroupRight::unpacked_weight || (right == GroupRight::rows && shape.left == LeftSide::tiles);
  const int64_t bytes = shape.packed_row_bytes() * shape.m, piece_bytes = packs ? 2 * caches.l2_bytes : caches.l2_bytes;
  plan.rows_per_piece = std::max(gathers ? min_rows_per_chunk_of_rows : min_rows_per_chunk,
                                 round_up(divide_up(shape.m, divide_up(bytes + 1, piece_bytes)), plan.rows_per_fill));
  return plan;
}

PiecePlan plan_piece(const ProductShape& shape, const GroupPlan& group, GroupRight right, int64_t rows) {
  constexpr int64_t max_rows_per_chunk = 576;
  PiecePlan plan;
  plan.rows_per_chunk =
      round_up(divide_up(rows, divide_up(std::max<int64_t>(rows, 1), max_rows_per_chunk)), group.rows_per_block);
  if (right == GroupRight::unpacked_weight) {
    // Packed panels of few rows are used one by one.
    const bool is_small = shape.packed_row_bytes() * rows <= 1 << 19;
    plan.panels_per_call = is_small || shape.left == LeftSide::rows ? 1 : 4;
  } else {
    plan.panels_per_call = right == GroupRight::rows && shape.padded_k() <= pairs_per_stretch / 2 ? 8 : 4;
  }
  return plan;
}

int64_t packed_bytes_of_piece(const ProductShape& shape, const GroupPlan& group, int64_t rows) {
  return round_up((group.weight_in_place ? round_up(rows, panel_columns) : rows) * shape.packed_row_bytes(), 64);
}

int64_t packing_tasks_of_piece(const ProductShape& shape, const GroupPlan& group, int64_t rows, bool is_only_piece,
                               int threads) {
  const int64_t fill_bytes = std::max<int64_t>(shape.packed_row_bytes() * group.rows_per_fill, 1);
  return equal_tasks(divide_up(rows, group.rows_per_fill), packed_bytes_per_task / fill_bytes, is_only_piece, threads);
}

int64_t product_tasks_of_piece(const ProductShape& shape, int64_t rows, int64_t batch_panels, bool is_only_piece,
                               int threads) {
  // Longer tasks where the next panel is prefetched during this one.
  const int64_t work = shape.left == LeftSide::rows ? multiply_adds_per_task : multiply_adds_per_tile_task;
  const int64_t panel = shape.padded_k() * panel_columns * (rows + rows_of_start_cost);
  const int64_t max_panels = divide_up(batch_panels, 2 * threads);  // no fewer tasks than threads
  return equal_tasks(shape.panels(), std::min(max_panels, work / std::max<int64_t>(panel, 1)), is_only_piece, threads);
}

LeftSide left_of_codes(bool bytes, AccumulationOrder order, MatrixInstructions has, int64_t m) {
  // With fewer rows FMAs and dots of bytes are as fast as tiles.
  if (bytes) return has.tiles && m > block_rows ? LeftSide::tiles : LeftSide::rows;
  if (order == AccumulationOrder::bf16_pairs && has.pairs) return LeftSide::pairs;
  return order == AccumulationOrder::bf16_tile && has.tiles && m > 4 ? LeftSide::tiles : LeftSide::rows;
}

int64_t CodesShape::packed_row_bytes() const {
  return padded_k * (bytes ? 1 : left == LeftSide::rows ? int64_t(sizeof(float)) : int64_t(sizeof(bf16)));
}

CodesPlan plan_codes(const CodesShape& shape, int threads, const Caches& caches) {
  constexpr int64_t min_blocks_per_chunk = 8;
  const bool tiles = shape.left == LeftSide::tiles, pairs = shape.left == LeftSide::pairs;
  CodesPlan plan;
  plan.rows_per_block = tiles ? tile_rows : pairs ? equal_block_rows(shape.m) : block_rows;
  plan.rows_per_fill = shape.bytes ? tile_rows : plan.rows_per_block;
  // So much of the left side goes through all panels before the next.
  const int64_t row_bytes = std::max<int64_t>(shape.packed_row_bytes(), 1);
  const int64_t blocks_in_l2 = caches.l2_bytes / row_bytes / plan.rows_per_block;
  plan.rows_per_chunk = std::max(min_blocks_per_chunk, blocks_in_l2) * plan.rows_per_block;
  plan.chunks = divide_up(shape.m, plan.rows_per_chunk);

  const int64_t speed = tiles ? 8 : shape.bytes ? 4 : pairs ? 2 : 1;  // in FMAs
  const int64_t work =
      shape.padded_k * panel_columns * (std::min(plan.rows_per_chunk, shape.m) + rows_of_start_cost) / speed;
  const int64_t max_panels = std::max<int64_t>(divide_up(shape.panels() * plan.chunks, 3 * threads), 1);
  plan.panels_per_task = std::clamp<int64_t>(multiply_adds_per_task / std::max<int64_t>(work, 1), 1, max_panels);
  constexpr int64_t panels_side_by_side = 4;  // which few rows of pairs read together, if scales are few
  if (pairs && shape.m <= 4 && shape.groups <= 2)
    plan.panels_per_task = round_up(plan.panels_per_task, panels_side_by_side);
  plan.panel_groups = divide_up(shape.panels(), plan.panels_per_task);
  return plan;
}

DxPlan plan_dx_of_rows(int64_t n) {
  constexpr int64_t max_terms = max_terms_of_grouped_dx, rows = 384;
  return {.terms_per_stretch = std::min(n, max_terms), .rows_per_slab = rows};
}

DxPlan plan_dx_of_bf16(int64_t n) {
  constexpr int64_t max_terms = 1536, rows = 1024;
  if (n <= max_terms) return {.terms_per_stretch = n};
  return {.terms_per_stretch = round_up(divide_up(n, divide_up(n, max_terms)), k_block), .rows_per_slab = rows};
}

}  // namespace easydel::kernels
