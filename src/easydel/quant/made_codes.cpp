#include "easydel/quant/made_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/quant/four_bits.h"

namespace easydel::quant {
namespace {

constexpr std::string_view nested_ending = ", double quantization";

// The codes of a table by their numbers, without NaN. A number becomes the nearest; one in the middle of two the lower
// one; of two equal numbers (zeros), those up to zero the first and those above it the second.
class NearestCode {
 public:
  explicit NearestCode(const std::vector<float>& table) {
    for (size_t code = 0; code < table.size(); ++code)
      if (!std::isnan(table[code])) codes_.push_back(uint8_t(code));
    std::ranges::stable_sort(codes_, {}, [&](uint8_t code) { return table[code]; });
    for (size_t i = 0; i + 1 < codes_.size(); ++i) between_.push_back((table[codes_[i]] + table[codes_[i + 1]]) / 2);
  }
  uint8_t operator()(float value) const {
    return codes_[size_t(std::ranges::lower_bound(between_, value) - between_.begin())];
  }

 private:
  std::vector<uint8_t> codes_;
  std::vector<float> between_;
};

const std::vector<float>& e4m3_table() {
  static const std::vector<float> table = [] {
    std::vector<float> out;
    for (int code = 0; code < 256; ++code) out.push_back(e4m3_value(uint8_t(code)));
    return out;
  }();
  return table;
}

std::vector<float> table_of(const CodeRule& rule) {
  if (rule.method == "mxfp8" || rule.method == "nvfp8") return e4m3_table();
  if (rule.method == "mxfp4" || rule.method == "nvfp4") return {e2m1_values().begin(), e2m1_values().end()};
  if (rule.method == "ternary") return {-1, 0, 1};
  if (rule.method == "binary") return {-1, 1};
  const auto& table = table_of(rule.method == "fp4" ? FourBits::fp4 : FourBits::nf4);
  return {table.begin(), table.end()};
}

int64_t groups_of(const CodeRule& rule, int64_t k) { return rule.group > 0 ? (k + rule.group - 1) / rule.group : 1; }

struct Group {
  int64_t index, first, end;  // of all groups; of the values
};

template <class F>
void for_each_group(kernels::Executor& executor, const CodeRule& rule, int64_t n, int64_t k, const F& run) {
  const int64_t groups = groups_of(rule, k), size = rule.group > 0 ? rule.group : k;
  executor.run(n, [&](int64_t row) {
    for (int64_t g = 0; g < groups; ++g)
      run(Group{row * groups + g, row * k + g * size, std::min(row * k + (g + 1) * size, (row + 1) * k)});
  });
}

// Codes are 0 to 2^bits - 1; scale and zero are kept in half precision.
void make_affine(kernels::Executor& executor, const CodeRule& rule, const float* values, int64_t n, int64_t k,
                 MadeCodes& out) {
  const float top = float((1 << rule.bits) - 1);
  out.zeros.resize(out.scales.size());
  for_each_group(executor, rule, n, k, [&](const Group& group) {
    const auto [least, most] = std::minmax_element(values + group.first, values + group.end);
    const float range = (*most - *least) / top, scale = range == 0 ? 1 : range, zero = -*least / scale;
    for (int64_t i = group.first; i < group.end; ++i)
      out.codes[size_t(i)] = uint8_t(std::clamp(std::nearbyint(values[i] / scale + zero), 0.0f, top));
    out.scales[size_t(group.index)] = rounded_to(scale, weights::DType::f16);
    out.zeros[size_t(group.index)] = rounded_to(zero, weights::DType::f16);
  });
}

// The least e with 2^e >= x, within a signed byte; of 0 it is 0.
int exponent_above(float x) {
  if (x == 0) return 0;
  int e = 0;
  const float fraction = std::frexp(x, &e);
  return std::clamp(fraction == 0.5f ? e - 1 : e, -127, 127);
}

// Numbers of a table with scales that are powers of two (mxfp) or e4m3 (nvfp).
void make_small_floats(kernels::Executor& executor, const CodeRule& rule, const float* values, int64_t n, int64_t k,
                       MadeCodes& out) {
  const std::vector<float> table = table_of(rule);
  const NearestCode nearest(table), nearest_scale(e4m3_table());
  const float highest = rule.bits == 4 ? 6 : 448;
  const bool power = rule.method.starts_with("mx");
  out.scale_codes.resize(out.scales.size());
  for_each_group(executor, rule, n, k, [&](const Group& group) {
    float most = 0;
    for (int64_t i = group.first; i < group.end; ++i) most = std::max(most, std::fabs(values[i]));
    const int exponent = exponent_above(most / highest);
    const uint8_t code = power ? uint8_t(exponent) : nearest_scale(most / highest);
    const float scale = power ? std::ldexp(1.0f, exponent) : e4m3_value(code), divisor = scale == 0 ? 1 : scale;
    for (int64_t i = group.first; i < group.end; ++i) out.codes[size_t(i)] = nearest(values[i] / divisor);
    out.scales[size_t(group.index)] = scale;
    out.scale_codes[size_t(group.index)] = code;
  });
}

// Signs, or signs of values above half of the whole weight's standard deviation. No scale.
void make_signs(kernels::Executor& executor, const CodeRule& rule, const float* values, int64_t n, int64_t k,
                MadeCodes& out) {
  float threshold = 0;
  if (rule.method == "ternary") {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n * k; ++i) sum += double(values[i]);
    const double mean = sum / double(n * k);
    for (int64_t i = 0; i < n * k; ++i) squares += (double(values[i]) - mean) * (double(values[i]) - mean);
    threshold = 0.5f * float(std::sqrt(squares / double(n * k)));
  }
  std::ranges::fill(out.scales, 1.0f);
  executor.run(n, [&](int64_t row) {
    for (int64_t i = row * k; i < (row + 1) * k; ++i)
      out.codes[size_t(i)] = rule.method == "binary"  ? uint8_t(values[i] >= 0)
                             : values[i] > threshold  ? 2
                             : values[i] < -threshold ? 0
                                                      : 1;
  });
}

MadeCodes make_blocks(kernels::Executor& executor, const CodeRule& rule, const float* values, int64_t n, int64_t k,
                      float (*mean)(const std::vector<float>&)) {
  const int64_t block = rule.group > 0 ? rule.group : k;
  MadeCodes out{.codes = std::vector<uint8_t>(size_t(n * k)), .scales = {}, .zeros = {}, .scale_codes = {}};
  out.scales.resize(size_t((n * k + block - 1) / block));
  quantize_four_bits(executor, rule.method == "fp4" ? FourBits::fp4 : FourBits::nf4, values, n * k, block,
                     out.codes.data(), out.scales.data());
  if (rule.double_quant) {
    const NestedScales nested = nest_scales(executor, out.scales, mean(out.scales));
    for (size_t i = 0; i < out.scales.size(); ++i) out.scales[i] = nested.at(int64_t(i));
    out.scale_codes = nested.codes;
  }
  return out;
}

// Codes one after another in their bits, from the lowest of each byte on; a row begins in a byte of its own.
std::shared_ptr<std::vector<std::byte>> packed(const std::vector<uint8_t>& codes, int bits, int64_t n, int64_t k) {
  const int64_t row_bytes = (k * bits + 7) / 8;
  auto out = std::make_shared<std::vector<std::byte>>(size_t(n * row_bytes + 1));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t i = 0; i < k; ++i) {
      const int64_t bit = i * bits;
      const uint32_t code = uint32_t(codes[size_t(r * k + i)]) << bit % 8;
      std::byte* const at = out->data() + r * row_bytes + bit / 8;
      at[0] |= std::byte(code & 255);
      if (code > 255) at[1] |= std::byte(code >> 8);
    }
  return out;
}

