// Cuts grouped products into pieces of rows, packs their left sides, and multiplies them panel by panel.
#include "easydel/kernels/grouped.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"

namespace easydel::kernels {
namespace {

// Rows of one group's result, a product of their own.
struct Piece {
  ProductStep step;
  int64_t group = 0, first = 0;  // of the group's rows
  uint8_t* left = nullptr;       // where its left side is packed
  bool turned = false;           // as panels: the weight's rows are read where they lie, see pair_row_loops.h

  int64_t row_bytes(Left how) const { return step.padded_k * (how == Left::tiles ? 2 : 4); }
};

struct Work {
  Left left = Left::rows;
  std::vector<Piece> pieces;
  // Rows [first, first + rows) of a piece's left side, packed; panels [begin, end) of its result.
  std::function<void(const Piece& piece, int64_t first, int64_t rows, void* to)> fill;
  std::function<void(const Piece& piece, int64_t begin, int64_t end)> multiply;

  int64_t block_of(const Piece& piece) const {
    return piece.turned          ? panel_columns
           : left == Left::tiles ? tile_rows
           : left == Left::pairs ? piece.step.block
                                 : block_rows;
  }

  // The product of a whole group in pieces whose left sides, near 1 MiB, stay in the second cache; larger ones where
  // each piece gathers or packs its right side anew.
  void add(const ProductStep& whole, int64_t group, bool turned = false) {
    const bool gathers = whole.right == RightSide::rows && left != Left::pairs,
               packs = !whole.panels && (whole.right != RightSide::rows || left == Left::tiles);
    const int64_t block = block_of({whole}), bytes = Piece{whole}.row_bytes(left) * whole.m,
                  near = packs ? 2 << 20 : 1 << 20;
    const int64_t rows =
        std::max<int64_t>(gathers ? 384 : 96, round_up(divide_up(whole.m, divide_up(bytes + 1, near)), block));
    for (int64_t first = 0; first < whole.m; first += rows) {
      Piece& piece = pieces.emplace_back(Piece{whole, group, first});
      piece.turned = turned;
      piece.step.m = std::min(rows, whole.m - first);
      piece.step.y = {whole.y.at(first), whole.y.number, whole.y.stride};
    }
  }
};

// Blocks of a piece's rows, or panels of its columns.
struct Part {
  const Piece* piece;
  int64_t begin, end;
};

// Each piece's `count(piece)` units in parts of about `size(piece)` of them, all alike; of a piece alone as many as
// leave no thread without one at the end.
template <class Count, class Size>
std::vector<Part> parts_of(std::span<const Piece> pieces, int64_t threads, const Count& count, const Size& size) {
  std::vector<Part> parts;
  for (const Piece& piece : pieces) {
    const int64_t all = count(piece), least = divide_up(all, std::clamp<int64_t>(size(piece), 1, all)),
                  cuts = even_parts(all, least, pieces.size() == 1 ? threads : 1);
    for (int64_t i = 0; i < cuts; ++i) parts.push_back({&piece, i * all / cuts, (i + 1) * all / cuts});
  }
  return parts;
}

void run(Executor& executor, Work& work) {
  thread_local Scratch<uint8_t> of_caller;
  const auto bytes = [&](const Piece& piece) {
    const int64_t rows = piece.turned ? round_up(piece.step.m, panel_columns) : piece.step.m;
    return round_up(rows * piece.row_bytes(work.left), 64);
  };
  for (std::span<Piece> rest = work.pieces; !rest.empty();) {
    // As many left sides at a time as 32 MiB hold.
    int64_t held = 0, columns = 0;
    size_t count = 0;
    for (; count < rest.size() && (count == 0 || held + bytes(rest[count]) <= 32 << 20); ++count) {
      held += bytes(rest[count]);
      columns += divide_up(rest[count].step.n, panel_columns);
    }
    const std::span<Piece> pieces = rest.first(count);
    rest = rest.subspan(count);
    uint8_t* to = of_caller.at_least(std::max<int64_t>(held, 1));
    for (Piece& piece : pieces) {
      piece.left = to, to += bytes(piece);
      piece.step.a = work.left == Left::rows ? reinterpret_cast<const float*>(piece.left) : nullptr;
      piece.step.a_tiles = work.left == Left::tiles ? reinterpret_cast<const bf16*>(piece.left) : nullptr;
      piece.step.a_pairs = work.left == Left::pairs ? reinterpret_cast<const uint32_t*>(piece.left) : nullptr;
    }

    const std::vector<Part> packing = parts_of(
        pieces, executor.size(), [&](const Piece& p) { return divide_up(p.step.m, work.block_of(p)); },
        [&](const Piece& p) { return (1 << 18) / std::max<int64_t>(p.row_bytes(work.left) * work.block_of(p), 1); });
    executor.run(int64_t(packing.size()), [&](int64_t i) {
      const Piece& piece = *packing[size_t(i)].piece;
      const int64_t block = work.block_of(piece);
      for (int64_t b = packing[size_t(i)].begin; b < packing[size_t(i)].end; ++b)
        work.fill(piece, b * block, std::min(block, piece.step.m - b * block),
                  piece.left + b * block * piece.row_bytes(work.left));
    });

    // Parts of some 100 us, but no fewer than the threads; longer where the next panel is asked for in this one's time.
    const int64_t most = divide_up(columns, 2 * executor.size());
    const int64_t size = int64_t(1) << (work.left == Left::rows ? 23 : 25);
    const std::vector<Part> products = parts_of(
        pieces, executor.size(), [](const Piece& p) { return divide_up(p.step.n, panel_columns); },
        [&](const Piece& p) {
          const int64_t panel = p.step.padded_k * panel_columns * (p.step.m + 16);
          return std::min(most, size / std::max<int64_t>(panel, 1));
        });
    executor.run(int64_t(products.size()), [&](int64_t i) {
      work.multiply(*products[size_t(i)].piece, products[size_t(i)].begin, products[size_t(i)].end);
    });
  }
}

void check_groups(std::span<const int64_t> begin) {
  check(!begin.empty() && std::is_sorted(begin.begin(), begin.end()), "grouped product: rows do not ascend");
}

Input at(Input x, int64_t row) { return {x.at(row), x.number, x.stride}; }
Output at(Output x, int64_t row) { return {x.at(row), x.number, x.stride}; }

// `panels` panels of a product, all rows.
void multiply_panels(Left left, const ProductStep& step, int64_t panel, int64_t panels) {
  const Loops& isa = loops();
  const auto all = [&] {
    constexpr int64_t near = 576;  // rows, in even chunks
    const int64_t chunk = round_up(divide_up(step.m, divide_up(std::max<int64_t>(step.m, 1), near)), step.block);
    if (left == Left::tiles) return isa.multiply_tiles(step, panel, panels, 0, step.m);
    if (left == Left::pairs)
      for (int64_t first = 0; first < step.m; first += chunk)
        isa.multiply_pairs(step, panel, panels, first, std::min(chunk, step.m - first));
    else
      for (int64_t p = panel; p < panel + panels; ++p) isa.multiply(step, p, 0, step.m);
  };
  if (step.order == Order::fp32_chain) return all();
  const FlushDenormals flush;
  all();
}

// Panels that are packed, or rows of a gradient, of which panels are made where they are multiplied by.
void multiply_together(Left left, const ProductStep& step, int64_t begin, int64_t end) {
  const int64_t together = step.right == RightSide::rows && step.padded_k <= near_pairs / 2 ? 8 : 4;
  for (int64_t panel = begin; panel < end; panel += together)
    multiply_panels(left, step, panel, std::min(together, end - panel));
  if (step.streams) std::atomic_thread_fence(std::memory_order_seq_cst);
}

// The weight's rows of as many panels, which this one of `threads` threads is likely to read next, behind some of its
// part [begin, end).
Soon next_rows(const GroupWeights& w, const Piece& piece, int64_t panel, int64_t panels, int64_t begin, int64_t end,
               int threads) {
  if (panel >= end) panel = end + (threads - 1) * (end - begin);
  const int64_t row = panel * panel_columns;
  if (row >= w.n) return {};
  return lines_of(w.rows, piece.group * w.n + row, std::min(panels * panel_columns, w.n - row), w.k);
}

// Panels of few rows, from the weight where it lies.
void multiply_turned(const GroupWeights& w, const Piece& piece, int64_t begin, int64_t end, int threads) {
  ProductStep own = piece.step;
  own.panels = piece.left;
  own.soon = next_rows(w, piece, end, 1, begin, end, threads);
  const FlushDenormals flush;
  loops().multiply_pair_rows(own, begin, end - begin);
}

// Panels as products of their own, from a weight that is packed for them alone: of few rows one by one.
void multiply_unpacked(Left left, const GroupWeights& w, const Piece& piece, int64_t begin, int64_t end, int threads) {
  const bool few = piece.row_bytes(left) * piece.step.m <= 1 << 19;
  const int64_t together = few || left == Left::rows ? 1 : 4,
                bytes = panel_elements(w.number, w.k) * bytes_of(w.number);
  thread_local Scratch<uint8_t> of_thread;
  uint8_t* const packed = of_thread.at_least(together * bytes);
  const Input rows = at(w.rows, piece.group * w.n);
  for (int64_t panel = begin; panel < end; panel += together) {
    const int64_t panels = std::min(together, end - panel), column = panel * panel_columns;
    for (int64_t p = 0; p < panels; ++p) loops().pack_panel(rows, w.n, w.k, panel + p, w.number, packed + p * bytes);
    ProductStep own = piece.step;
    own.n = std::min(panels * panel_columns, w.n - column);
    own.panels = packed;
    own.y.data = own.y.at(0, column);
    if (own.bias) own.bias += column;
    own.soon = next_rows(w, piece, panel + panels, panels, begin, end, threads);
    multiply_panels(left, own, 0, panels);
  }
}

// Whether all of a group's rows go with its weight unpacked: packing it takes longer than their products then gain, and
// they stay in the second cache.
bool goes_turned(const GroupWeights& w, int64_t rows) {
  constexpr int64_t most = 128, near = 1 << 20;
  return w.rows.number == Number::bf16 && w.k % k_block == 0 && rows <= most &&
         rows * w.k * bytes_of(Number::bf16) <= near;
}

// k of a gradient's sums as its left side has them.
int64_t padded(Left left, int64_t k) {
  return left == Left::rows ? k : left == Left::tiles ? round_up(k, k_block) : round_up(k, k_block) / 2;
}

}  // namespace

void grouped_product(Executor& executor, std::span<const int64_t> begin, const GroupWeights& w, Input x, Output y,
                     const float* bias, Order order) {
  check_groups(begin);
  const bool wide = w.number == Number::f32, rounded = order != Order::fp32_chain;
  check(!(wide && rounded), "grouped product: a weight in fp32 has the order fp32_chain only");
  const Loops& isa = loops();
  Work work;
  if (order == Order::bf16_tile && isa.multiply_tiles) work.left = Left::tiles;
  if (order == Order::bf16_pairs && isa.multiply_pairs) work.left = Left::pairs;
  ProductStep step{.n = w.n, .k = w.k, .padded_k = wide ? w.k : round_up(w.k, k_block)};
  if (work.left == Left::pairs) step.padded_k /= 2;
  step.right = wide ? RightSide::panels_f32 : RightSide::panels_bf16;
  step.order = order;
  for (size_t g = 0; g + 1 < begin.size(); ++g) {
    step.m = begin[g + 1] - begin[g], step.block = even_block(step.m);
    step.y = at(y, begin[g]);
    step.bias = bias ? bias + int64_t(g) * w.n : nullptr;
    const PackedWeight* const packed = w.packed.empty() ? nullptr : w.packed[g];
    step.panels = packed ? packed->data() : nullptr;
    const bool turned = work.left == Left::pairs && !packed && goes_turned(w, step.m);
    if (turned) step.rows = at(w.rows, int64_t(g) * w.n);
    work.add(step, int64_t(g), turned);
  }
  work.fill = [&](const Piece& piece, int64_t first, int64_t rows, void* to) {
    const int64_t row = begin[size_t(piece.group)] + piece.first + first, padded = piece.step.padded_k;
    if (piece.turned) return isa.pack_panel(at(x, row), rows, w.k, 0, Number::bf16, to);
    switch (work.left) {
      case Left::tiles:
        return isa.pack_tile_rows(x, row, rows, w.k, static_cast<bf16*>(to));
      case Left::pairs:
        return isa.pack_pair_rows(x, row, rows, w.k, padded, static_cast<uint32_t*>(to));
      case Left::rows:
        return isa.pack_rows(x, row, rows, w.k, padded, rounded, static_cast<float*>(to));
    }
  };
  work.multiply = [&](const Piece& piece, int64_t panel, int64_t end) {
    if (piece.turned) return multiply_turned(w, piece, panel, end, executor.size());
    if (piece.step.panels) return multiply_together(work.left, piece.step, panel, end);
    multiply_unpacked(work.left, w, piece, panel, end, executor.size());
  };
  run(executor, work);
}

void grouped_product_dx(Executor& executor, std::span<const int64_t> begin, Input dy, Input w, int64_t n, int64_t k,
                        Output dx) {
  check_groups(begin);
  constexpr int64_t longest = 2048;  // longer sums go in stretches, and are work enough by themselves
  if (n > longest) {
    for (size_t g = 0; g + 1 < begin.size(); ++g)
      product_dx(executor, at(dy, begin[g]), at(w, int64_t(g) * n), begin[g + 1] - begin[g], n, k, at(dx, begin[g]),
                 false);
    return;
  }
  const Loops& isa = loops();
  Work work;
  work.left = left_of_gradient(dy, w);
  ProductStep step{.n = k, .k = n, .padded_k = padded(work.left, n), .right = RightSide::rows};
  for (size_t g = 0; g + 1 < begin.size(); ++g) {
    step.m = begin[g + 1] - begin[g], step.block = even_block(step.m);
    step.rows = at(w, int64_t(g) * n);
    step.y = at(dx, begin[g]);
    work.add(step, int64_t(g));
  }
  work.fill = [&](const Piece& piece, int64_t first, int64_t rows, void* to) {
    const int64_t row = begin[size_t(piece.group)] + piece.first + first;
    if (work.left == Left::tiles)
      isa.pack_tile_rows(dy, row, rows, n, static_cast<bf16*>(to));
    else if (work.left == Left::pairs)
      isa.pack_pair_rows(dy, row, rows, n, piece.step.padded_k, static_cast<uint32_t*>(to));
    else
      isa.pack_rows(dy, row, rows, n, n, false, static_cast<float*>(to));
  };
  work.multiply = [&](const Piece& piece, int64_t panel, int64_t end) {
    multiply_together(work.left, piece.step, panel, end);
  };
  run(executor, work);
}

void grouped_product_dw(Executor& executor, std::span<const int64_t> begin, Input dy, Input x, int64_t n, int64_t k,
                        Output dw) {
  check_groups(begin);
  const Loops& isa = loops();
  Work work;
  work.left = left_of_gradient(dy, x);
  ProductStep step{.m = n, .n = k, .right = RightSide::rows};
  step.streams = passes_caches(dw, int64_t(begin.size() - 1) * n, k);
  for (size_t g = 0; g + 1 < begin.size(); ++g) {
    step.k = begin[g + 1] - begin[g];
    step.padded_k = padded(work.left, step.k);
    step.rows = at(x, begin[g]);
    step.y = at(dw, int64_t(g) * n);
    work.add(step, int64_t(g));
  }
  work.fill = [&](const Piece& piece, int64_t first, int64_t rows, void* to) {
    const Input of_group = at(dy, begin[size_t(piece.group)]);
    if (work.left == Left::tiles)
      isa.pack_tile_columns(of_group, piece.first + first, rows, piece.step.k, static_cast<bf16*>(to));
    else if (work.left == Left::pairs)
      isa.pack_pair_columns(of_group, piece.first + first, rows, piece.step.k, piece.step.padded_k,
                            static_cast<uint32_t*>(to));
    else
      isa.pack_columns(of_group, piece.first + first, rows, piece.step.k, static_cast<float*>(to));
  };
  work.multiply = [&](const Piece& piece, int64_t panel, int64_t end) {
    multiply_together(work.left, piece.step, panel, end);
  };
  run(executor, work);
}

}  // namespace easydel::kernels
