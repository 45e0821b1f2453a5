#include "easydel/quant/file_codes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/text_table.h"
#include "easydel/quant/coded_weight.h"
#include "easydel/quant/four_bits.h"
#include "easydel/quant/integer_codes.h"
#include "easydel/quant/made_codes.h"

namespace easydel::quant {
namespace {

using weights::DType;

constexpr std::array words = {std::pair{"nf4", FileCodes::nf4},   std::pair{"fp4", FileCodes::fp4},
                              std::pair{"int8", FileCodes::int8}, std::pair{"w4a16", FileCodes::w4a16},
                              std::pair{"fp8", FileCodes::fp8},   std::pair{"mxfp4", FileCodes::mxfp4}};

bool is_bitsandbytes(FileCodes codes) { return codes == FileCodes::nf4 || codes == FileCodes::fp4; }

FourBits kind_of(FileCodes codes) { return codes == FileCodes::fp4 ? FourBits::fp4 : FourBits::nf4; }

std::string_view torch_name(DType dtype) {
  return dtype == DType::bf16 ? "bfloat16" : dtype == DType::f16 ? "float16" : "float32";
}

// As Python's json.dumps writes it.
std::string state_text(const FileCodesSpec& spec, int64_t n, int64_t k) {
  return str("{\"quant_type\": \"", name_of(kind_of(spec.codes)), "\", \"blocksize\": ", spec.group, ", \"dtype\": \"",
             torch_name(spec.dtype), "\", \"shape\": [", n, ", ", k, "]}");
}

template <class T>
std::vector<std::byte> raw(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::vector<std::byte> raw(const std::string& text) { return raw(std::vector<char>(text.begin(), text.end())); }

// Numbers that are already rounded to the dtype.
std::vector<std::byte> raw_as(DType dtype, const std::vector<float>& values) {
  if (dtype == DType::f32) return raw(values);
  std::vector<uint16_t> out;
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (dtype == DType::bf16) {
      out.push_back(uint16_t(bits >> 16));
      continue;
    }
    const uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    const float magnitude = std::fabs(value);
    out.push_back(uint16_t(sign | (magnitude < 0x1p-14f  ? uint32_t(magnitude * 0x1p24f)
                                   : magnitude > 65504.f ? 0x7c00u
                                                         : (size - (112u << 23)) >> 13)));
  }
  return raw(out);
}

// Largest magnitudes of groups divided by `divisor`, in the dtype of the file.
std::vector<float> scales_of(const FileCodesSpec& spec, const float* values, int64_t n, int64_t k, int64_t group,
                             float divisor) {
  const int64_t groups = k / group;
  std::vector<float> out(size_t(n * groups));
  for (int64_t g = 0; g < n * groups; ++g) {
    float most = 0;
    for (int64_t i = g * group; i < (g + 1) * group; ++i) most = std::max(most, std::fabs(values[i]));
    out[size_t(g)] = rounded_to(most / divisor, spec.dtype);
  }
  return out;
}

// The integer nearest to value / scale.
int integer_of(float value, float scale, int low, int high) {
  return int(std::clamp(std::nearbyint(value / (scale == 0 ? 1.0f : scale)), float(low), float(high)));
}

// Codes + 2^(bits - 1), each row a run of words from the lowest bit on.
std::vector<uint32_t> words_of(const std::vector<float>& scales, const float* values, int64_t n, int64_t k,
                               int64_t group, int bits) {
  const int64_t of_word = 32 / bits, row_words = (k + of_word - 1) / of_word;
  const int middle = 1 << (bits - 1);
  std::vector<uint32_t> out(size_t(n * row_words));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t i = 0; i < k; ++i) {
      const float scale = scales[size_t((r * k + i) / group)];
      const int code = integer_of(values[r * k + i], scale, -middle, middle - 1) + middle;
      out[size_t(r * row_words + i / of_word)] |= uint32_t(code) << (bits * int(i % of_word));
    }
  return out;
}

std::vector<std::byte> packed_fours(const std::vector<uint8_t>& codes) {
  std::vector<std::byte> out;
  for (size_t i = 0; i + 1 < codes.size(); i += 2) out.push_back(std::byte(codes[i] | codes[i + 1] << 4));
  return out;
}

// The e4m3 code nearest to value / scale, ties to even, at most 448.
std::byte e4m3_code(float value, float scale) {
  const float x = value / (scale == 0 ? 1.0f : scale), size = std::min(std::fabs(x), 448.0f);
  const int exponent = std::max(size > 0 ? std::ilogb(size) : -6, -6);
  const float mantissa = std::nearbyint(std::ldexp(size, 3 - exponent));  // 8 to 16, below 8 where numbers are denormal
  const int code = int(mantissa) + (exponent + 6) * 8;
  return std::byte(code | (std::signbit(x) ? 128 : 0));
}

Value weights_of(const FileCodesSpec& spec) {
  const bool floating = spec.codes == FileCodes::fp8 || spec.codes == FileCodes::mxfp4;
  const bool rows = spec.codes == FileCodes::fp8 || spec.codes == FileCodes::int8;
  Value out = Value::map();
  out.set("num_bits", Value::integer(rows ? 8 : 4));
  out.set("type", Value::text(floating ? "float" : "int"));
  out.set("symmetric", Value::boolean(true));
  out.set("group_size", rows ? Value() : Value::integer(spec.codes == FileCodes::mxfp4 ? 32 : spec.group));
  out.set("strategy", Value::text(rows ? "channel" : "group"));
  out.set("dynamic", Value::boolean(false));
  return out;
}

const char* layout_of(FileCodes codes) {
  return codes == FileCodes::fp8     ? "naive-quantized"
         : codes == FileCodes::mxfp4 ? "mxfp4-pack-quantized"
                                     : "pack-quantized";
}

}  // namespace

