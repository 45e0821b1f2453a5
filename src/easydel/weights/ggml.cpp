#include "easydel/weights/ggml.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::weights {
namespace {

// Types that are read and never written have no name outside.
constexpr GgmlType iq4_nl_type{20}, iq4_xs_type{23}, tq1_0_type{34}, tq2_0_type{35}, mxfp4_type{39}, nvfp4_type{40};

constexpr std::array forms = {
    GgmlForm{GgmlType::f32, "F32", 1, 4, DType::f32},       GgmlForm{GgmlType::f16, "F16", 1, 2, DType::f16},
    GgmlForm{GgmlType::bf16, "BF16", 1, 2, DType::bf16},    GgmlForm{GgmlType::f64, "F64", 1, 8, DType::f64},
    GgmlForm{GgmlType::i8, "I8", 1, 1, DType::i8},          GgmlForm{GgmlType::i16, "I16", 1, 2, DType::i16},
    GgmlForm{GgmlType::i32, "I32", 1, 4, DType::i32},       GgmlForm{GgmlType::i64, "I64", 1, 8, DType::i64},
    GgmlForm{GgmlType::q4_0, "Q4_0", 32, 18, DType::f32},   GgmlForm{GgmlType::q4_1, "Q4_1", 32, 20, DType::f32},
    GgmlForm{GgmlType::q5_0, "Q5_0", 32, 22, DType::f32},   GgmlForm{GgmlType::q5_1, "Q5_1", 32, 24, DType::f32},
    GgmlForm{GgmlType::q8_0, "Q8_0", 32, 34, DType::f32},   GgmlForm{GgmlType::q2_k, "Q2_K", 256, 84, DType::f32},
    GgmlForm{GgmlType::q3_k, "Q3_K", 256, 110, DType::f32}, GgmlForm{GgmlType::q4_k, "Q4_K", 256, 144, DType::f32},
    GgmlForm{GgmlType::q5_k, "Q5_K", 256, 176, DType::f32}, GgmlForm{GgmlType::q6_k, "Q6_K", 256, 210, DType::f32},
    GgmlForm{iq4_nl_type, "IQ4_NL", 32, 18, DType::f32},    GgmlForm{iq4_xs_type, "IQ4_XS", 256, 136, DType::f32},
    GgmlForm{tq1_0_type, "TQ1_0", 256, 54, DType::f32},     GgmlForm{tq2_0_type, "TQ2_0", 256, 66, DType::f32},
    GgmlForm{mxfp4_type, "MXFP4", 32, 17, DType::f32},      GgmlForm{nvfp4_type, "NVFP4", 64, 36, DType::f32},
};

// Written out, because not every compiler has a type for it.
float half_at(const uint8_t* at) {
  const auto half = uint32_t(at[0] | at[1] << 8);
  const uint32_t sign = half >> 15 << 31, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 0) return std::copysign(float(fraction) * 0x1p-24f, std::bit_cast<float>(sign));
  return std::bit_cast<float>(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

uint16_t half_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 31 << 15, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00);   // not a number
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);  // rounds to infinity from 65520 on
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5, whose last place is that of the result, rounds correctly.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f)));
  }
  return uint16_t(sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

// 32 values of 4 bits: the low halves of 16 bytes, then the high halves; `high` holds a fifth bit for each. Either
// `zero` is subtracted from the codes, or `offset` is added to the values.
void decode_q4(const uint8_t* codes, uint32_t high, float scale, float offset, int zero, float* out) {
  const auto value = [&](int code, int place) {
    const float scaled = float((code | int(high >> place & 1) << 4) - zero) * scale;
    return zero != 0 ? scaled : scaled + offset;
  };
  for (int i = 0; i < 16; ++i) {
    out[i] = value(codes[i] & 15, i);
    out[i + 16] = value(codes[i] >> 4, i + 16);
  }
}

uint32_t word_at(const uint8_t* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

void decode_q4_0(const uint8_t* in, float* out) { decode_q4(in + 2, 0, half_at(in), 0, 8, out); }
void decode_q4_1(const uint8_t* in, float* out) { decode_q4(in + 4, 0, half_at(in), half_at(in + 2), 0, out); }
void decode_q5_0(const uint8_t* in, float* out) { decode_q4(in + 6, word_at(in + 2), half_at(in), 0, 16, out); }
void decode_q5_1(const uint8_t* in, float* out) {
  decode_q4(in + 8, word_at(in + 4), half_at(in), half_at(in + 2), 0, out);
}

void decode_q8_0(const uint8_t* in, float* out) {
  const float scale = half_at(in);
  for (int i = 0; i < 32; ++i) out[i] = float(int8_t(in[2 + i])) * scale;
}

void decode_q2_k(const uint8_t* in, float* out) {
  const uint8_t* const scales = in;
  const float scale = half_at(in + 80), minimum = half_at(in + 82);
  for (int group = 0; group < 16; ++group) {
    // In each 128 values, group g of 8 uses two bits of half of the 32 bytes.
    const uint8_t* const codes = in + 16 + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    const float by = scale * float(scales[group] & 15), less = minimum * float(scales[group] >> 4);
    for (int i = 0; i < 16; ++i) *out++ = by * float(codes[i] >> shift & 3) - less;
  }
}

void decode_q3_k(const uint8_t* in, float* out) {
  const uint8_t* const high = in;
  const uint8_t* const packed = in + 96;
  const float scale = half_at(in + 108);
  for (int group = 0; group < 16; ++group) {
    // 6-bit scales: the low four bits in 8 bytes (low halves, then high halves), the upper two bits in the last 4
    // bytes.
    const int low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
    const int scale_code = low | (packed[8 + group % 4] >> group / 4 * 2 & 3) << 4;
    const float by = scale * float(scale_code - 32);
    const uint8_t* const codes = in + 32 + group / 8 * 32 + group % 2 * 16;
    const uint8_t* const bits = high + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) *out++ = by * float((codes[i] >> shift & 3) - ((bits[i] >> group / 2 & 1) ? 0 : 4));
  }
}

// Scale and minimum, 6 bits each, of 8 groups of 32 values, in 12 bytes.
struct ScaleMin {
  float scale, minimum;
};
ScaleMin scale_min(const uint8_t* packed, int group) {
  if (group < 4) return {float(packed[group] & 63), float(packed[group + 4] & 63)};
  return {float((packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4),
          float((packed[group + 4] >> 4) | (packed[group] >> 6) << 4)};
}

void decode_q45_k(const uint8_t* in, const uint8_t* high, const uint8_t* codes, float* out) {
  const float scale = half_at(in), minimum = half_at(in + 2);
  for (int group = 0; group < 8; ++group) {
    const ScaleMin own = scale_min(in + 4, group);
    const float by = scale * own.scale, less = minimum * own.minimum;
    const uint8_t* const from = codes + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const int fifth = high ? high[i] >> group & 1 : 0;
      *out++ = by * float((from[i] >> shift & 15) + 16 * fifth) - less;
    }
  }
}
void decode_q4_k(const uint8_t* in, float* out) { decode_q45_k(in, nullptr, in + 16, out); }
void decode_q5_k(const uint8_t* in, float* out) { decode_q45_k(in, in + 16, in + 48, out); }

void decode_q6_k(const uint8_t* in, float* out) {
  const auto* const scales = reinterpret_cast<const int8_t*>(in + 192);
  const float scale = half_at(in + 208);
  for (int group = 0; group < 16; ++group) {
    const int half = group / 8, part = group % 8 / 2, lane = group % 2 * 16;
    const uint8_t* const low = in + half * 64 + part % 2 * 32 + lane;
    const uint8_t* const high = in + 128 + half * 32 + lane;
    const float by = scale * float(scales[group]);
    for (int i = 0; i < 16; ++i) {
      const int four = part < 2 ? low[i] & 15 : low[i] >> 4;
      *out++ = by * float((four | (high[i] >> part * 2 & 3) << 4) - 32);
    }
  }
}

// `count` values that are numbers of a table: those of the low halves of bytes, then those of the high halves.
void decode_table(const std::array<int8_t, 16>& table, const uint8_t* codes, int count, float scale, float* out) {
  for (int i = 0; i < count / 2; ++i) {
    out[i] = scale * float(table[codes[i] & 15]);
    out[i + count / 2] = scale * float(table[codes[i] >> 4]);
  }
}

constexpr std::array<int8_t, 16> iq4_table = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr std::array<int8_t, 16> e2m1_doubled = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void decode_iq4_nl(const uint8_t* in, float* out) { decode_table(iq4_table, in + 2, 32, half_at(in), out); }

void decode_iq4_xs(const uint8_t* in, float* out) {
  const float scale = half_at(in);
  const int high = in[2] | in[3] << 8;
  for (int group = 0; group < 8; ++group) {
    const int own = (in[4 + group / 2] >> group % 2 * 4 & 15) | (high >> 2 * group & 3) << 4;
    decode_table(iq4_table, in + 8 + group * 16, 32, scale * float(own - 32), out + group * 32);
  }
}

// Half of a power of two, because the table is doubled.
void decode_mxfp4(const uint8_t* in, float* out) {
  decode_table(e2m1_doubled, in + 1, 32, std::ldexp(1.0f, int(in[0]) - 128), out);
}

// Half of an e4m3 number without a sign.
float half_of_e4m3(uint8_t code) {
  if (code == 0 || code == 0x7f) return 0;
  const int exponent = code >> 3 & 15, fraction = code & 7;
  return exponent == 0 ? std::ldexp(float(fraction), -10) : std::ldexp(float(8 + fraction), exponent - 11);
}

void decode_nvfp4(const uint8_t* in, float* out) {
  for (int group = 0; group < 4; ++group)
    decode_table(e2m1_doubled, in + 4 + group * 8, 16, half_of_e4m3(in[group]), out + group * 16);
}

// Ternary digits: the leading one of a byte of which the part after the point is kept.
float ternary(uint8_t byte, int digit) {
  constexpr std::array<uint8_t, 5> powers = {1, 3, 9, 27, 81};
  const auto rest = uint8_t(byte * powers[size_t(digit)]);
  return float((rest * 3 >> 8) - 1);
}

void decode_tq1_0(const uint8_t* in, float* out) {
  const float scale = half_at(in + 52);
  const auto digits = [&](int first, int bytes, int count) {
    for (int digit = 0; digit < count; ++digit)
      for (int i = 0; i < bytes; ++i) *out++ = ternary(in[first + i], digit) * scale;
  };
  digits(0, 32, 5), digits(32, 16, 5), digits(48, 4, 4);
}

void decode_tq2_0(const uint8_t* in, float* out) {
  const float scale = half_at(in + 64);
  for (int half = 0; half < 2; ++half)
    for (int part = 0; part < 4; ++part)
      for (int i = 0; i < 32; ++i) *out++ = float((in[half * 32 + i] >> 2 * part & 3) - 1) * scale;
}

using Decoder = void (*)(const uint8_t*, float*);

constexpr std::array<std::pair<GgmlType, Decoder>, 6> unnamed = {{{iq4_nl_type, decode_iq4_nl},
                                                                  {iq4_xs_type, decode_iq4_xs},
                                                                  {tq1_0_type, decode_tq1_0},
                                                                  {tq2_0_type, decode_tq2_0},
                                                                  {mxfp4_type, decode_mxfp4},
                                                                  {nvfp4_type, decode_nvfp4}}};

Decoder decoder_of(GgmlType type) {
  for (const auto& [known, decoder] : unnamed)
    if (known == type) return decoder;
  switch (type) {
    case GgmlType::q4_0:
      return decode_q4_0;
    case GgmlType::q4_1:
      return decode_q4_1;
    case GgmlType::q5_0:
      return decode_q5_0;
    case GgmlType::q5_1:
      return decode_q5_1;
    case GgmlType::q8_0:
      return decode_q8_0;
    case GgmlType::q2_k:
      return decode_q2_k;
    case GgmlType::q3_k:
      return decode_q3_k;
    case GgmlType::q4_k:
      return decode_q4_k;
    case GgmlType::q5_k:
      return decode_q5_k;
    case GgmlType::q6_k:
      return decode_q6_k;
    default:
      return nullptr;
  }
}

uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return uint16_t(bits >> 16 | 64);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void encode_q8_0(const float* values, std::byte* out) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[i]));
  const float scale = largest / 127.0f, inverse = scale == 0 ? 0.0f : 1.0f / scale;
  const uint16_t half = half_of(scale);
  std::memcpy(out, &half, sizeof half);
  for (int i = 0; i < 32; ++i) out[2 + i] = static_cast<std::byte>(int8_t(std::round(values[i] * inverse)));
}

