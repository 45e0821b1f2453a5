// Carries out the plans of product_plan.h: packs sides and runs tasks. The arithmetic is in the loops (loops.h).
#include "easydel/kernels/product.h"

#include <algorithm>
#include <atomic>

#include "easydel/base/error.h"
#include "easydel/kernels/gated_product.h"
#include "easydel/kernels/joint_products.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/product_plan.h"

namespace easydel::kernels {

namespace {

// A product as its plan describes it, and what its tasks share.
struct Planned {
  ProductShape shape;
  ProductPlan plan;
  ProductStep step;
  // Packed weights, in place of the step's right side, result and bias; shape.n counts the columns of all panels.
  std::span<const JointPart<PackedWeight>> parts = {};
};

// Calls work(step, begin, end) for each part of the panels [begin, end). `row`: the result's row that is the first.
template <class Work>
void each_step(const Planned& all, const ProductStep& step, int64_t row, int64_t begin, int64_t end, const Work& work) {
  if (all.parts.empty()) return work(step, begin, end);
  each_part(all.parts, begin, end, [&](const JointPart<PackedWeight>& part, int64_t from, int64_t to) {
    ProductStep own = step;
    own.n = part.weight->n(), own.panels = part.weight->data(), own.bias = part.bias;
    own.y = {part.y.at(row), part.y.dtype, part.y.stride};
    work(own, from, to);
  });
}

Planned planned(Executor& executor, const ProductShape& shape, const ProductStep& given) {
  Planned all{shape, plan_product(shape, executor.size()), given};
  ProductStep& step = all.step;
  step.m = shape.m, step.n = shape.n, step.k = shape.k, step.padded_k = shape.padded_k();
  step.right = shape.right, step.rows_per_block = all.plan.rows_per_block;
  return all;
}

// Denormals count as zero in every order but fp32_chain.
template <class Work>
void in_order(AccumulationOrder order, const Work& work) {
  if (order == AccumulationOrder::fp32_chain) return work();
  const FlushDenormals flush;
  work();
}

// Multiplies the packed rows of `step`, of which the first is `row`, by its panels or its row-major right side.
void multiply(Executor& executor, const Planned& all, const ProductStep& step, int64_t row) {
  const Loops& isa = loops();
  const int64_t panels = divide_up(step.n, panel_columns);
  const TaskGrid grid = plan_tasks(all.shape, all.plan, step.m, panels, executor.size());
  executor.run(grid.tasks(), [&](int64_t task) {
    const int64_t first = task / grid.panel_groups * grid.rows_per_chunk;
    const int64_t rows = std::min(grid.rows_per_chunk, step.m - first), group = task % grid.panel_groups;
    const int64_t begin = group * panels / grid.panel_groups, end = (group + 1) * panels / grid.panel_groups;
    in_order(step.order, [&] {
      each_step(all, step, row, begin, end, [&](const ProductStep& own, int64_t from, int64_t to) {
        switch (all.shape.left) {
          case LeftSide::pairs:
            return isa.product.pairs.multiply(own, from, to - from, first, rows);
          case LeftSide::tiles:
            return isa.product.tiles.multiply(own, from, to - from, first, rows);
          case LeftSide::rows:
            for (int64_t panel = from; panel < to; ++panel) isa.product.multiply(own, panel, first, rows);
        }
      });
    });
    if (step.non_temporal) std::atomic_thread_fence(std::memory_order_seq_cst);
  });
}

// Multiplies a slab of packed rows, after packing panels of a row-major right side if the plan says so.
void multiply_slab(Executor& executor, const Planned& all, ProductStep step, int64_t row) {
  const SlabPlan slab = plan_slab(all.shape, step.m);
  const int64_t per_task = slab.panels_per_packing_task, panels = divide_up(step.n, panel_columns);
  if (per_task == 0) return multiply(executor, all, step, row);
  const int64_t pairs = round_up(step.k, k_block) / 2, panel_elements = pairs * panel_columns;
  thread_local Scratch<uint32_t> of_thread;
  uint32_t* const packed = of_thread.at_least(std::min(panels, slab.panels_per_batch) * panel_elements);
  const Loops& isa = loops();
  const int64_t n = step.n;
  const Output y = step.y;
  step.right = RightSide::panels_bf16, step.panels = packed;
  for (int64_t begin = 0; begin < panels; begin += slab.panels_per_batch) {
    const int64_t count = std::min(slab.panels_per_batch, panels - begin);
    executor.run(divide_up(count, per_task), [&](int64_t task) {
      const int64_t first = task * per_task;
      isa.product.pack_pair_panels(step.rows, step.k, n, begin + first, std::min(per_task, count - first), pairs,
                                   packed + first * panel_elements);
    });
    step.n = std::min(n - begin * panel_columns, count * panel_columns);
    step.y = {y.at(0, begin * panel_columns), y.dtype, y.stride};
    multiply(executor, all, step, row);
  }
}

// Packs the left side slab by slab into the calling thread's scratch, fill(first row, rows, where), and multiplies
// each.
template <class T, class Fill>
void pack_and_multiply(Executor& executor, const Planned& all, const T* ProductStep::*left, const Fill& fill) {
  const ProductPlan& plan = all.plan;
  ProductStep step = all.step;
  thread_local Scratch<T> of_thread;
  T* const to = of_thread.at_least(std::min(plan.rows_per_slab, all.shape.m) * step.padded_k);
  const Output y = step.y;
  for (int64_t begin = 0; begin < all.shape.m; begin += plan.rows_per_slab) {
    step.m = std::min(plan.rows_per_slab, all.shape.m - begin);
    step.*left = to;
    if (all.parts.empty()) step.y = {y.at(begin), y.dtype, y.stride};
    const int64_t fills = divide_up(step.m, plan.rows_per_fill);
    executor.run(divide_up(fills, plan.fills_per_task), [&](int64_t task) {
      for (int64_t f = task * plan.fills_per_task; f < std::min(fills, (task + 1) * plan.fills_per_task); ++f) {
        const int64_t first = f * plan.rows_per_fill;
        fill(begin + first, std::min(plan.rows_per_fill, step.m - first), to + first * step.padded_k);
      }
    });
    multiply_slab(executor, all, step, begin);
  }
}

// Each task packs its own rows and multiplies them by all panels.
template <class Rows>
void multiply_row_tasks(Executor& executor, const Planned& all, const Rows& rows) {
  const Loops& isa = loops();
  const int64_t tasks = all.plan.row_tasks, m = all.shape.m;
  executor.run(tasks, [&](int64_t task) {
    ProductStep step = all.step;
    const int64_t begin = m * task / tasks;
    step.m = m * (task + 1) / tasks - begin, step.rows_per_block = equal_block_rows(step.m);
    thread_local Scratch<uint32_t> of_thread;
    uint32_t* const left = of_thread.at_least(step.m * step.padded_k);
    step.a_pairs = left;
    for (int64_t r = 0; r < step.m; r += step.rows_per_block) {
      const int64_t count = std::min(step.rows_per_block, step.m - r);
      isa.product.pairs.pack_rows(rows(begin + r, count), 0, count, step.k, step.padded_k, left + r * step.padded_k);
    }
    const FlushDenormals flush;
    each_step(all, step, begin, 0, divide_up(step.n, panel_columns),
              [&](const ProductStep& own, int64_t from, int64_t to) {
                isa.product.pairs.multiply(own, from, to - from, 0, own.m);
              });
  });
}

// rows(first, count): `count` rows of the left side starting at `first`, as a matrix that lives until the next call.
template <class Rows>
void multiply_all(Executor& executor, std::span<const JointPart<PackedWeight>> parts, int64_t m,
                  AccumulationOrder order, const Rows& rows) {
  const PackedWeight& w = *parts.front().weight;
  const bool wide = w.dtype() == DType::f32;
  check(!(wide && order != AccumulationOrder::fp32_chain), "product: a weight in fp32 has the order fp32_chain only");
  for (const auto& part : parts) check(is_joint(w, *part.weight), "joint products: other dtypes, or other inputs");
  const int64_t panels = panels_of(parts);
  if (m == 0 || panels == 0) return;
  for (const auto& part : parts) executor.will_read(part.weight->data(), part.weight->bytes());
  const Loops& isa = loops();
  Planned all = planned(executor,
                        {.m = m,
                         .n = panels * panel_columns,
                         .k = w.k(),
                         .left = left_of_product(order, matrix_instructions(), m),
                         .right = wide ? RightSide::panels_f32 : RightSide::panels_bf16},
                        {.order = order});
  all.parts = parts;
  if (all.plan.row_tasks > 0) return multiply_row_tasks(executor, all, rows);
  const int64_t k = w.k(), padded_k = all.step.padded_k;
  switch (all.shape.left) {
    case LeftSide::tiles:
      return pack_and_multiply(executor, all, &ProductStep::a_tiles, [&](int64_t first, int64_t count, bf16* to) {
        isa.product.tiles.pack_rows(rows(first, count), 0, count, k, to);
      });
    case LeftSide::pairs:
      return pack_and_multiply(executor, all, &ProductStep::a_pairs, [&](int64_t first, int64_t count, uint32_t* to) {
        isa.product.pairs.pack_rows(rows(first, count), 0, count, k, padded_k, to);
      });
    case LeftSide::rows:
      return pack_and_multiply(executor, all, &ProductStep::a, [&](int64_t first, int64_t count, float* to) {
        isa.product.pack_rows(rows(first, count), 0, count, k, padded_k, order != AccumulationOrder::fp32_chain, to);
      });
  }
}

}  // namespace

PackedWeight::PackedWeight(int64_t n, int64_t k, DType dtype) : n_(n), k_(k), number_(dtype) {
  data_ = allocate<uint8_t>(bytes());
}

int64_t PackedWeight::bytes() const {
  return divide_up(n_, panel_columns) * panel_elements(number_, k_) * bytes_of(number_);
}

void pack(Executor& executor, Input w, PackedWeight& to) {
  const Loops& isa = loops();
  const int64_t panel_bytes = panel_elements(to.dtype(), to.k()) * bytes_of(to.dtype());
  executor.run(divide_up(to.n(), panel_columns), [&](int64_t panel) {
    isa.product.pack_panel(w, to.n(), to.k(), panel, to.dtype(), to.data() + panel * panel_bytes);
  });
}

PackedWeight pack(Executor& executor, Input w, int64_t n, int64_t k, DType dtype) {
  PackedWeight packed(n, k, dtype);
  pack(executor, w, packed);
  return packed;
}

void product(Executor& executor, const PackedWeight& w, Input x, int64_t m, Output y, const float* bias,
             AccumulationOrder order) {
  const JointPart<PackedWeight> only{&w, y, bias};
  products(executor, {&only, 1}, x, m, order);
}

void products(Executor& executor, std::span<const JointPart<PackedWeight>> parts, Input x, int64_t m,
              AccumulationOrder order) {
  multiply_all(executor, parts, m, order,
               [&](int64_t first, int64_t) { return Input(x.at(first), x.dtype, x.stride); });
}

void gated_product(Executor& executor, const PackedWeight& w, Activation activation, Input gate, Input up, int64_t m,
                   Output y, const float* bias, AccumulationOrder order) {
  const JointPart<PackedWeight> only{&w, y, bias};
  const Loops& isa = loops();
  multiply_all(executor, {&only, 1}, m, order, [&](int64_t first, int64_t count) {
    thread_local Scratch<uint8_t> of_thread;
    const Output activated{of_thread.at_least(count * w.k() * bytes_of(gate.dtype)), gate.dtype, w.k()};
    const Input gate_rows(gate.at(first), gate.dtype, gate.stride);
    const Input up_rows(up.data ? up.at(first) : nullptr, up.dtype, up.stride);
    for (int64_t row = 0; row < count; ++row)
      isa.pointwise.activate(activation, gate_rows, up_rows, row, w.k(), activated);
    return Input(activated);
  });
}

void product_dx(Executor& executor, Input dy, Input w, int64_t m, int64_t n, int64_t k, Output dx, bool add) {
  if (m == 0 || k == 0) return;
  const Loops& isa = loops();
  const LeftSide left = left_of_gradient(dy.dtype, w.dtype, matrix_instructions());
  const auto all = [&] {
    return planned(executor, {.m = m, .n = k, .k = n, .left = left, .right = RightSide::rows},
                   {.rows = w, .y = dx, .add = add});
  };
  if (left == LeftSide::tiles)
    return pack_and_multiply(executor, all(), &ProductStep::a_tiles, [&](int64_t first, int64_t rows, bf16* to) {
      isa.product.tiles.pack_rows(dy, first, rows, n, to);
    });
  if (left == LeftSide::pairs) {
    const Planned pairs = all();
    return pack_and_multiply(executor, pairs, &ProductStep::a_pairs, [&](int64_t first, int64_t rows, uint32_t* to) {
      isa.product.pairs.pack_rows(dy, first, rows, n, pairs.step.padded_k, to);
    });
  }
  const DxPlan plan = plan_dx_of_rows(n);
  const int64_t terms = plan.terms_per_stretch;
  if (terms < n && dx.dtype == DType::bf16) {
    thread_local Scratch<float> of_caller;
    float* const sums = of_caller.at_least(std::min(plan.rows_per_slab, m) * k);
    for (int64_t first = 0; first < m; first += plan.rows_per_slab) {
      const int64_t rows = std::min(plan.rows_per_slab, m - first);
      product_dx(executor, {dy.at(first), dy.dtype, dy.stride}, w, rows, n, k, {sums, k}, false);
      const Output to{dx.at(first), dx.dtype, dx.stride};
      executor.run(rows, [&](int64_t r) {
        if (add)
          isa.pointwise.sum_rows({sums, k}, to, r, k, to);
        else
          isa.pointwise.copy_row(sums + r * k, DType::f32, k, to.at(r), DType::bf16);
      });
    }
    return;
  }
  if (terms < n) {
    for (int64_t begin = 0; begin < n; begin += terms)
      product_dx(executor, {dy.at(0, begin), dy.dtype, dy.stride}, {w.at(begin), w.dtype, w.stride}, m,
                 std::min(terms, n - begin), k, dx, add || begin > 0);
    return;
  }
  pack_and_multiply(executor, all(), &ProductStep::a, [&](int64_t first, int64_t rows, float* to) {
    isa.product.pack_rows(dy, first, rows, n, n, false, to);
  });
}

void product_dw(Executor& executor, Input dy, Input x, int64_t m, int64_t n, int64_t k, Output dw, bool add) {
  if (n == 0 || k == 0) return;
  const Loops& isa = loops();
  const LeftSide left = left_of_gradient(dy.dtype, x.dtype, matrix_instructions());
  const bool non_temporal = left != LeftSide::rows && !add && is_non_temporal(dw, n, k);
  const Planned all =
      planned(executor, {.m = n, .n = k, .k = m, .left = left, .right = RightSide::rows, .transposed = true},
              {.rows = x, .y = dw, .add = add, .non_temporal = non_temporal});
  switch (left) {
    case LeftSide::tiles:
      return pack_and_multiply(executor, all, &ProductStep::a_tiles, [&](int64_t first, int64_t columns, bf16* to) {
        isa.product.tiles.pack_columns(dy, first, columns, m, to);
      });
    case LeftSide::pairs:
      return pack_and_multiply(executor, all, &ProductStep::a_pairs, [&](int64_t first, int64_t columns, uint32_t* to) {
        isa.product.pairs.pack_columns(dy, first, columns, m, all.step.padded_k, to);
      });
    case LeftSide::rows:
      return pack_and_multiply(executor, all, &ProductStep::a, [&](int64_t first, int64_t columns, float* to) {
        isa.product.pack_columns(dy, first, columns, m, to);
      });
  }
}

void sum_rows(Executor& executor, Input dy, int64_t m, int64_t n, float* db, bool add) {
  constexpr int64_t columns_per_task = 128;
  executor.run(divide_up(n, columns_per_task), [&](int64_t task) {
    const int64_t first = task * columns_per_task, count = std::min(columns_per_task, n - first);
    float sum[columns_per_task] = {};
    for (int64_t r = 0; r < m; ++r) {
      const void* const row = dy.at(r, first);
      for (int64_t c = 0; c < count; ++c)
        sum[c] += dy.dtype == DType::f32 ? static_cast<const float*>(row)[c] : widen(static_cast<const bf16*>(row)[c]);
    }
    for (int64_t c = 0; c < count; ++c) db[first + c] = add ? db[first + c] + sum[c] : sum[c];
  });
}

}  // namespace easydel::kernels