FileCodes file_codes(const std::string& word, const std::string& where) {
  std::string known;
  for (const auto& [name, codes] : words) {
    if (word == name) return codes;
    known += str(known.empty() ? "" : ", ", name);
  }
  for (const std::string_view calibrated : {"gptq", "awq", "auto-round"})
    if (word == calibrated)
      refuse(where, "'" + word + "' chooses its codes by calibration, which is not built yet",
             "these round to nearest: " + known + ", q4_0, q8_0");
  refuse(where, "'" + word + "' is not a format of weights that can be written", "known: " + known + ", q4_0, q8_0");
}

bool fits(const FileCodesSpec& spec, int64_t k) {
  if (spec.codes == FileCodes::w4a16) return k % spec.group == 0;
  return spec.codes != FileCodes::mxfp4 || k % 32 == 0;
}

std::vector<CodesPart> parts_of(const FileCodesSpec& spec, int64_t n, int64_t k) {
  if (is_bitsandbytes(spec.codes)) {
    const int64_t count = n * k;
    return {{".weight", DType::u8, {(count + 1) / 2, 1}},
            {".weight.absmax", DType::f32, {(count + spec.group - 1) / spec.group}},
            {".weight.quant_map", DType::f32, {16}},
            {str(".weight.quant_state.bitsandbytes__", name_of(kind_of(spec.codes))),
             DType::u8,
             {int64_t(state_text(spec, n, k).size())}}};
  }
  if (spec.codes == FileCodes::fp8) return {{".weight", DType::f8_e4m3, {n, k}}, {".weight_scale", spec.dtype, {n, 1}}};
  if (spec.codes == FileCodes::mxfp4)
    return {{".weight_packed", DType::u8, {n, k / 2}}, {".weight_scale", DType::u8, {n, k / 32}}};
  const int64_t of_word = spec.codes == FileCodes::int8 ? 4 : 8;
  return {{".weight_packed", DType::i32, {n, (k + of_word - 1) / of_word}},
          {".weight_scale", spec.dtype, {n, spec.codes == FileCodes::int8 ? 1 : k / spec.group}},
          {".weight_shape", DType::i64, {2}}};
}