template <class T>
std::pair<std::string, weights::TensorView> part(std::string name, weights::DType dtype,
                                                 const std::shared_ptr<std::vector<T>>& held) {
  const std::span<const T> all(*held);
  return {std::move(name), {dtype, {int64_t(held->size())}, std::as_bytes(all), held}};
}

}  // namespace

CodeRule rule_of(const Format& format) {
  CodeRule out{.method = format.name, .group = format.spec.group};
  if (out.method.ends_with(nested_ending)) {
    out.double_quant = true;
    out.method.resize(out.method.size() - nested_ending.size());
  }
  if (out.method.starts_with("affine")) {
    out.bits = std::stoi(out.method.substr(6));
    out.method.resize(6);
  }
  if (out.method == "mxfp8" || out.method == "nvfp8") out.bits = 8;
  if (out.method == "ternary") out.bits = 2;
  if (out.method == "binary") out.bits = 1;
  return out;
}

bool is_made_here(const CodeRule& rule) {
  return rule.method != "8bit" && rule.method != "a8bit" && rule.method != "a8q" && rule.method != "a4q";
}

Format with_double_quantization(Format format, const std::string& where) {
  if (format.name != "nf4" && format.name != "fp4")
    refuse(where, "scales of " + format.name + " are not quantized", "leave it out, or choose nf4 or fp4");
  format.name += nested_ending;
  return format;
}

