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

bool is_packed(FileCodes codes) {
  return codes == FileCodes::int8 || codes == FileCodes::w4a16 || codes == FileCodes::int2;
}

bool is_int8(FileCodes codes) { return codes == FileCodes::int8 || codes == FileCodes::int8_bytes; }

int bits_of(FileCodes codes) { return is_int8(codes) ? 8 : codes == FileCodes::int2 ? 2 : 4; }

// Values of a row that share a scale.
int64_t group_of(const FileCodesSpec& spec, int64_t k) {
  if (spec.codes == FileCodes::w4a16) return spec.group;
  if (spec.codes == FileCodes::mxfp4 || spec.codes == FileCodes::mxfp8) return 32;
  if (spec.codes == FileCodes::nvfp4) return 16;
  return spec.row_group > 0 ? spec.row_group : k;
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
  const bool packed = is_packed(spec.codes) || spec.codes == FileCodes::int8_bytes;
  const bool bytes = spec.codes == FileCodes::fp8 || spec.codes == FileCodes::mxfp8;
  const int64_t group = group_of(spec, 0);
  Value out = Value::map();
  out.set("num_bits", Value::integer(bytes ? 8 : packed ? bits_of(spec.codes) : 4));
  out.set("type", Value::text(packed ? "int" : "float"));
  out.set("symmetric", Value::boolean(!spec.zeros));
  out.set("group_size", group == 0 ? Value() : Value::integer(group));
  out.set("strategy", Value::text(group == 0 ? "channel" : spec.codes == FileCodes::nvfp4 ? "tensor_group" : "group"));
  out.set("dynamic", Value::boolean(false));
  return out;
}

const char* layout_of(FileCodes codes) {
  return codes == FileCodes::fp8          ? "naive-quantized"
         : codes == FileCodes::int8_bytes ? "int-quantized"
         : codes == FileCodes::mxfp4      ? "mxfp4-pack-quantized"
         : codes == FileCodes::mxfp8      ? "mxfp8-quantized"
         : codes == FileCodes::nvfp4      ? "nvfp4-pack-quantized"
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
  return is_bitsandbytes(spec.codes) || k % std::max<int64_t>(group_of(spec, k), 1) == 0;
}

