// The tile product with the instructions done in plain code, so that every machine tests how it packs, cuts and adds.
// Where the machine has tiles, product_test.cpp runs them themselves.
#include "easydel/kernels/amx_loops.h"
#include "easydel/kernels/product.h"
#include "easydel/kernels/simd_scalar.h"
#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

float flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

struct PlainTiles {
  struct Tile {
    uint8_t bytes[16][64];
  };
  static inline Tile tiles[8];
  static inline TileConfig config{1};
  static inline bool configured = false;

  static void configure(const TileConfig& to) { config = to, configured = true, std::memset(tiles, 0, sizeof tiles); }
  static void release() { configured = false; }
  template <int tile>
  static void need() {
    ASSERT_TRUE(configured);
    ASSERT_GT(config.rows[tile], 0) << tile;
    ASSERT_LE(config.rows[tile], 16) << tile;
    ASSERT_EQ(config.bytes_per_row[tile], 64) << tile;
  }
  template <int tile>
  static void zero() {
    need<tile>();
    std::memset(&tiles[tile], 0, sizeof(Tile));
  }
  template <int tile>
  static void load(const void* from, int64_t stride) {
    need<tile>();
    std::memset(&tiles[tile], 0, sizeof(Tile));
    for (int r = 0; r < config.rows[tile]; ++r)
      std::memcpy(tiles[tile].bytes[r], static_cast<const uint8_t*>(from) + r * stride, 64);
  }
  template <int tile>
  static void store(void* to, int64_t stride) {
    need<tile>();
    for (int r = 0; r < config.rows[tile]; ++r)
      std::memcpy(static_cast<uint8_t*>(to) + r * stride, tiles[tile].bytes[r], 64);
  }
  template <int sums, int left, int right>
  static void multiply() {
    need<sums>(), need<left>(), need<right>();
    ASSERT_EQ(config.rows[sums], config.rows[left]);
    ASSERT_EQ(config.rows[right], 16);
    for (int r = 0; r < config.rows[sums]; ++r)
      for (int c = 0; c < 16; ++c) {
        float even = 0, odd = 0, sum;
        for (int j = 0; j < 16; ++j) {
          bf16 x[2], w[2];
          std::memcpy(x, tiles[left].bytes[r] + 4 * j, 4), std::memcpy(w, tiles[right].bytes[j] + 4 * c, 4);
          even = flush(std::fma(flush(widen(x[0])), flush(widen(w[0])), even));
          odd = flush(std::fma(flush(widen(x[1])), flush(widen(w[1])), odd));
        }
        std::memcpy(&sum, tiles[sums].bytes[r] + 4 * c, 4);
        sum = flush(sum + flush(even + odd));
        std::memcpy(tiles[sums].bytes[r] + 4 * c, &sum, 4);
      }
  }
};

TEST(TileProduct, HasTheBitsOfTheVectorsForEveryNumberOfRows) {
  using Loops = AmxLoops<PlainTiles, Scalar>;
  for (const int64_t k : {1, 32, 33, 300})
    for (const bool rough : {false, true}) {
      constexpr int64_t n = 40, most = 100;
      const auto x = rough ? hostile(most * k, 1) : normal(most * k, 1),
                 w = rough ? hostile(n * k, 2) : normal(n * k, 2);
      const auto short_x = narrowed(x);
      const auto bias = normal(n, 3);
      const PackedWeight packed = pack(serial_executor(), {w.data(), k}, n, k, Number::bf16);
      for (const int64_t m : {1, 2, 15, 16, 17, 31, 32, 33, 64, 100}) {
        std::vector<float> expected(size_t(m * n)), got(size_t(m * n));
        product(serial_executor(), packed, {x.data(), k}, m, {expected.data(), n}, bias.data(), Order::bf16_tile);
        ProductStep step;
        step.m = m, step.n = n, step.k = k, step.padded_k = round_up(k, k_block);
        step.panels = packed.data(), step.y = {got.data(), n}, step.bias = bias.data();
        for (const Input& from : {Input(x.data(), k), Input(short_x.data(), k)}) {
          std::vector<bf16> left(size_t(m * step.padded_k), bf16{0x7fff});
          for (int64_t r = 0; r < m; r += tile_rows)
            Loops::pack_tile_rows(from, r, std::min(tile_rows, m - r), k, left.data() + r * step.padded_k);
          step.a_tiles = left.data();
          const FlushDenormals as_the_driver_does;
          for (int64_t panel = 0; panel < divide_up(n, panel_columns); ++panel) {
            Loops::multiply_tiles(step, panel, 0, std::min<int64_t>(m, 64));
            if (m > 64) Loops::multiply_tiles(step, panel, 64, m - 64);
          }
          EXPECT_TRUE(same_bits(got, expected)) << m << " rows, k = " << k;
        }
      }
    }
}

}  // namespace
}  // namespace easydel::kernels