MadeCodes make_codes(kernels::Executor& executor, const CodeRule& rule, const float* values, int64_t n, int64_t k,
                     float (*mean)(const std::vector<float>&)) {
  if (rule.method == "nf4" || rule.method == "fp4") return make_blocks(executor, rule, values, n, k, mean);
  MadeCodes out{.codes = std::vector<uint8_t>(size_t(n * k)), .scales = {}, .zeros = {}, .scale_codes = {}};
  out.scales.resize(size_t(n * groups_of(rule, k)));
  if (rule.method == "affine")
    make_affine(executor, rule, values, n, k, out);
  else if (rule.method == "ternary" || rule.method == "binary")
    make_signs(executor, rule, values, n, k, out);
  else
    make_small_floats(executor, rule, values, n, k, out);
  return out;
}

std::optional<Format> four_bit_format(const CodedWeight& weight) {
  for (const FourBits kind : {FourBits::nf4, FourBits::fp4})
    if (weight.indices && weight.grid.flat && weight.table == table_of(kind))
      return format_of({.method = std::string(name_of(kind)), .group_size = weight.grid.columns}, "quantization");
  return std::nullopt;
}

std::shared_ptr<CodedWeight> coded_weight(const CodeRule& rule, MadeCodes made, int64_t n, int64_t k) {
  auto out = std::make_shared<CodedWeight>();
  out->format = rule.method;
  out->shape = {n, k};
  const auto scales = std::make_shared<std::vector<float>>(std::move(made.scales)),
             zeros = std::make_shared<std::vector<float>>(std::move(made.zeros));
  const auto codes = packed(made.codes, rule.bits, n, k);
  out->parts = {part("codes", weights::DType::u8, codes), part("scales", weights::DType::f32, scales),
                part("zeros", weights::DType::f32, zeros)};
  out->scale = [scales](int64_t i) { return (*scales)[size_t(i)]; };
  out->scales = int64_t(scales->size());
  if (!zeros->empty()) out->zero = [zeros](int64_t i) { return (*zeros)[size_t(i)]; };
  out->grid.columns = rule.group > 0 ? rule.group : k;
  out->grid.flat = rule.method == "nf4" || rule.method == "fp4";
  out->grid.row_stride = groups_of(rule, k);
  const auto read = [codes, bits = rule.bits, k](int64_t first, int64_t step, int64_t count, const auto& put) {
    const int64_t row_bytes = (k * bits + 7) / 8;
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < k; ++i)
        put(r * k + i, bits_at(codes->data() + (first + r * step) * row_bytes, i * bits, bits));
  };
  const ReadIndices codes_of_rows = [read](int64_t first, int64_t step, int64_t count, uint8_t* to) {
    read(first, step, count, [to](int64_t i, uint32_t code) { to[i] = uint8_t(code); });
  };
  const bool affine = rule.method == "affine";
  if (rule.bits > 4) {
    out->bytes_of_rows = codes_of_rows;
    out->byte_codes = affine ? kernels::PanelCodes::u8 : kernels::PanelCodes::e4m3;
    return out;
  }
  out->indices = codes_of_rows;
  if (affine)
    std::iota(out->table.begin(), out->table.end(), 0.0f);
  else
    std::ranges::copy(table_of(rule), out->table.begin());
  // Powers of two, and numbers of few bits.
  out->exact = !affine && rule.method != "nf4" && rule.method != "fp4";
  return out;
}

}  // namespace easydel::quant