FileCodesSpec file_spec(const Format& format, DType dtype, const std::string& where) {
  const CodeRule rule = rule_of(format);
  const std::string& name = rule.method;
  if (name == "nf4" || name == "fp4")
    return {.codes = name == "nf4" ? FileCodes::nf4 : FileCodes::fp4, .group = rule.group, .dtype = dtype};
  // Scales keep their bits.
  FileCodesSpec out{.dtype = DType::f32};
  if (name == "8bit" || name == "a8bit" || name == "a8q")
    out.codes = FileCodes::int8, out.row_group = rule.group;
  else if (name == "a4q")
    out.codes = FileCodes::w4a16, out.group = rule.group, out.zeros = true;
  else if (name == "mxfp4" || name == "mxfp8")
    out.codes = name == "mxfp4" ? FileCodes::mxfp4 : FileCodes::mxfp8;
  else if (name == "nvfp4")
    out.codes = FileCodes::nvfp4;
  else if (name == "nvfp8")
    out.codes = FileCodes::fp8, out.row_group = rule.group;
  else if (name == "ternary" || name == "binary")
    out.codes = FileCodes::int2;
  else
    refuse(where, "no file format holds the codes of " + format.name + ", whose zeros are fractions",
           "choose another format, or save the model without quantization.model");
  return out;
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
  const int64_t groups = k / group_of(spec, k);
  if (spec.codes == FileCodes::fp8)
    return {{".weight", DType::f8_e4m3, {n, k}}, {".weight_scale", spec.dtype, {n, groups}}};
  if (spec.codes == FileCodes::mxfp8)
    return {{".weight", DType::f8_e4m3, {n, k}}, {".weight_scale", DType::u8, {n, groups}}};
  if (spec.codes == FileCodes::mxfp4)
    return {{".weight_packed", DType::u8, {n, k / 2}}, {".weight_scale", DType::u8, {n, groups}}};
  if (spec.codes == FileCodes::nvfp4)
    return {{".weight_packed", DType::u8, {n, k / 2}},
            {".weight_scale", DType::f8_e4m3, {n, groups}},
            {".weight_global_scale", DType::f32, {1}}};
  if (spec.codes == FileCodes::int8_bytes)
    return {{".weight", DType::i8, {n, k}}, {".weight_scale", spec.dtype, {n, groups}}};
  const int64_t bits = bits_of(spec.codes);
  std::vector<CodesPart> out = {{".weight_packed", DType::i32, {n, (k * bits + 31) / 32}},
                                {".weight_scale", spec.dtype, {n, groups}},
                                {".weight_shape", DType::i64, {2}}};
  if (spec.zeros) out.push_back({".weight_zero_point", DType::i32, {(n * bits + 31) / 32, groups}});
  return out;
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

namespace {

// Four bits with signed scales: a negative one becomes positive with the codes turned around their zero.
void make_scales_positive(WeightCodes& weight, std::vector<uint8_t>& zeros) {
  const int64_t groups = int64_t(weight.scales.size()) / weight.n, group = weight.k / groups;
  for (size_t i = 0; i < weight.scales.size(); ++i) {
    const bool turned = std::signbit(weight.scales[i]);
    zeros.push_back(turned ? 7 : 8);
    weight.scales[i] = std::fabs(weight.scales[i]);
    for (size_t at = i * size_t(group); at < (i + 1) * size_t(group); ++at) {
      const int code = int8_t(weight.codes[at]);
      weight.codes[at] = uint8_t(turned ? 7 - code : code + 8);
    }
  }
}

// Codes of `bits` bits, each row a run of words from the lowest bit on.
std::vector<uint32_t> packed_words(const std::vector<uint8_t>& codes, int64_t n, int64_t k, int bits) {
  const int64_t row_words = (k * bits + 31) / 32;
  std::vector<uint32_t> out(size_t(n * row_words));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t i = 0; i < k; ++i)
      out[size_t(r * row_words + i * bits / 32)] |= uint32_t(codes[size_t(r * k + i)]) << (i * bits % 32);
  return out;
}

// Zeros [n, groups] along the outputs: words [n * 4 / 32, groups].
std::vector<uint32_t> packed_zeros(const std::vector<uint8_t>& zeros, int64_t n, int64_t groups) {
  std::vector<uint32_t> out(size_t((n + 7) / 8 * groups));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t g = 0; g < groups; ++g)
      out[size_t(r / 8 * groups + g)] |= uint32_t(zeros[size_t(r * groups + g)]) << (r % 8 * 4);
  return out;
}

}  // namespace

std::vector<std::vector<std::byte>> bytes_of_parts(const FileCodesSpec& spec, const WeightCodes& given) {
  WeightCodes weight = given;
  const int64_t n = weight.n, k = weight.k;
  if (is_bitsandbytes(spec.codes)) {
    const FourBits kind = kind_of(spec.codes);
    const auto& table = table_of(kind);
    return {raw(pack_four_bits(kind, weight.codes.data(), n * k)), raw(weight.scales),
            raw(std::vector<float>(table.begin(), table.end())), raw(state_text(spec, n, k))};
  }
  if (spec.codes == FileCodes::mxfp4 || spec.codes == FileCodes::mxfp8) {
    std::vector<uint8_t> exponents;
    for (const float scale : weight.scales) exponents.push_back(uint8_t(std::ilogb(scale) + 127));
    return {spec.codes == FileCodes::mxfp4 ? packed_fours(weight.codes) : raw(weight.codes), raw(exponents)};
  }
  if (spec.codes == FileCodes::fp8 || spec.codes == FileCodes::int8_bytes)
    return {raw(weight.codes), raw_as(spec.dtype, weight.scales)};
  if (spec.codes == FileCodes::nvfp4) {
    std::vector<std::byte> scales;
    for (const float scale : weight.scales) scales.push_back(e4m3_code(scale, 1));
    return {packed_fours(weight.codes), scales, raw(std::vector<float>{1})};
  }
  std::vector<uint8_t> zeros;
  const int bits = bits_of(spec.codes);
  if (spec.zeros)
    make_scales_positive(weight, zeros);
  else
    for (uint8_t& code : weight.codes) code = uint8_t(int(int8_t(code)) + (1 << (bits - 1)));
  std::vector<std::vector<std::byte>> out = {raw(packed_words(weight.codes, n, k, bits)),
                                             raw_as(spec.dtype, weight.scales), raw(std::vector<int64_t>{n, k})};
  if (spec.zeros) out.push_back(raw(packed_zeros(zeros, n, int64_t(weight.scales.size()) / n)));
  return out;
}