std::vector<std::vector<std::byte>> bytes_of_parts(kernels::Executor& executor, const FileCodesSpec& spec,
                                                   const float* values, int64_t n, int64_t k) {
  if (is_bitsandbytes(spec.codes)) {
    const FourBits kind = kind_of(spec.codes);
    const int64_t count = n * k;
    std::vector<uint8_t> codes(size_t(count), 0);
    std::vector<float> scales(size_t((count + spec.group - 1) / spec.group));
    quantize_four_bits(executor, kind, values, count, spec.group, codes.data(), scales.data());
    const auto& table = table_of(kind);
    return {raw(pack_four_bits(kind, codes.data(), count)), raw(scales),
            raw(std::vector<float>(table.begin(), table.end())), raw(state_text(spec, n, k))};
  }
  if (spec.codes == FileCodes::mxfp4) {
    const CodeRule rule{.method = "mxfp4", .bits = 4, .group = 32};
    const MadeCodes made = make_codes(executor, rule, values, n, k, nullptr);
    std::vector<uint8_t> exponents = made.scale_codes;
    for (uint8_t& one : exponents) one = uint8_t(int(int8_t(one)) + 127);
    return {packed_fours(made.codes), raw(exponents)};
  }
  if (spec.codes == FileCodes::fp8) {
    const std::vector<float> scales = scales_of(spec, values, n, k, k, 448);
    std::vector<std::byte> codes(size_t(n * k), std::byte(0));
    executor.run(n, [&](int64_t row) {
      for (int64_t i = row * k; i < (row + 1) * k; ++i) codes[size_t(i)] = e4m3_code(values[i], scales[size_t(row)]);
    });
    return {codes, raw_as(spec.dtype, scales)};
  }
  const bool bytes = spec.codes == FileCodes::int8;
  const int64_t group = bytes ? k : spec.group;
  const std::vector<float> scales = scales_of(spec, values, n, k, group, bytes ? 127.5f : 7.5f);
  return {raw(words_of(scales, values, n, k, group, bytes ? 8 : 4)), raw_as(spec.dtype, scales),
          raw(std::vector<int64_t>{n, k})};
}

Value section_of(const FileCodesSpec& spec, const std::vector<std::string>& ignored) {
  Value skipped = Value::list(), out = Value::map();
  for (const std::string& layer : ignored) skipped.items.push_back(Value::text(layer));
  if (is_bitsandbytes(spec.codes)) {
    out.set("quant_method", Value::text("bitsandbytes"));
    out.set("_load_in_4bit", Value::boolean(true));
    out.set("_load_in_8bit", Value::boolean(false));
    out.set("load_in_4bit", Value::boolean(true));
    out.set("load_in_8bit", Value::boolean(false));
    out.set("bnb_4bit_compute_dtype", Value::text(std::string(torch_name(spec.dtype))));
    out.set("bnb_4bit_quant_storage", Value::text("uint8"));
    out.set("bnb_4bit_quant_type", Value::text(std::string(name_of(kind_of(spec.codes)))));
    out.set("bnb_4bit_use_double_quant", Value::boolean(false));
    out.set("llm_int8_enable_fp32_cpu_offload", Value::boolean(false));
    out.set("llm_int8_has_fp16_weight", Value::boolean(false));
    out.set("llm_int8_threshold", Value::number(6.0));
    out.set("llm_int8_skip_modules", skipped);
    return out;
  }
  Value targets = Value::list(), group = Value::map(), groups = Value::map();
  targets.items.push_back(Value::text("Linear"));
  group.set("targets", targets);
  group.set("weights", weights_of(spec));
  group.set("input_activations", Value());
  group.set("output_activations", Value());
  group.set("format", Value::text(layout_of(spec.codes)));
  groups.set("group_0", group);
  out.set("quant_method", Value::text("compressed-tensors"));
  out.set("format", Value::text(layout_of(spec.codes)));
  out.set("quantization_status", Value::text("compressed"));
  out.set("ignore", skipped);
  out.set("config_groups", groups);
  return out;
}

}  // namespace easydel::quant