// Sixteen bytes of 32 codes: the low halves first.
void put_codes(const std::array<uint8_t, 32>& codes, std::byte* out) {
  for (size_t i = 0; i < 16; ++i) out[i] = std::byte(codes[i] | codes[i + 16] << 4);
}

void encode_q4_0(const float* values, std::byte* out) {
  float most = 0;
  for (int i = 0; i < 32; ++i)
    if (std::fabs(values[i]) > std::fabs(most)) most = values[i];
  const float scale = most / -8.0f, inverse = scale == 0 ? 0.0f : 1.0f / scale;
  const uint16_t half = half_of(scale);
  std::memcpy(out, &half, sizeof half);
  std::array<uint8_t, 32> codes;
  for (size_t i = 0; i < 32; ++i)
    codes[i] = uint8_t(std::clamp(std::trunc(double(values[i]) * double(inverse) + 8.5), 0.0, 15.0));
  put_codes(codes, out + 2);
}

void encode_q4_1(const float* values, std::byte* out) {
  const auto [low, high] = std::minmax_element(values, values + 32);
  const float scale = (*high - *low) / 15.0f, inverse = scale == 0 ? 0.0f : 1.0f / scale;
  const uint16_t halves[] = {half_of(scale), half_of(*low)};
  std::memcpy(out, halves, sizeof halves);
  std::array<uint8_t, 32> codes;
  for (size_t i = 0; i < 32; ++i)
    codes[i] = uint8_t(std::clamp(std::trunc((values[i] - *low) * inverse + 0.5f), 0.0f, 15.0f));
  put_codes(codes, out + 4);
}

}  // namespace

