// Recorded cases of quantization formats: quant/bnb_4bit, quant/bnb_4bit_double_quant (bitsandbytes), quant/int8,
// quant/fp8 (torch's casts), quant/gguf, quant/mxfp4_gpt_oss.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>

#include "easydel/base/error.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/probe/vector_tensors.h"
#include "easydel/probe/vectors.h"
#include "easydel/quant/dynamic_map.h"
#include "easydel/quant/file_format.h"
#include "easydel/quant/four_bits.h"
#include "easydel/quant/integer_codes.h"
#include "easydel/quant/quantize.h"
#include "easydel/tensor/kernels.h"
#include "easydel/text/tokenizers/charsmap.h"
#include "easydel/weights/ggml.h"

namespace easydel::probe {
namespace {

// The values of some keys of a case.
std::function<Value(const VectorCase&, const VectorFile&)> keys(std::vector<std::string> names) {
  return [names = std::move(names)](const VectorCase& vector, const VectorFile&) {
    Value out = Value::map();
    for (const std::string& name : names)
      if (const Value* const found = vector.body.find(name)) out.set(name, *found);
    return out;
  };
}

Tensor input_of(const VectorCase& vector, const VectorFile& file) {
  const Value* const inputs = file.document.find("inputs");
  const Value* const found = inputs ? inputs->find(needed(vector, "tensor").scalar) : nullptr;
  if (!found) refuse(vector.id, "its tensor is not in the file");
  return shaped_tensor_of(*found);
}

struct Kept {
  Tensor codes, scales, values;  // int64 [rows, columns]; [rows, groups]; [rows, columns]
};
Kept quantized(const Tensor& rows, const kernels::QuantizedSpec& spec) {
  const quant::Codes weight = quant::quantize(rows, {"a8bit", spec});
  const quant::Unpacked parts = quant::unpack(*weight);
  return {parts.codes, parts.scales, ops::dequantized(*weight, at::kFloat)};
}

std::string decoded(const Value& base64) { return text::decode_base64(base64.scalar); }

std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

Value numbers(const std::vector<float>& values) {
  Value out = Value::list();
  for (const float value : values) out.items.push_back(Value::number(double(value)));
  return out;
}

quant::FourBits kind_of(const VectorCase& vector) {
  return needed(vector, "quant_type").scalar == "fp4" ? quant::FourBits::fp4 : quant::FourBits::nf4;
}

// The codes of a tensor as bitsandbytes makes them, its scales, and its values by the scales that are kept.
struct Blocks {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  Tensor values(quant::FourBits kind, int64_t block, const std::function<float(int64_t)>& scale) const {
    const Tensor out = at::empty({int64_t(codes.size())}, at::TensorOptions().dtype(at::kFloat));
    for (size_t i = 0; i < codes.size(); ++i)
      out.mutable_data_ptr<float>()[i] = table_of(kind)[codes[i]] * scale(int64_t(i) / block);
    return out;
  }
};
Blocks blocks_of(const Tensor& values, quant::FourBits kind, int64_t block) {
  const Tensor flat = values.flatten().contiguous();
  const int64_t count = flat.numel();
  Blocks out{std::vector<uint8_t>(size_t(count)), std::vector<float>(size_t((count + block - 1) / block))};
  quant::quantize_four_bits(tensor::executor(), kind, flat.const_data_ptr<float>(), count, block, out.codes.data(),
                            out.scales.data());
  return out;
}

Value integers(const std::vector<uint8_t>& bytes) {
  Value out = Value::list();
  for (const uint8_t byte : bytes) out.items.push_back(Value::integer(byte));
  return out;
}

Value bnb_4bit(const VectorCase& vector, const VectorFile& file) {
  const quant::FourBits kind = kind_of(vector);
  const int64_t block = needed(vector, "blocksize").as_int().value_or(64);
  const Blocks made = blocks_of(input_of(vector, file), kind, block);
  Value out = Value::map();
  out.set("packed", integers(quant::pack_four_bits(kind, made.codes.data(), int64_t(made.codes.size()))));
  out.set("absmax", numbers(made.scales));
  out.set("dequantized", nested_of(made.values(kind, block, [&](int64_t i) { return made.scales[size_t(i)]; })));
  return out;
}

// Sums as the recording's.
Value checksum(const Tensor& values, at::IntArrayRef shape, size_t firsts) {
  const Tensor wide = values.to(at::kDouble);
  Value out = Value::map();
  out.set("shape", list_of(shape.vec()));
  out.set("sum", Value::number(wide.sum().item<double>()));
  out.set("abs_sum", Value::number(wide.abs().sum().item<double>()));
  out.set("l2", Value::number(wide.square().sum().sqrt().item<double>()));
  out.set("first", nested_of(values.slice(0, 0, int64_t(firsts))));
  return out;
}

Value bnb_4bit_double_quant(const VectorCase& vector, const VectorFile& file) {
  constexpr int64_t block = 64, shown = 256;
  const quant::FourBits kind = kind_of(vector);
  std::vector<float> input = floats_of(decoded(*file.document.find("input_f32_base64")));
  const Tensor values = at::from_blob(input.data(), {int64_t(input.size())}, at::kFloat);
  const Blocks made = blocks_of(values, kind, block);
  const quant::NestedScales nested = quant::nest_scales(tensor::executor(), made.scales, quant::mean_of(made.scales));
  const std::vector<uint8_t> packed = quant::pack_four_bits(kind, made.codes.data(), int64_t(made.codes.size()));
  const Tensor back = made.values(kind, block, [&](int64_t i) { return nested.at(i); });
  int64_t sum = 0;
  for (const uint8_t byte : packed) sum += byte;
  Value out = Value::map();
  out.set("absmax_codes_uint8", integers(nested.codes));
  out.set("offset", Value::number(double(nested.offset)));
  out.set("nested_absmax", numbers(nested.scales));
  out.set("nested_blocksize", Value::integer(quant::nested_block));
  out.set("nested_code_256", numbers({quant::dynamic_map(true).begin(), quant::dynamic_map(true).end()}));
  out.set("packed_first_256",
          integers({packed.begin(), packed.begin() + std::min<int64_t>(shown, int64_t(packed.size()))}));
  out.set("packed_sum", Value::integer(sum));
  out.set("dequantized_first_256", nested_of(back.slice(0, 0, shown)));
  out.set("dequantized_checksum", checksum(back, integers_of(needed(vector, "shape")),
                                           needed(vector, "dequantized_checksum").find("first")->items.size()));
  return out;
}

// Codes, scales, zeros where there are some, and values of the rows.
Value integers_of_rows(const Tensor& input, const quant::IntegerCodes& rule) {
  const Tensor rows = input.contiguous();
  const int64_t n = rows.size(0), k = rows.size(1), groups = rule.groups(k);
  const Tensor codes = at::empty({n, k}, at::TensorOptions().dtype(at::kChar)),
               zeros = at::zeros({n, groups}, at::kChar),
               scales = at::empty({n, groups}, at::TensorOptions().dtype(at::kFloat));
  quant::quantize_integers(tensor::executor(), rule, rows.const_data_ptr<float>(), n, k,
                           codes.mutable_data_ptr<int8_t>(), scales.mutable_data_ptr<float>(),
                           zeros.mutable_data_ptr<int8_t>());
  const int64_t group = rule.group > 0 ? rule.group : k;
  const auto of_each = [&](const Tensor& values) { return values.repeat_interleave(group, 1).slice(1, 0, k); };
  Value out = Value::map();
  out.set("codes", nested_of(codes.flatten()));
  out.set("scales", nested_of(scales.flatten()));
  if (rule.has_zeros) out.set("zeros", nested_of(zeros.flatten()));
  out.set("dequantized", nested_of(((codes.to(at::kFloat) - of_each(zeros)) * of_each(scales)).flatten()));
  return out;
}

Value dynamic(const VectorCase& vector, const Tensor& input) {
  const int64_t count = input.numel(), block = needed(vector, "blocksize").as_int().value_or(256);
  const Tensor flat = input.flatten().contiguous(), back = at::empty_like(flat);
  std::vector<uint8_t> codes(size_t(count), 0);
  std::vector<float> scales(size_t((count + block - 1) / block));
  quant::quantize_dynamic(tensor::executor(), true, flat.const_data_ptr<float>(), count, block, codes.data(),
                          scales.data());
  quant::dequantize_dynamic(tensor::executor(), true, codes.data(), scales.data(), count, block,
                            back.mutable_data_ptr<float>());
  Value out = Value::map();
  out.set("codes", integers(codes));
  out.set("absmax", numbers(scales));
  out.set("dequantized", nested_of(back));
  return out;
}

Value int8(const VectorCase& vector, const VectorFile& file) {
  const std::string& scheme = needed(vector, "scheme").scalar;
  const kernels::QuantizedSpec bytes{kernels::Codes::bytes, 0, {}};
  const Tensor input = input_of(vector, file);
  const auto is = [&](const char* name) { return scheme.starts_with(name); };
  if (is("bnb_dynamic_8bit_blockwise")) return dynamic(vector, input);
  if (is("int8_affine_rows")) return integers_of_rows(input, {.bits = 8, .has_zeros = true});
  if (is("int4_symmetric_group32")) return integers_of_rows(input, {.bits = 4, .group = 32, .divisor = 7});
  Value out = Value::map();
  if (is("bnb_int8_vectorwise_rows")) {
    const Tensor half = input.to(at::kHalf).to(at::kFloat);
    out.set("codes", nested_of(quantized(half, bytes).codes.flatten()));
    out.set("row_absmax", nested_of(half.abs().amax({1})));
    return out;
  }
  if (!is("int8_symmetric_rows") && !is("int8_symmetric_tensor")) throw VectorNotBuilt("the format " + scheme);
  const Kept kept = quantized(is("int8_symmetric_rows") ? input : input.view({1, -1}), bytes);
  out.set("codes", nested_of(kept.codes.flatten()));
  out.set("scales", nested_of(kept.scales.flatten()));
  out.set("dequantized", nested_of(kept.values.flatten()));
  return out;
}

at::ScalarType small_float(const std::string& name) {
  if (name == "float8_e4m3fn") return at::kFloat8_e4m3fn;
  if (name == "float8_e5m2") return at::kFloat8_e5m2;
  if (name == "float8_e4m3fnuz") return at::kFloat8_e4m3fnuz;
  if (name == "float8_e5m2fnuz") return at::kFloat8_e5m2fnuz;
  if (name == "bfloat16") return at::kBFloat16;
  if (name == "float16") return at::kHalf;
  throw VectorNotBuilt("the number type " + name);
}

// Numbers, or the words by which files write those that JSON lacks.
Value words_of(const Tensor& values) {
  Value out = Value::list();
  for (const double number : std::span(values.const_data_ptr<double>(), size_t(values.numel())))
    out.items.push_back(std::isnan(number)   ? Value::text("nan")
                        : std::isinf(number) ? Value::text(number > 0 ? "inf" : "-inf")
                                             : Value::number(number));
  return out;
}

Value fp8(const VectorCase& vector, const VectorFile&) {
  std::vector<int32_t> bits;
  for (const int64_t number : integers_of(needed(vector, "input_bits_f32"))) bits.push_back(int32_t(uint32_t(number)));
  const Tensor input = at::from_blob(bits.data(), {int64_t(bits.size())}, at::kInt).view(at::kFloat).clone();
  const auto bits_of = [](const Tensor& small) {
    const bool wide = small.element_size() == 2;
    const Tensor raw = small.view(wide ? at::kShort : at::kByte).to(at::kLong);
    return nested_of(wide ? raw.bitwise_and(0xffff) : raw);
  };
  Value out = Value::map(), casts = Value::map(), scaled = Value::list();
  for (const auto& [name, recorded] : needed(vector, "casts").entries) {
    const Tensor small = input.to(small_float(name));
    Value one = Value::map();
    one.set("bits", bits_of(small));
    one.set("back", words_of(small.to(at::kDouble)));
    casts.set(name, one);
  }
  for (const Value& one : needed(vector, "scaled").items) {
    const Tensor values = shaped_tensor_of(one), scales = values.abs().amax({1}) / 448;
    const Tensor small = (values / scales.unsqueeze(1)).to(at::kFloat8_e4m3fn);
    Value made = Value::map();
    made.set("scales", nested_of(scales));
    made.set("bits", bits_of(small.flatten()));
    made.set("dequantized", nested_of((small.to(at::kFloat) * scales.unsqueeze(1)).flatten()));
    scaled.items.push_back(made);
  }
  out.set("casts", casts);
  out.set("scaled", scaled);
  return out;
}

Value expected_fp8(const VectorCase& vector, const VectorFile& file) {
  Value out = keys({"casts", "scaled"})(vector, file);
  for (Value& one : out.find("scaled")->items)
    std::erase_if(one.entries, [](const auto& entry) {
      return entry.first != "scales" && entry.first != "bits" && entry.first != "dequantized";
    });
  return out;
}

bool is_written(const std::string& type) {
  return type == "F16" || type == "BF16" || type == "Q8_0" || type == "Q4_0" || type == "Q4_1";
}

// The values of a file's bytes; for types that can be written, also the bytes of the file's input.
Value gguf(const VectorCase& vector, const VectorFile& file) {
  const std::string& type = needed(vector, "type").scalar;
  const weights::GgmlForm* form = nullptr;
  for (uint32_t number = 0; number < 64 && !form; ++number)
    if (const auto* known = weights::find_ggml_form(number); known && known->name == type) form = known;
  if (!form) throw VectorNotBuilt("the type " + type);
  const std::string bytes = decoded(needed(vector, "bytes_base64"));
  std::vector<float> values(bytes.size() / form->bytes * size_t(form->elements));
  weights::decode(form->type, reinterpret_cast<const std::byte*>(bytes.data()), values.data(), int64_t(values.size()));
  Value out = Value::map();
  out.set("values", numbers(values));
  if (is_written(type)) {
    const std::vector<float> input = floats_of(decoded(*file.document.find("input_f32_base64")));
    std::string made(bytes.size(), '\0');
    weights::encode(form->type, input.data(), reinterpret_cast<std::byte*>(made.data()), int64_t(input.size()));
    out.set("bytes", Value::text(text::encode_base64(made)));
  }
  return out;
}

Value expected_gguf(const VectorCase& vector, const VectorFile&) {
  const std::string& type = needed(vector, "type").scalar;
  Value out = Value::map();
  out.set("values", numbers(floats_of(decoded(needed(vector, "dequantized_base64_f32")))));
  if (is_written(type)) out.set("bytes", needed(vector, "bytes_base64"));
  return out;
}

// The loader's values are [experts, in, out].
Value mxfp4(const VectorCase& vector, const VectorFile&) {
  const Tensor blocks =
      tensor_of(needed(vector, "blocks"), at::kByte).view(integers_of(needed(vector, "blocks_shape")));
  const Tensor scales = tensor_of(needed(vector, "scales"), at::kByte).view(blocks.sizes().slice(0, 3));
  const auto view = [](const Tensor& bytes) {
    return weights::TensorView{weights::DType::u8,
                               bytes.sizes().vec(),
                               {static_cast<const std::byte*>(bytes.const_data_ptr()), size_t(bytes.numel())},
                               {}};
  };
  const Tensor values =
      quant::values_of(quant::read_mxfp4(vector.id, view(blocks), view(scales))).transpose(1, 2).contiguous();
  Value out = Value::map();
  out.set("dequantized_shape", list_of(values.sizes().vec()));
  out.set("dequantized", nested_of(values.to(at::kFloat).flatten()));
  return out;
}

}  // namespace

VectorKind quant_bnb_4bit_vectors() {
  return {.name = "quant/bnb_4bit", .answer = bnb_4bit, .expected = keys({"packed", "absmax", "dequantized"})};
}
VectorKind quant_bnb_4bit_double_quant_vectors() {
  return {.name = "quant/bnb_4bit_double_quant",
          .answer = bnb_4bit_double_quant,
          .expected = keys({"absmax_codes_uint8", "offset", "nested_absmax", "nested_blocksize", "nested_code_256",
                            "packed_first_256", "packed_sum", "dequantized_first_256", "dequantized_checksum"})};
}
VectorKind quant_fp8_vectors() { return {.name = "quant/fp8", .answer = fp8, .expected = expected_fp8}; }
VectorKind quant_gguf_vectors() { return {.name = "quant/gguf", .answer = gguf, .expected = expected_gguf}; }
VectorKind quant_int8_vectors() {
  return {.name = "quant/int8",
          .answer = int8,
          .expected = keys({"codes", "row_absmax", "absmax", "scales", "zeros", "dequantized"})};
}
VectorKind quant_mxfp4_gpt_oss_vectors() {
  return {.name = "quant/mxfp4_gpt_oss", .answer = mxfp4, .expected = keys({"dequantized_shape", "dequantized"})};
}

}  // namespace easydel::probe
