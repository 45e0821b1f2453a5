// Grouped products by the plans of product_plan.h: cuts groups into pieces of rows, packs the pieces' left sides batch
// by batch, and multiplies them panel by panel.
#include "easydel/kernels/grouped.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/code_panels.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/product_plan.h"

namespace easydel::kernels {
namespace {

// Some rows of one group's result, multiplied as a product of their own.
struct Piece {
  ProductShape shape;  // of the whole group
  GroupPlan plan;
  PiecePlan piece_plan;
  ProductStep step;
  int64_t group = 0, first_row = 0;  // of the group's rows
  uint8_t* left = nullptr;           // packed left side
};

struct Work {
  std::vector<Piece> pieces = {};
  // Packs rows [first, first + rows) of a piece's left side, or multiplies panels [begin, end) of its result.
  std::function<void(const Piece& piece, int64_t first, int64_t rows, void* to)> fill = {};
  std::function<void(const Piece& piece, int64_t begin, int64_t end)> multiply = {};

  // The product of a whole group.
  void add(const ProductShape& shape, const GroupPlan& plan, GroupRight right, const ProductStep& whole,
           int64_t group) {
    for (int64_t first = 0; first < shape.m; first += plan.rows_per_piece) {
      const int64_t rows = std::min(plan.rows_per_piece, shape.m - first);
      Piece& piece = pieces.emplace_back(Piece{shape, plan, plan_piece(shape, plan, right, rows), whole, group, first});
      ProductStep& step = piece.step;
      step.m = rows, step.n = shape.n, step.k = shape.k, step.padded_k = shape.padded_k();
      step.right = shape.right, step.rows_per_block = plan.rows_per_block;
      step.y = {whole.y.at(first), whole.y.dtype, whole.y.stride};
    }
  }
};

// Rows to pack, or panels to multiply.
struct Task {
  const Piece* piece;
  int64_t begin, end;
};

void add_tasks(std::vector<Task>& tasks, const Piece& piece, int64_t units, int64_t count) {
  for (int64_t i = 0; i < count; ++i) tasks.push_back({&piece, i * units / count, (i + 1) * units / count});
}

void run_batch(Executor& executor, const Work& work, std::span<Piece> pieces) {
  const bool is_only_piece = pieces.size() == 1;
  std::vector<Task> packing, products;
  int64_t panels = 0;
  for (const Piece& piece : pieces) panels += piece.shape.panels();
  for (const Piece& piece : pieces) {
    const int64_t rows = piece.step.m;
    add_tasks(packing, piece, divide_up(rows, piece.plan.rows_per_fill),
              packing_tasks_of_piece(piece.shape, piece.plan, rows, is_only_piece, executor.size()));
    add_tasks(products, piece, piece.shape.panels(),
              product_tasks_of_piece(piece.shape, rows, panels, is_only_piece, executor.size()));
  }
  executor.run(int64_t(packing.size()), [&](int64_t i) {
    const auto& [piece, begin, end] = packing[size_t(i)];
    const int64_t per_fill = piece->plan.rows_per_fill;
    for (int64_t first = begin * per_fill; first < std::min(end * per_fill, piece->step.m); first += per_fill)
      work.fill(*piece, first, std::min(per_fill, piece->step.m - first),
                piece->left + first * piece->shape.packed_row_bytes());
  });
  executor.run(int64_t(products.size()), [&](int64_t i) {
    work.multiply(*products[size_t(i)].piece, products[size_t(i)].begin, products[size_t(i)].end);
  });
}

void run(Executor& executor, Work& work) {
  thread_local Scratch<uint8_t> of_caller;
  const auto bytes_of_piece = [](const Piece& p) { return packed_bytes_of_piece(p.shape, p.plan, p.step.m); };
  for (std::span<Piece> rest = work.pieces; !rest.empty();) {
    int64_t bytes = 0;
    size_t count = 0;
    while (count < rest.size() && (count == 0 || bytes + bytes_of_piece(rest[count]) <= bytes_per_group_batch))
      bytes += bytes_of_piece(rest[count++]);
    uint8_t* to = of_caller.at_least(std::max<int64_t>(bytes, 1));
    for (Piece& piece : rest.first(count)) {
      piece.left = to, to += bytes_of_piece(piece);
      if (piece.shape.left == LeftSide::rows) piece.step.a = reinterpret_cast<const float*>(piece.left);
      if (piece.shape.left == LeftSide::tiles) piece.step.a_tiles = reinterpret_cast<const bf16*>(piece.left);
      if (piece.shape.left == LeftSide::pairs) piece.step.a_pairs = reinterpret_cast<const uint32_t*>(piece.left);
    }
    run_batch(executor, work, rest.first(count));
    rest = rest.subspan(count);
  }
}

void check_groups(std::span<const int64_t> begin) {
  check(!begin.empty() && std::is_sorted(begin.begin(), begin.end()), "grouped product: rows do not ascend");
}

Input at(Input x, int64_t row) { return {x.at(row), x.dtype, x.stride}; }
Output at(Output x, int64_t row) { return {x.at(row), x.dtype, x.stride}; }

// All rows of `panels` panels of the result.
void multiply_panels(const Piece& piece, const ProductStep& step, int64_t panel, int64_t panels) {
  const Loops& isa = loops();
  const int64_t chunk = piece.piece_plan.rows_per_chunk;
  const auto all = [&] {
    switch (piece.shape.left) {
      case LeftSide::tiles:
        return isa.product.tiles.multiply(step, panel, panels, 0, step.m);
      case LeftSide::pairs:
        for (int64_t first = 0; first < step.m; first += chunk)
          isa.product.pairs.multiply(step, panel, panels, first, std::min(chunk, step.m - first));
        return;
      case LeftSide::rows:
        for (int64_t p = panel; p < panel + panels; ++p) isa.product.multiply(step, p, 0, step.m);
    }
  };
  if (step.order == AccumulationOrder::fp32_chain) return all();
  const FlushDenormals flush;
  all();
}

// The right side is packed panels, or row-major rows of a gradient, whose panels the loops gather.
void multiply_as_stored(const Piece& piece, int64_t begin, int64_t end) {
  const int64_t per_call = piece.piece_plan.panels_per_call;
  for (int64_t panel = begin; panel < end; panel += per_call)
    multiply_panels(piece, piece.step, panel, std::min(per_call, end - panel));
  if (piece.step.non_temporal) std::atomic_thread_fence(std::memory_order_seq_cst);
}

// The weight's rows of the `panels` panels that this thread probably reads after `panel` of its task [begin, end).
PrefetchRange next_rows(const GroupWeights& w, const Piece& piece, int64_t panel, int64_t panels, int64_t begin,
                        int64_t end, int threads) {
  if (panel >= end) panel = end + (threads - 1) * (end - begin);
  const int64_t row = panel * panel_columns;
  if (row >= w.n) return {};
  return lines_of(w.rows, piece.group * w.n + row, std::min(panels * panel_columns, w.n - row), w.k);
}

// Few rows with a weight that is read in place.
void multiply_in_place(const GroupWeights& w, const Piece& piece, int64_t begin, int64_t end, int threads) {
  ProductStep step = piece.step;
  step.panels = piece.left;
  step.next = next_rows(w, piece, end, 1, begin, end, threads);
  const FlushDenormals flush;
  loops().product.pairs.multiply_weight_rows(step, begin, end - begin);
}

// One panel of a weight, as loops read it.
void pack_panel(const GroupWeights& w, int64_t group, int64_t panel, uint8_t* to) {
  if (w.encoded.empty()) return loops().product.pack_panel(at(w.rows, group * w.n), w.n, w.k, panel, w.dtype, to);
  const EncodedWeight& encoded = w.encoded[size_t(group)];
  if (const CodePanels* const panels = panels_of(encoded))
    return loops().product.decode_codes(panels->layout(), encoded.first / panel_columns + panel, w.dtype, to);
  thread_local Scratch<float> of_thread;
  float* const values = of_thread.at_least(panel_columns * w.k);
  const int64_t first = panel * panel_columns, count = std::min(panel_columns, w.n - first);
  encoded.decode(first, count, values);
  loops().product.pack_panel({values, DType::f32, w.k}, count, w.k, 0, w.dtype, to);
}

// Whether few rows are multiplied by the codes themselves.
bool reads_codes(const GroupWeights& w, const Piece& piece) {
  constexpr int64_t max_rows = 4;
  if (w.encoded.empty() || piece.shape.left != LeftSide::pairs || piece.step.m > max_rows) return false;
  const CodePanels* const panels = panels_of(w.encoded[size_t(piece.group)]);
  return panels && panels->layout().is_normal;
}

void multiply_codes(const GroupWeights& w, const Piece& piece, int64_t begin, int64_t end) {
  const EncodedWeight& encoded = w.encoded[size_t(piece.group)];
  const FlushDenormals flush;
  loops().product.pairs.multiply_codes(panels_of(encoded)->layout(), encoded.first / panel_columns, piece.step, begin,
                                       end - begin);
}

// Panels as products of their own; their right side is packed only for them.
void multiply_unpacked(const GroupWeights& w, const Piece& piece, int64_t begin, int64_t end, int threads) {
  const int64_t per_call = piece.piece_plan.panels_per_call;
  const int64_t panel_bytes = panel_elements(w.dtype, w.k) * bytes_of(w.dtype);
  thread_local Scratch<uint8_t> of_thread;
  uint8_t* const packed = of_thread.at_least(per_call * panel_bytes);
  for (int64_t panel = begin; panel < end; panel += per_call) {
    const int64_t panels = std::min(per_call, end - panel), column = panel * panel_columns;
    for (int64_t p = 0; p < panels; ++p) pack_panel(w, piece.group, panel + p, packed + p * panel_bytes);
    ProductStep step = piece.step;
    step.n = std::min(panels * panel_columns, w.n - column);
    step.panels = packed;
    step.y.data = step.y.at(0, column);
    if (step.bias) step.bias += column;
    if (w.encoded.empty()) step.next = next_rows(w, piece, panel + panels, panels, begin, end, threads);
    multiply_panels(piece, step, 0, panels);
  }
}

}  // namespace

void grouped_product(Executor& executor, std::span<const int64_t> begin, const GroupWeights& w, Input x, Output y,
                     const float* bias, AccumulationOrder order) {
  check_groups(begin);
  const bool wide = w.dtype == DType::f32, rounded = order != AccumulationOrder::fp32_chain;
  check(!(wide && rounded), "grouped product: a weight in fp32 has the order fp32_chain only");
  const Loops& isa = loops();
  Work work;
  ProductShape shape{.n = w.n,
                     .k = w.k,
                     .left = left_of_grouped_product(order, matrix_instructions()),
                     .right = wide ? RightSide::panels_f32 : RightSide::panels_bf16};
  for (size_t g = 0; g + 1 < begin.size(); ++g) {
    shape.m = begin[g + 1] - begin[g];
    const PackedWeight* const packed = w.packed.empty() ? nullptr : w.packed[g];
    const GroupRight right = packed ? GroupRight::packed_panels : GroupRight::unpacked_weight;
    // Codes have no rows that could be read in place: they are planned as rows of another dtype.
    const GroupPlan plan = plan_group(shape, right, w.encoded.empty() ? w.rows.dtype : DType::f32);
    work.add(shape, plan, right,
             {.order = order,
              .panels = packed ? packed->data() : nullptr,
              .rows = plan.weight_in_place ? at(w.rows, int64_t(g) * w.n) : Input(),
              .y = at(y, begin[g]),
              .bias = bias ? bias + int64_t(g) * w.n : nullptr},
             int64_t(g));
  }
  work.fill = [&](const Piece& piece, int64_t first, int64_t rows, void* to) {
    const int64_t row = begin[size_t(piece.group)] + piece.first_row + first, padded_k = piece.step.padded_k;
    if (piece.plan.weight_in_place) return isa.product.pack_panel(at(x, row), rows, w.k, 0, DType::bf16, to);
    switch (shape.left) {
      case LeftSide::tiles:
        return isa.product.tiles.pack_rows(x, row, rows, w.k, static_cast<bf16*>(to));
      case LeftSide::pairs:
        return isa.product.pairs.pack_rows(x, row, rows, w.k, padded_k, static_cast<uint32_t*>(to));
      case LeftSide::rows:
        return isa.product.pack_rows(x, row, rows, w.k, padded_k, rounded, static_cast<float*>(to));
    }
  };
  work.multiply = [&](const Piece& piece, int64_t panel, int64_t end) {
    if (piece.plan.weight_in_place) return multiply_in_place(w, piece, panel, end, executor.size());
    if (piece.step.panels) return multiply_as_stored(piece, panel, end);
    if (reads_codes(w, piece)) return multiply_codes(w, piece, panel, end);
    multiply_unpacked(w, piece, panel, end, executor.size());
  };
  run(executor, work);
}

void grouped_product_dx(Executor& executor, std::span<const int64_t> begin, Input dy, Input w, int64_t n, int64_t k,
                        Output dx) {
  check_groups(begin);
  if (n > max_terms_of_grouped_dx) {  // such groups are enough work by themselves
    for (size_t g = 0; g + 1 < begin.size(); ++g)
      product_dx(executor, at(dy, begin[g]), at(w, int64_t(g) * n), begin[g + 1] - begin[g], n, k, at(dx, begin[g]),
                 false);
    return;
  }
  const Loops& isa = loops();
  Work work;
  ProductShape shape{
      .n = k, .k = n, .left = left_of_gradient(dy.dtype, w.dtype, matrix_instructions()), .right = RightSide::rows};
  for (size_t g = 0; g + 1 < begin.size(); ++g) {
    shape.m = begin[g + 1] - begin[g];
    work.add(shape, plan_group(shape, GroupRight::rows, w.dtype), GroupRight::rows,
             {.rows = at(w, int64_t(g) * n), .y = at(dx, begin[g])}, int64_t(g));
  }
  work.fill = [&](const Piece& piece, int64_t first, int64_t rows, void* to) {
    const int64_t row = begin[size_t(piece.group)] + piece.first_row + first;
    switch (shape.left) {
      case LeftSide::tiles:
        return isa.product.tiles.pack_rows(dy, row, rows, n, static_cast<bf16*>(to));
      case LeftSide::pairs:
        return isa.product.pairs.pack_rows(dy, row, rows, n, piece.step.padded_k, static_cast<uint32_t*>(to));
      case LeftSide::rows:
        return isa.product.pack_rows(dy, row, rows, n, n, false, static_cast<float*>(to));
    }
  };
  work.multiply = [&](const Piece& piece, int64_t panel, int64_t end) { multiply_as_stored(piece, panel, end); };
  run(executor, work);
}

void grouped_product_dw(Executor& executor, std::span<const int64_t> begin, Input dy, Input x, int64_t n, int64_t k,
                        Output dw) {
  check_groups(begin);
  const Loops& isa = loops();
  Work work;
  ProductShape shape{.m = n,
                     .n = k,
                     .left = left_of_gradient(dy.dtype, x.dtype, matrix_instructions()),
                     .right = RightSide::rows,
                     .transposed = true};
  const bool non_temporal = is_non_temporal(dw, int64_t(begin.size() - 1) * n, k);
  for (size_t g = 0; g + 1 < begin.size(); ++g) {
    shape.k = begin[g + 1] - begin[g];
    work.add(shape, plan_group(shape, GroupRight::rows, x.dtype), GroupRight::rows,
             {.rows = at(x, begin[g]), .y = at(dw, int64_t(g) * n), .non_temporal = non_temporal}, int64_t(g));
  }
  work.fill = [&](const Piece& piece, int64_t first, int64_t columns, void* to) {
    const Input of_group = at(dy, begin[size_t(piece.group)]);
    first += piece.first_row;
    switch (shape.left) {
      case LeftSide::tiles:
        return isa.product.tiles.pack_columns(of_group, first, columns, piece.step.k, static_cast<bf16*>(to));
      case LeftSide::pairs:
        return isa.product.pairs.pack_columns(of_group, first, columns, piece.step.k, piece.step.padded_k,
                                              static_cast<uint32_t*>(to));
      case LeftSide::rows:
        return isa.product.pack_columns(of_group, first, columns, piece.step.k, static_cast<float*>(to));
    }
  };
  work.multiply = [&](const Piece& piece, int64_t panel, int64_t end) { multiply_as_stored(piece, panel, end); };
  run(executor, work);
}

}  // namespace easydel::kernels
