// Products with weights in codes, of each kind: one row as a part of the machine's reading loop over the same bytes,
// and 512 rows as a part of the product with the same weight in bf16; both sides in turns, medians of ratios.
// code_rows_bench [THREADS [WORD]]: the kinds whose names contain WORD.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "easydel/base/clock.h"
#include "easydel/kernels/code_panels.h"
#include "easydel/kernels/grouped.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/quantized.h"

namespace {

using namespace easydel;
using namespace easydel::kernels;
using Call = std::function<void()>;

constexpr int64_t n = 4096, k = 4096, many = 512, cold_bytes = 160 << 20;

uint32_t next_number() {
  static uint32_t state = 12345;
  return state = state * 1664525 + 1013904223;
}

double seconds_of(const Call& call) {
  const auto begin = Clock::now();
  call();
  return seconds_since(begin);
}

// The median of the seconds of `theirs` over those of `ours`.
double ratio_of(const Call& ours, const Call& theirs, int rounds) {
  ours(), theirs();
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    const double own = seconds_of(ours);
    ratios.push_back(seconds_of(theirs) / own);
  }
  std::ranges::nth_element(ratios, ratios.begin() + rounds / 2);
  return ratios[size_t(rounds / 2)];
}

class Bench {
 public:
  explicit Bench(int threads)
      : team_(threads > 0 ? make_pool(threads) : make_pool()), memory_(cold_bytes / 4), x_(many * k), y_(many * n) {
    for (float& number : memory_) number = float(next_number() >> 8) * 0x1p-24f;
    for (bf16& number : x_) number = narrow(float(next_number() >> 8) * 0x1p-23f - 1);
    plain_ = pack(*team_, {memory_.data(), k}, n, k, DType::bf16);
    std::printf("%lld x %lld, %d threads      of reading   of bf16 at %lld rows\n", static_cast<long long>(n),
                static_cast<long long>(k), team_->size(), static_cast<long long>(many));
  }

  // `weights`: enough of them that none is in a cache when its turn comes. product(w, rows): w's product.
  template <class W>
  void line(const std::string& name, const std::vector<std::shared_ptr<W>>& weights, int64_t bytes,
            const std::function<void(const W&, int64_t)>& product) {
    size_t next = 0;
    const double one = ratio_of([&] { product(*weights[next++ % weights.size()], 1); }, [&] { read(bytes); }, 101);
    const double all =
        ratio_of([&] { product(*weights.front(), many); },
                 [&] {
                   kernels::product(*team_, plain_, {x_.data(), k}, many, {y_.data(), n}, nullptr, bf16_order());
                 },
                 5);
    std::printf("%-30s %6.2f        %6.2f\n", name.c_str(), one, all);
    std::fflush(stdout);
  }

  void panels(const std::string& name, const CodePanelsSpec& spec, float scale, float shift) {
    const PanelSource from{.codes =
                               [&](int64_t, int64_t count, uint8_t* to) {
                                 for (int64_t i = 0; i < count * k; ++i)
                                   to[i] =
                                       uint8_t(next_number() >> 24) & (spec.codes == PanelCodes::table4 ? 15 : 0x77);
                               },
                           .scale = [&](int64_t row, int64_t g) { return scale * float(1 + (row + g) % 3); },
                           .shift = [&](int64_t, int64_t) { return shift; }};
    std::vector<std::shared_ptr<CodePanels>> all;
    do all.push_back(std::make_shared<CodePanels>(serial_executor(), from, n, k, spec));
    while (int64_t(all.size()) * all.front()->bytes() < cold_bytes);
    line<CodePanels>(name, all, all.front()->bytes(), [&, this](const CodePanels& w, int64_t rows) {
      const int64_t begin[] = {0, rows};
      const std::shared_ptr<const EncodedRows> borrowed(std::shared_ptr<void>(), &w);
      const EncodedWeight weight{borrowed, n, 0, 1};
      grouped_product(*team_, begin, {.n = n, .k = k, .dtype = DType::bf16, .encoded = {&weight, 1}}, {x_.data(), k},
                      {y_.data(), n}, nullptr, bf16_order());
    });
  }

  void packed(const std::string& name, const QuantizedSpec& spec) {
    copies(name, quantize(*team_, {memory_.data(), k}, n, k, spec));
  }

  // Four-bit codes of whole numbers with zeros or offsets.
  void shifted(const std::string& name, int64_t group, CodeShift shift, float scale, float by) {
    std::vector<uint8_t> codes(n * k);
    for (uint8_t& code : codes) code = uint8_t(next_number() >> 28);
    const std::vector<float> scales(size_t(n * k / group), scale), shifts(scales.size(), by);
    QuantizedSpec spec{Codes::table4, group, {}, shift};
    for (int i = 0; i < 16; ++i) spec.table[size_t(i)] = float(i);
    copies(name, pack_codes(*team_, codes.data(), scales.data(), shifts.data(), n, k, spec));
  }