std::optional<FileCodesSpec> spec_of_embeddings(const FileCodesSpec& spec) {
  FileCodesSpec out = spec;
  if (spec.codes == FileCodes::int8) out.codes = FileCodes::int8_bytes;
  const bool bytes = out.codes == FileCodes::int8_bytes || out.codes == FileCodes::fp8 || out.codes == FileCodes::mxfp8;
  return bytes ? std::optional(out) : std::nullopt;
}

// compressed_tensors' decoding of experts in transformers 5.23 knows neither groups of fp8 nor zero points.
bool holds_experts(const FileCodesSpec& spec) {
  return !spec.zeros && spec.codes != FileCodes::mxfp8 && (spec.codes != FileCodes::fp8 || spec.row_group == 0);
}

Value section_of(const FileCodesSpec& spec, const std::vector<std::string>& ignored,
                 const std::vector<std::string>& embeddings) {
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
  const auto group_for = [](const FileCodesSpec& of, const std::vector<std::string>& names) {
    Value targets = Value::list(), group = Value::map();
    for (const std::string& name : names) targets.items.push_back(Value::text(name));
    group.set("targets", targets);
    group.set("weights", weights_of(of));
    group.set("input_activations", Value());
    group.set("output_activations", Value());
    group.set("format", Value::text(layout_of(of.codes)));
    return group;
  };
  Value groups = Value::map();
  groups.set("group_0", group_for(spec, {"Linear"}));
  if (!embeddings.empty()) groups.set("group_1", group_for(*spec_of_embeddings(spec), embeddings));
  out.set("quant_method", Value::text("compressed-tensors"));
  out.set("format", Value::text(layout_of(spec.codes)));
  out.set("quantization_status", Value::text("compressed"));
  out.set("ignore", skipped);
  out.set("config_groups", groups);
  return out;
}

std::vector<weights::OutTensor> blocks_of_stack(
    const std::string& name, const std::vector<int64_t>& shape,
    std::function<std::vector<std::vector<std::byte>>(int64_t matrix)> bytes) {
  const int64_t n = shape[0], rows = shape[1], groups = shape[2] / 32;
  // The scales are made with the blocks, which are usually written before them.
  const auto scales = std::make_shared<std::vector<std::byte>>();
  const auto each = [n, scales, bytes = std::move(bytes)](const auto& use) {
    scales->clear();
    for (int64_t i = 0; i < n; ++i) {
      const std::vector<std::vector<std::byte>> parts = bytes(i);
      use(parts[0]);
      scales->insert(scales->end(), parts[1].begin(), parts[1].end());
    }
  };
  return {{name + "_blocks",
           DType::u8,
           {n, rows, groups, 16},
           [each](const auto& sink) { each([&](const auto& blocks) { sink(blocks.data(), blocks.size()); }); }},
          {name + "_scales", DType::u8, {n, rows, groups}, [each, scales](const auto& sink) {
             if (scales->empty()) each([](const auto&) {});
             sink(scales->data(), scales->size());
             *scales = {};
           }}};
}

Value section_of_blocks() {
  Value plain = Value::list(), out = Value::map();
  for (const char* const layer :
       {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"})
    plain.items.push_back(Value::text(layer));
  out.set("modules_to_not_convert", plain);
  out.set("quant_method", Value::text("mxfp4"));
  return out;
}

}  // namespace easydel::quant
