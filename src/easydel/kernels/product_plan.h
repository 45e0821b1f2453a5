// How products are cut into tasks: arithmetic on shapes, cache sizes and numbers of threads. product.cpp, grouped.cpp
// and quantized.cpp carry the plans out.
//
// A plan decides speed, not bits: every element has the same sequence of additions under every plan. The one exception
// is named: DxPlan::terms_per_stretch.
#pragma once

#include "easydel/kernels/product_layout.h"

namespace easydel::kernels {

// Bytes per core. They are not measured: plans are tuned for 1 MiB of L2.
struct Caches {
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 8 << 20;  // share of the last-level cache that panels packed for one use may fill
};

// Which matrix instructions the loops have in addition to FMAs.
struct MatrixInstructions {
  bool pairs = false;  // VDPBF16PS, where it is faster than FMAs
  bool tiles = false;  // AMX
};

// The packed form of the left side for a product with a weight. Fewer than 4 rows by tiles fall back to FMAs, which
// are at memory speed already; the rows of a group do not.
LeftSide left_of_product(AccumulationOrder order, MatrixInstructions has, int64_t m);
LeftSide left_of_grouped_product(AccumulationOrder order, MatrixInstructions has);
// The packed form for a gradient, whose two sides are used as they are stored.
LeftSide left_of_gradient(DType left, DType right, MatrixInstructions has);

// C [m, n] = A [m, k] B [k, n].
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  LeftSide left = LeftSide::rows;
  RightSide right = RightSide::panels_f32;
  bool transposed = false;  // A is packed from the columns of a row-major matrix, as in weight gradients

  // Elements of one packed row of A: of pairs for LeftSide::pairs.
  int64_t padded_k() const;
  int64_t packed_row_bytes() const { return padded_k() * element_bytes(left); }
  int64_t panels() const { return divide_up(n, panel_columns); }

  static int64_t element_bytes(LeftSide left) { return left == LeftSide::tiles ? 2 : 4; }
};

// Tasks of a multiplication whose left side is packed: every chunk of rows times every group of panels.
struct TaskGrid {
  int64_t rows_per_chunk = 0, chunks = 0;
  int64_t panel_groups = 0;  // as equal as possible

  int64_t tasks() const { return chunks * panel_groups; }
};

struct ProductPlan {
  // If not 0, each of so many tasks packs rows of its own, which then stay in L2, and multiplies them by all panels: no
  // thread waits for another's packing. The members below are not used then.
  int64_t row_tasks = 0;

  // Otherwise the left side is packed one slab of rows at a time, by tasks of some blocks.
  int64_t rows_per_slab = 0;
  int64_t rows_per_block = 0;  // ProductStep::rows_per_block
  int64_t rows_per_fill = 0;   // packed by one call: some blocks, so that whole cache lines of columns are read
  int64_t fills_per_task = 0;
};

// What follows for one packed slab. The slab is multiplied by `panels_per_batch` panels at a time.
struct SlabPlan {
  int64_t panels_per_batch = 0;
  // If not 0, the row-major right side is packed before each batch, by tasks of so many panels. If 0, there is one
  // batch of all panels.
  int64_t panels_per_packing_task = 0;
};

ProductPlan plan_product(const ProductShape& shape, int threads, const Caches& caches = {});
// `rows` of shape.m are packed.
SlabPlan plan_slab(const ProductShape& shape, int64_t rows, const Caches& caches = {});
// The multiplication of `rows` packed rows by a batch of `panels` panels.
TaskGrid plan_tasks(const ProductShape& shape, const ProductPlan& plan, int64_t rows, int64_t panels, int threads,
                    const Caches& caches = {});

// The product of one group of rows (an expert) with its weight, in pieces of rows whose packed left sides stay in L2.
struct GroupPlan {
  // The few rows of a group are packed as panels instead, and the weight's rows are read where they are.
  bool weight_in_place = false;
  int64_t rows_per_block = 0;  // ProductStep::rows_per_block
  int64_t rows_per_fill = 0;
  int64_t rows_per_piece = 0;
};

// Where the right side of a group comes from.
enum class GroupRight : uint8_t {
  packed_panels,    // panels of a packed weight
  unpacked_weight,  // row-major [n, k]; its panels are packed for this product alone
  rows              // row-major [k, n], as in gradients
};

GroupPlan plan_group(const ProductShape& shape, GroupRight right, DType weight, const Caches& caches = {});

// One piece of a group, and a batch of pieces whose left sides are packed together.
struct PiecePlan {
  int64_t panels_per_call = 0;  // multiplied (and if needed packed) together
  int64_t rows_per_chunk = 0;   // of LeftSide::pairs: rows that go through the panels of a call together
};
PiecePlan plan_piece(const ProductShape& shape, const GroupPlan& group, GroupRight right, int64_t rows);

constexpr int64_t bytes_per_group_batch = 32 << 20;
int64_t packed_bytes_of_piece(const ProductShape& shape, const GroupPlan& group, int64_t rows);

// Number of tasks that pack a piece of `rows` rows, and that multiply it. `is_only_piece`: the batch has no other
// piece, so its tasks should keep all threads busy. `batch_panels` is the sum of the panels of all pieces of the batch.
int64_t packing_tasks_of_piece(const ProductShape& shape, const GroupPlan& group, int64_t rows, bool is_only_piece,
                               int threads);
int64_t product_tasks_of_piece(const ProductShape& shape, int64_t rows, int64_t batch_panels, bool is_only_piece,
                               int threads);

// The product with a quantized weight (quantized_layout.h): y [m, n] from `groups` groups of codes in a row of W.
struct CodesShape {
  int64_t m = 0, n = 0, padded_k = 0, groups = 1;
  bool bytes = false;  // codes of 8 bits, whose left side is bytes in rows or tiles; otherwise codes of 4 bits
  LeftSide left = LeftSide::rows;

  int64_t packed_row_bytes() const;
  int64_t panels() const { return divide_up(n, panel_columns); }
};

// The packed form of the left side. `order` is that of 4-bit codes; bytes have none.
LeftSide left_of_codes(bool bytes, AccumulationOrder order, MatrixInstructions has, int64_t m);

// All rows are packed first; then every chunk of rows is multiplied by every group of panels.
struct CodesPlan {
  int64_t rows_per_block = 0;  // ProductStep::rows_per_block
  int64_t rows_per_fill = 0;   // packed by one task
  int64_t rows_per_chunk = 0, chunks = 0;
  int64_t panels_per_task = 0, panel_groups = 0;

  int64_t tasks() const { return chunks * panel_groups; }
};
CodesPlan plan_codes(const CodesShape& shape, int threads, const Caches& caches = {});

// dx [m, k] = dy [m, n] W: long sums are computed in stretches of n, so that dy's packed rows stay in L2, and added up
// in fp32. This decides bits: it does not depend on caches, threads or rows.
struct DxPlan {
  int64_t terms_per_stretch = 0;  // n if there is one stretch
  int64_t rows_per_slab = 0;      // rows whose fp32 sums are kept at a time, if dx is bf16 and there are several
};
// grouped_product_dx leaves groups with more terms to product_dx.
constexpr int64_t max_terms_of_grouped_dx = 2048;
DxPlan plan_dx_of_rows(int64_t n);  // by LeftSide::rows in product_dx
DxPlan plan_dx_of_bf16(int64_t n);  // with a bf16 weight in ops::multiply_back

}  // namespace easydel::kernels