const GgmlForm* find_ggml_form(uint32_t type) {
  for (const GgmlForm& form : forms)
    if (uint32_t(form.type) == type) return &form;
  return nullptr;
}

const GgmlForm& form_of(GgmlType type) {
  const GgmlForm* const form = find_ggml_form(uint32_t(type));
  check(form != nullptr, "no form of ggml type ", uint32_t(type));
  return *form;
}

void decode(GgmlType type, const std::byte* blocks, float* out, int64_t count) {
  const GgmlForm& form = form_of(type);
  check(count % form.elements == 0, count, " values are not whole blocks of ", form.name);
  if (count == 0) return;
  const auto* in = reinterpret_cast<const uint8_t*>(blocks);
  if (const Decoder decoder = decoder_of(type)) {
    for (int64_t at = 0; at < count; at += form.elements, in += form.bytes) decoder(in, out + at);
    return;
  }
  switch (type) {
    case GgmlType::f32:
      std::memcpy(out, in, size_t(count) * 4);
      return;
    case GgmlType::f16:
      for (int64_t i = 0; i < count; ++i) out[i] = half_at(in + 2 * i);
      return;
    case GgmlType::bf16:
      for (int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(uint32_t(in[2 * i] | in[2 * i + 1] << 8) << 16);
      return;
    case GgmlType::f64:
      for (int64_t i = 0; i < count; ++i) {
        double value;
        std::memcpy(&value, in + 8 * i, sizeof value);
        out[i] = float(value);
      }
      return;
    default:
      throw Bug(str("values of ", form.name, " are not floating-point numbers"));
  }
}

void encode(GgmlType type, const float* values, std::byte* out, int64_t count) {
  const GgmlForm& form = form_of(type);
  check(count % form.elements == 0, count, " values are not whole blocks of ", form.name);
  if (count == 0) return;
  switch (type) {
    case GgmlType::f32:
      std::memcpy(out, values, size_t(count) * 4);
      return;
    case GgmlType::f16:
      for (int64_t i = 0; i < count; ++i) {
        const uint16_t half = half_of(values[i]);
        std::memcpy(out + 2 * i, &half, sizeof half);
      }
      return;
    case GgmlType::bf16:
      for (int64_t i = 0; i < count; ++i) {
        const uint16_t half = bf16_of(values[i]);
        std::memcpy(out + 2 * i, &half, sizeof half);
      }
      return;
    case GgmlType::q8_0:
    case GgmlType::q4_0:
    case GgmlType::q4_1:
      for (int64_t at = 0; at < count; at += form.elements, out += form.bytes)
        (type == GgmlType::q8_0 ? encode_q8_0 : type == GgmlType::q4_0 ? encode_q4_0 : encode_q4_1)(values + at, out);
      return;
    default:
      throw Bug(str("values are not written as ", form.name));
  }
}

}  // namespace easydel::weights