  void copies(const std::string& name, const QuantizedWeight& weight) {
    std::vector<std::shared_ptr<QuantizedWeight>> all;
    do all.push_back(std::make_shared<QuantizedWeight>(rows_of(weight, 0, n)));
    while (int64_t(all.size()) * all.front()->bytes() < cold_bytes);
    line<QuantizedWeight>(name, all, all.front()->bytes(), [this](const QuantizedWeight& w, int64_t rows) {
      kernels::product(*team_, w, {x_.data(), k}, rows, {y_.data(), n}, nullptr, bf16_order());
    });
  }

  void plain() {
    std::vector<std::shared_ptr<PackedWeight>> all;
    do all.push_back(std::make_shared<PackedWeight>(pack(*team_, {memory_.data(), k}, n, k, DType::bf16)));
    while (int64_t(all.size()) * all.front()->bytes() < cold_bytes);
    line<PackedWeight>("bf16", all, all.front()->bytes(), [this](const PackedWeight& w, int64_t rows) {
      kernels::product(*team_, w, {x_.data(), k}, rows, {y_.data(), n}, nullptr, bf16_order());
    });
  }

 private:
  // From where the last call ended.
  void read(int64_t bytes) {
    if (at_ + bytes / 4 > int64_t(memory_.size())) at_ = 0;
    const int64_t part = bytes / 4 / team_->size() / 256 * 256;
    team_->run(team_->size(), [&](int64_t i) {
      alignas(64) float keep[64];
      loops().peak.read(memory_.data() + at_ + i * part, part, keep);
    });
    at_ += bytes / 4;
  }

  std::unique_ptr<Executor> team_;
  std::vector<float> memory_;
  std::vector<bf16> x_, y_;
  PackedWeight plain_;
  int64_t at_ = 0;
};

}  // namespace

int main(int count, char** values) {
  Bench bench(count > 1 ? std::atoi(values[1]) : 0);
  const std::string word = count > 2 ? values[2] : "";
  const auto wanted = [&](const std::string& name) { return name.find(word) != std::string::npos; };
  CodeTable whole;
  for (int i = 0; i < 16; ++i) whole[size_t(i)] = float(i);
  const float half = 0x1.004p-8f;         // fp16, not bf16
  const float product = half * 0x37p-6f;  // of a half and a whole number, as in K-quants
  std::vector<int32_t> order(k);          // act order, groups of 128
  for (size_t i = 0; i < order.size(); ++i) order[i] = int32_t(i * 7919 % k / 128);
  struct Panels {
    std::string name;
    CodePanelsSpec spec;
    float scale, shift;
  };
  for (const Panels& one : {
           Panels{"8bit, int8 rows", {.codes = PanelCodes::i8}, 0.01f, 0},
           Panels{"Q8_0", {.codes = PanelCodes::i8, .group = 32}, half, 0},
           Panels{"fp8 blocks of 128", {.codes = PanelCodes::e4m3, .group = 128}, 0.01f, 0},
           Panels{"mxfp8", {.codes = PanelCodes::e4m3, .group = 32}, 0x1p-8f, 0},
           Panels{"gptq, 8 bits, groups of 128",
                  {.codes = PanelCodes::u8, .group = 128, .shift = CodeShift::zeros, .rounding = ValueRounding::f16},
                  half,
                  8},
           Panels{"gptq, act order, groups of 128",
                  {.codes = PanelCodes::table4,
                  .group_of_k = order,
                  .table = whole,
                  .shift = CodeShift::zeros,
                  .rounding = ValueRounding::f16},
                  half,
                  8},
           Panels{"Q5_K", {.codes = PanelCodes::u8, .group = 32, .shift = CodeShift::offsets}, product, -product},
           Panels{"Q6_K", {.codes = PanelCodes::i8, .group = 16}, product, 0},
           Panels{"Q3_K", {.codes = PanelCodes::table4, .group = 16, .table = whole}, product, 0},
           Panels{"nvfp4", {.codes = PanelCodes::table4, .group = 16, .table = whole}, 0x1p-8f, 0},
       })
    if (wanted(one.name)) bench.panels(one.name, one.spec, one.scale, one.shift);
  if (wanted("bf16")) bench.plain();
  if (wanted("a8bit")) bench.packed("a8bit", {});
  if (wanted("a4q")) bench.packed("a4q", {Codes::nibbles, 64, q4_table()});
  if (wanted("nf4")) bench.packed("nf4, groups of 64", {Codes::table4, 64, nf4_table()});
  if (wanted("Q4_0")) bench.shifted("Q4_0", 32, CodeShift::none, half, 0);
  if (wanted("Q4_1")) bench.shifted("Q4_1", 32, CodeShift::offsets, half, -half);
  if (wanted("Q4_K")) bench.shifted("Q4_K", 32, CodeShift::offsets, product, -product);
  if (wanted("gptq, awq")) bench.shifted("gptq, awq, groups of 128", 128, CodeShift::zeros, half, 8);
}
