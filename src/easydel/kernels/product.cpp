// Cuts products into parts; the parts themselves are loops.h.
#include "easydel/kernels/product.h"

#include <algorithm>
#include <atomic>

#include "easydel/base/error.h"
#include "easydel/kernels/gated_product.h"
#include "easydel/kernels/loops.h"

namespace easydel::kernels {

namespace {

// How many rows of the left side, a multiple of `block`, go through all panels before the next: as many as `near` bytes
// hold, while each panel piece is read from memory once per chunk; but no fewer than `least`.
int64_t chunk_of(int64_t m, int64_t row_bytes, int64_t block, int64_t near, int64_t least) {
  const int64_t most = std::max(least / block, near / (std::max<int64_t>(row_bytes, 1) * block));
  const int64_t blocks = divide_up(m, block), chunks = divide_up(blocks, most);
  return divide_up(blocks, std::max<int64_t>(chunks, 1)) * block;
}

// Whether rows are so long by tiles that those which go together do not stay in the second cache; 512 go together
// then, and 16 panels, whose sums stay there instead.
constexpr int64_t long_together = 512;
bool of_long_rows(const ProductStep& step) {
  return step.a_tiles && step.padded_k * 2 * std::min<int64_t>(step.m, 256) > near_tiles;
}

// All parts of a product whose left side is packed already.
void multiply(Executor& executor, const ProductStep& step) {
  const Loops& isa = loops();
  // Near 1 MiB stays in the second cache or streams from the third; of pairs what is read again stays in the second.
  // Panels that are gathered want 384 rows, which pay for that.
  constexpr int64_t near = 1 << 20, least = 96;
  const bool long_rows = of_long_rows(step);
  const int64_t chunk =
      step.a_pairs ? chunk_of(step.m, std::min(step.padded_k, near_pairs) * 4, step.block, near / 16 * 9, least)
      : long_rows  ? chunk_of(step.m, step.padded_k * 2, tile_rows, 0, long_together)
      : step.a_tiles
          ? chunk_of(step.m, step.padded_k * 2, tile_rows, near_tiles, least)
          : chunk_of(step.m, step.padded_k * 4, block_rows, near, step.right == RightSide::rows ? 384 : least);
  const int64_t panels = divide_up(step.n, panel_columns), chunks = divide_up(step.m, std::max<int64_t>(chunk, 1));
  // Parts of some 100 us, so that a thread which comes late finds work left, and as large as each other where they are
  // few; of long pairs more panels, for which a stretch of the left side comes once.
  const int64_t work = step.padded_k * panel_columns * std::min(chunk, step.m) + step.padded_k * panel_columns * 16;
  const int64_t most = std::max<int64_t>(1, divide_up(panels * chunks, (long_rows ? 1 : 3) * executor.size()));
  const bool in_stretches = step.a_pairs && step.padded_k > near_pairs && step.m > step.block;
  const int64_t least_together = long_rows ? 16 : in_stretches ? 6 : 1;
  const int64_t together = std::clamp<int64_t>((int64_t(1) << (step.a_tiles ? 25 : 23)) / std::max<int64_t>(work, 1),
                                               std::min(least_together, most), most);
  const int64_t groups =
      even_parts(panels, divide_up(panels, together), chunks % executor.size() ? executor.size() : 1);
  executor.run(chunks * groups, [&](int64_t part) {
    const int64_t first = part / groups * chunk, rows = std::min(chunk, step.m - first);
    const int64_t begin = part % groups * panels / groups, end = (part % groups + 1) * panels / groups;
    const auto all = [&] {
      if (step.a_pairs) return isa.multiply_pairs(step, begin, end - begin, first, rows);
      if (step.a_tiles) return isa.multiply_tiles(step, begin, end - begin, first, rows);
      for (int64_t panel = begin; panel < end; ++panel) isa.multiply(step, panel, first, rows);
    };
    if (step.order != Order::fp32_chain) {
      const FlushDenormals flush;
      all();
    } else {
      all();
    }
    if (step.streams) std::atomic_thread_fence(std::memory_order_seq_cst);
  });
}

// The same from row-major rows by pairs or tiles: those are packed first, for all rows of the left side, as many
// columns at a time as 8 MiB hold, which the multiplication then finds in the last cache.
void pack_right_and_multiply(Executor& executor, ProductStep step) {
  constexpr int64_t together = 4;  // panels, so that whole lines of a row are read
  const int64_t pairs = step.a_tiles ? step.padded_k / 2 : step.padded_k;
  const int64_t panel = pairs * panel_columns, panels = divide_up(step.n, panel_columns);
  const int64_t most = std::max(together, (2 << 20) / std::max<int64_t>(panel, 1) / together * together);
  thread_local Scratch<uint32_t> of_thread;
  uint32_t* const packed = of_thread.at_least(std::min(panels, most) * panel);
  const Loops& isa = loops();
  const int64_t n = step.n;
  const Output y = step.y;
  step.right = RightSide::panels_bf16, step.panels = packed;
  for (int64_t begin = 0; begin < panels; begin += most) {
    const int64_t count = std::min(most, panels - begin);
    executor.run(divide_up(count, together), [&](int64_t part) {
      const int64_t first = part * together;
      isa.pack_pair_panels(step.rows, step.k, n, begin + first, std::min(together, count - first), pairs,
                           packed + first * panel);
    });
    step.n = std::min(n - begin * panel_columns, count * panel_columns);
    step.y = {y.at(0, begin * panel_columns), y.number, y.stride};
    multiply(executor, step);
  }
}

// Packs the left side, fill(first row, rows, where), in blocks of up to `block` rows, into the calling thread's scratch
// and multiplies; no more rows at a time than 32 MiB hold, so that a vocabulary on the left costs no more than that.
template <class T, class Fill>
void pack_and_multiply(Executor& executor, ProductStep step, const T* ProductStep::*left, int64_t block,
                       const Fill& fill) {
  const int64_t row_bytes = std::max<int64_t>(step.padded_k, 1) * int64_t(sizeof(T)), m = step.m;
  const int64_t slab = std::max<int64_t>(192, (32 << 20) / row_bytes / 96 * 96);
  const int64_t together = std::max<int64_t>(1, (1 << 18) / (row_bytes * block));
  thread_local Scratch<T> of_thread;
  T* const to = of_thread.at_least(std::min(slab, m) * step.padded_k);
  const Output y = step.y;
  for (int64_t begin = 0; begin < m; begin += slab) {
    step.m = std::min(slab, m - begin);
    step.*left = to;
    step.y = {y.at(begin), y.number, y.stride};
    const int64_t blocks = divide_up(step.m, block);
    executor.run(divide_up(blocks, together), [&](int64_t part) {
      for (int64_t b = part * together; b < std::min(blocks, (part + 1) * together); ++b)
        fill(begin + b * block, std::min(block, step.m - b * block), to + b * block * step.padded_k);
    });
    // Of long rows by tiles the panels are gathered where they are used, if that is not many times.
    const bool gathers = of_long_rows(step) && step.m <= 2 * long_together;
    if ((step.a_pairs || step.a_tiles) && step.right == RightSide::rows && !gathers)
      pack_right_and_multiply(executor, step);
    else
      multiply(executor, step);
  }
}

// rows(first, count): rows of the left side from `first` on, as a matrix of their own, which lasts until the next call.
template <class Rows>
void multiply_one(Executor& executor, ProductStep step, const Rows& rows) {
  const Loops& isa = loops();
  constexpr int64_t fewest_for_tiles = 4;  // with fewer rows the vectors are at memory speed already
  if (step.order == Order::bf16_tile && isa.multiply_tiles && step.m >= fewest_for_tiles)
    return pack_and_multiply(
        executor, step, &ProductStep::a_tiles, tile_rows,
        [&](int64_t first, int64_t count, bf16* to) { isa.pack_tile_rows(rows(first, count), 0, count, step.k, to); });
  if (step.order == Order::bf16_pairs && isa.multiply_pairs) {
    step.padded_k /= 2, step.block = even_block(step.m);
    return pack_and_multiply(executor, step, &ProductStep::a_pairs, step.block,
                             [&](int64_t first, int64_t count, uint32_t* to) {
                               isa.pack_pair_rows(rows(first, count), 0, count, step.k, step.padded_k, to);
                             });
  }
  const bool rounded = step.order != Order::fp32_chain;
  pack_and_multiply(executor, step, &ProductStep::a, block_rows, [&](int64_t first, int64_t count, float* to) {
    isa.pack_rows(rows(first, count), 0, count, step.k, step.padded_k, rounded, to);
  });
}

// Into how many parts many rows are cut where each part packs rows of its own, which then stay in the second cache, and
// multiplies them by all panels: no thread waits for another's packing, and all of k comes in one stretch. 0 where
// rows are too long for that, or too few to read every panel for.
int64_t parts_of_rows(int64_t m, int64_t pairs, int threads) {
  constexpr int64_t least = 48, most = 160, fewest_of_long = 96;
  const int64_t near = near_rows / std::max<int64_t>(pairs * 4, 1);
  if (near < fewest_of_long) return 0;
  const int64_t parts = round_up(divide_up(m, std::min(most, near)), threads);
  return m >= parts * least ? parts : 0;
}

template <class Rows>
void multiply_by_rows(Executor& executor, const ProductStep& all, int64_t parts, const Rows& rows) {
  const Loops& isa = loops();
  executor.run(parts, [&](int64_t part) {
    ProductStep step = all;
    const int64_t begin = all.m * part / parts;
    step.m = all.m * (part + 1) / parts - begin, step.padded_k = all.padded_k / 2, step.block = even_block(step.m);
    step.y = {all.y.at(begin), all.y.number, all.y.stride};
    thread_local Scratch<uint32_t> of_thread;
    uint32_t* const left = of_thread.at_least(step.m * step.padded_k);
    step.a_pairs = left;
    for (int64_t r = 0; r < step.m; r += step.block) {
      const int64_t count = std::min(step.block, step.m - r);
      isa.pack_pair_rows(rows(begin + r, count), 0, count, step.k, step.padded_k, left + r * step.padded_k);
    }
    const FlushDenormals flush;
    isa.multiply_pairs(step, 0, divide_up(step.n, panel_columns), 0, step.m);
  });
}

template <class Rows>
void multiply_all(Executor& executor, const PackedWeight& w, int64_t m, Output y, const float* bias, Order order,
                  const Rows& rows) {
  const bool wide = w.number() == Number::f32;
  check(!(wide && order != Order::fp32_chain), "product: a weight in fp32 has the order fp32_chain only");
  if (m == 0 || w.n() == 0) return;
  executor.reads(w.data(), w.bytes());
  ProductStep step{.m = m, .n = w.n(), .k = w.k(), .padded_k = wide ? w.k() : round_up(w.k(), k_block)};
  step.right = wide ? RightSide::panels_f32 : RightSide::panels_bf16;
  step.order = order, step.panels = w.data(), step.y = y, step.bias = bias;
  if (order == Order::bf16_pairs && loops().multiply_pairs)
    if (const int64_t parts = parts_of_rows(m, step.padded_k / 2, executor.size()); parts > 0)
      return multiply_by_rows(executor, step, parts, rows);
  multiply_one(executor, step, rows);
}

}  // namespace

PackedWeight::PackedWeight(int64_t n, int64_t k, Number number) : n_(n), k_(k), number_(number) {
  data_ = allocate<uint8_t>(bytes());
}

int64_t PackedWeight::bytes() const {
  return divide_up(n_, panel_columns) * panel_elements(number_, k_) * bytes_of(number_);
}

void pack(Executor& executor, Input w, PackedWeight& to) {
  const Loops& isa = loops();
  const int64_t panel_bytes = panel_elements(to.number(), to.k()) * bytes_of(to.number());
  executor.run(divide_up(to.n(), panel_columns), [&](int64_t panel) {
    isa.pack_panel(w, to.n(), to.k(), panel, to.number(), to.data() + panel * panel_bytes);
  });
}

PackedWeight pack(Executor& executor, Input w, int64_t n, int64_t k, Number number) {
  PackedWeight packed(n, k, number);
  pack(executor, w, packed);
  return packed;
}

void product(Executor& executor, const PackedWeight& w, Input x, int64_t m, Output y, const float* bias, Order order) {
  multiply_all(executor, w, m, y, bias, order,
               [&](int64_t first, int64_t) { return Input(x.at(first), x.number, x.stride); });
}

void gated_product(Executor& executor, const PackedWeight& w, Activation activation, Input gate, Input up, int64_t m,
                   Output y, const float* bias, Order order) {
  const Loops& isa = loops();
  multiply_all(executor, w, m, y, bias, order, [&](int64_t first, int64_t count) {
    thread_local Scratch<uint8_t> of_thread;
    const Output made{of_thread.at_least(count * w.k() * bytes_of(gate.number)), gate.number, w.k()};
    const Input from(gate.at(first), gate.number, gate.stride);
    const Input times(up.data ? up.at(first) : nullptr, up.number, up.stride);
    for (int64_t row = 0; row < count; ++row) isa.activate(activation, from, times, row, w.k(), made);
    return Input(made);
  });
}

void product_dx(Executor& executor, Input dy, Input w, int64_t m, int64_t n, int64_t k, Output dx, bool add) {
  if (m == 0 || k == 0) return;
  ProductStep step{.m = m, .n = k, .k = n, .padded_k = n, .right = RightSide::rows, .rows = w, .y = dx, .add = add};
  const Loops& isa = loops();
  const Left left = left_of_gradient(dy, w);
  if (left == Left::tiles) {
    step.padded_k = round_up(n, k_block);
    return pack_and_multiply(
        executor, step, &ProductStep::a_tiles, tile_rows,
        [&](int64_t first, int64_t rows, bf16* to) { isa.pack_tile_rows(dy, first, rows, n, to); });
  }
  if (left == Left::pairs) {
    step.padded_k = round_up(n, k_block) / 2, step.block = even_block(m);
    return pack_and_multiply(
        executor, step, &ProductStep::a_pairs, step.block,
        [&](int64_t first, int64_t rows, uint32_t* to) { isa.pack_pair_rows(dy, first, rows, n, step.padded_k, to); });
  }
  // A long sum goes in stretches, so that the left side of one stays near; to bf16 it goes by rows in fp32, as many as
  // pay for reading all of w.
  constexpr int64_t longest = 2048, together = 384;
  if (n > longest && dx.number == Number::bf16) {
    thread_local Scratch<float> of_caller;
    float* const sums = of_caller.at_least(std::min(together, m) * k);
    for (int64_t first = 0; first < m; first += together) {
      const int64_t rows = std::min(together, m - first);
      product_dx(executor, {dy.at(first), dy.number, dy.stride}, w, rows, n, k, {sums, k}, false);
      const Output to{dx.at(first), dx.number, dx.stride};
      executor.run(rows, [&](int64_t r) {
        if (add)
          loops().sum_rows({sums, k}, to, r, k, to);
        else
          loops().copy_row(sums + r * k, Number::f32, k, to.at(r), Number::bf16);
      });
    }
    return;
  }
  if (n > longest) {
    for (int64_t begin = 0; begin < n; begin += longest)
      product_dx(executor, {dy.at(0, begin), dy.number, dy.stride}, {w.at(begin), w.number, w.stride}, m,
                 std::min(longest, n - begin), k, dx, add || begin > 0);
    return;
  }
  pack_and_multiply(executor, step, &ProductStep::a, block_rows,
                    [&](int64_t first, int64_t rows, float* to) { isa.pack_rows(dy, first, rows, n, n, false, to); });
}

void product_dw(Executor& executor, Input dy, Input x, int64_t m, int64_t n, int64_t k, Output dw, bool add) {
  if (n == 0 || k == 0) return;
  ProductStep step{.m = n, .n = k, .k = m, .padded_k = m, .right = RightSide::rows, .rows = x, .y = dw, .add = add};
  const Loops& isa = loops();
  const Left left = left_of_gradient(dy, x);
  step.streams = left != Left::rows && !add && passes_caches(dw, n, k);
  if (left == Left::tiles) {
    step.padded_k = round_up(m, k_block);
    constexpr int64_t columns_together = 4 * tile_rows;  // four lines of a row
    return pack_and_multiply(
        executor, step, &ProductStep::a_tiles, columns_together,
        [&](int64_t first, int64_t columns, bf16* to) { isa.pack_tile_columns(dy, first, columns, m, to); });
  }
  if (left == Left::pairs) {
    step.padded_k = round_up(m, k_block) / 2;
    constexpr int64_t columns_together = 8 * block_rows;  // three lines of a row
    return pack_and_multiply(executor, step, &ProductStep::a_pairs, columns_together,
                             [&](int64_t first, int64_t columns, uint32_t* to) {
                               isa.pack_pair_columns(dy, first, columns, m, step.padded_k, to);
                             });
  }
  pack_and_multiply(executor, step, &ProductStep::a, block_rows,
                    [&](int64_t first, int64_t rows, float* to) { isa.pack_columns(dy, first, rows, m, to); });
}

void sum_rows(Executor& executor, Input dy, int64_t m, int64_t n, float* db, bool add) {
  constexpr int64_t columns = 128;
  executor.run(divide_up(n, columns), [&](int64_t part) {
    const int64_t first = part * columns, count = std::min(columns, n - first);
    float sum[columns] = {};
    for (int64_t r = 0; r < m; ++r) {
      const void* const row = dy.at(r, first);
      for (int64_t c = 0; c < count; ++c)
        sum[c] +=
            dy.number == Number::f32 ? static_cast<const float*>(row)[c] : widen(static_cast<const bf16*>(row)[c]);
    }
    for (int64_t c = 0; c < count; ++c) db[first + c] = add ? db[first + c] + sum[c] : sum[c];
  });
}

}  // namespace easydel::kernels
