// Recorded cases of EasyDeL's quantization: quantization (words, and codes of small matrices), model_quantize (which
// layers of a small llama have codes).
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/elarge/session_core.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/nn/quantization.h"
#include "easydel/probe/vector_tensors.h"
#include "easydel/probe/vectors.h"
#include "easydel/quant/made_codes.h"
#include "easydel/quant/quantize.h"
#include "easydel/tensor/kernels.h"

namespace easydel::probe {
namespace {

// The word as a run's configuration reads it. Throws UserError for an unknown one.
elarge::QuantizationConfig read(const std::string& method, const VectorCase& vector, Value part = Value::map()) {
  part.set("dtype", Value::text(method));
  Value section = Value::map();
  section.set("model", part);
  config::Problems problems(vector.id);
  elarge::QuantizationConfig out;
  config::read_section(config::section_of<elarge::QuantizationConfig>(), section, &out, "", problems);
  problems.throw_if_any();
  return out;
}

// The recorded fields that both versions have.
Value described(const elarge::QuantizedPart& part) {
  Value out = Value::map();
  out.set("simulate", Value::boolean(part.simulate));
  return out;
}

// The matrices of these files: a hash of an element's index, minus one half.
Tensor matrix_of(const VectorCase& vector, const VectorFile& file) {
  const Value* const all = file.document.find("meta");
  const std::string& name = needed(vector, "matrix").scalar;
  const Value* const meta = all ? all->find(name) : nullptr;
  if (!meta || !meta->find("shape") || !meta->find("j")) refuse(vector.id, "its matrix is not in the file");
  const Value& seed = *meta->find("j");
  const Tensor out = at::empty(integers_of(*meta->find("shape")), at::TensorOptions().dtype(at::kFloat));
  if (seed.is_null() || seed.is_text()) out.fill_(seed.scalar == "c" ? 0.25 : 0);
  if (seed.is_null() || seed.scalar == "c") return out;
  const bool outlier = seed.is_text();
  const int64_t j = outlier ? 7 : seed.as_int().value_or(0);
  float* const values = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i) values[i] = float(hashed(i, j) * (name.starts_with("big") ? 100 : 1));
  if (outlier) values[5] = 30;
  return out;
}

// Codes of a few bits in 32-bit words, the first in the lowest bits.
Value packed_of(const std::vector<uint8_t>& codes, int bits) {
  Value out = Value::list();
  const size_t of_word = size_t(32 / bits);
  for (size_t first = 0; first + of_word <= codes.size(); first += of_word) {
    int64_t word = 0;
    for (size_t i = 0; i < of_word; ++i) word |= int64_t(codes[first + i]) << (bits * int(i));
    out.items.push_back(Value::integer(word));
  }
  return out;
}

// Signs of four rows in a byte, as 0.2.0.1 keeps them: two bits each, the sign plus 1; rows a quarter of all apart.
Value packed_signs(const Tensor& values) {
  const Tensor digits = (values + 1).to(at::kLong);
  const int64_t bytes = digits.size(0) / 4;
  Tensor packed = at::zeros({bytes, digits.size(1)}, at::kLong);
  for (int64_t row = 0; row < bytes * 4; ++row)
    packed[row % bytes].add_(digits[row].bitwise_left_shift(2 * (row / bytes)));
  return shaped_of(packed);
}

Value shaped_numbers(const std::vector<float>& numbers, int64_t rows) {
  const Tensor flat = at::from_blob(const_cast<float*>(numbers.data()), {int64_t(numbers.size())}, at::kFloat);
  return shaped_of(flat.view({rows, -1}));
}

Value made_codes(const quant::Format& format, const Tensor& rows, bool kernel) {
  const quant::CodeRule rule = quant::rule_of(format);
  const int64_t n = rows.size(0), k = rows.size(1);
  const quant::MadeCodes made =
      quant::make_codes(tensor::executor(), rule, rows.const_data_ptr<float>(), n, k, quant::mean_of);
  Value out = Value::map();
  if (32 % rule.bits == 0) out.set("packed", packed_of(made.codes, rule.bits));
  if (!made.zeros.empty()) out.set("zeros", shaped_numbers(made.zeros, n));
  const bool flat = int64_t(made.scales.size()) % n != 0;
  std::vector<float> scales = made.scales;
  if (!made.scale_codes.empty()) scales.assign(made.scale_codes.begin(), made.scale_codes.end());
  out.set(kernel ? "scales" : "scale", shaped_numbers(scales, flat ? 1 : n));
  return out;
}

Value quantization(const VectorCase& vector, const VectorFile& file) {
  const std::string& op = needed(vector, "op").scalar;
  if (op == "QuantizationType" || op.starts_with("QuantizationConfig")) {
    const std::string& word = needed(vector, "input").scalar;
    const elarge::QuantizedPart part = *read(word, vector).model;
    return op == "QuantizationType" ? Value::text(word) : described(part);
  }
  const bool kernel = op.starts_with("kernel");
  const std::string& method = needed(vector, kernel ? "mode" : "dtype").scalar;
  if (method == "turboquant") throw VectorNotBuilt("the format " + method);
  Value part = Value::map();
  // Eight bits use one scale per row, whatever block_size says, as in 0.2.0.1; signs have none.
  const bool has_groups = method != "int8" && method != "ternary" && method != "binary";
  for (const char* key : {"block_size", "group_size", "bits"})
    if (const Value* const given = vector.body.find(key); given && has_groups) part.set(key, *given);
  const Value* const axis = vector.body.find("axis");
  const Tensor matrix = matrix_of(vector, file);
  const Tensor rows = axis && axis->scalar == "row" ? matrix.t().contiguous() : matrix;
  const quant::Format format = read(method, vector, part).weight_format()->format;
  const Tensor values = quant::rounded(rows, format);
  Value out = Value::map();
  if (op.find("simulate") != std::string::npos || !has_groups) out.set("value", shaped_of(values));
  if (op.find("simulate") != std::string::npos) return out;
  if (quant::is_made_here(quant::rule_of(format))) {
    out = made_codes(format, rows, kernel);
  } else {
    const quant::Unpacked kept = quant::unpack(*quant::quantize(rows, format));
    out.set("weight", shaped_of(kept.codes));
    out.set("scale", shaped_of(kept.scales));
  }
  if (method == "ternary" || method == "binary") out.set("weight", packed_signs(values));
  if (!has_groups) out.set("value", shaped_of(values));
  out.set("dequantized", shaped_of(values));
  return out;
}

// The recorded values as numbers, without the names of classes and dtypes.
Value plain(const Value& recorded) {
  if (!recorded.is_map()) return recorded;
  Value out = Value::map();
  for (const auto& [key, value] : recorded.entries) {
    if (key == "class" || key == "dtype") continue;
    const Value* const data = value.is_map() ? value.find("data") : nullptr;
    out.set(key, key == "packed" && data ? *data : value.is_map() ? plain(value) : value);
  }
  return out;
}

// Codes must be equal; values within half precision.
std::string compare(const Value& expected, const Value& got) {
  if (!expected.is_map()) return difference_of(expected, got, 0, 0);
  if (expected.find("simulate") && !expected.find("value") && !expected.find("dequantized"))
    return difference_of(*expected.find("simulate"), *got.find("simulate"), 0, 0);
  const Value mine = plain(got);
  for (const auto& [key, value] : plain(expected).entries) {
    const bool codes = key == "packed" || key == "weight";
    const Value* const found = mine.find(key);
    if (!found) return key + " is expected";
    if (std::string why = difference_of(value, *found,
                                        codes                  ? 0
                                        : key == "dequantized" ? 1e-3
                                                               : 1e-5,
                                        codes ? 0 : 1e-6);
        !why.empty())
      return key + ": " + why;
  }
  return "";
}

// The same small llama as in the recordings; a null configuration is the bare flag.
Value model_quantize(const VectorCase& vector, const VectorFile&) {
  const Value config =
      parse_json(R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64, "tie_word_embeddings": false})");
  Value section = Value::map();
  section.set("apply_quantization", Value::boolean(true));
  if (const Value& given = needed(vector, "config"); !given.is_null()) section.set("model", given);
  config::Problems problems(vector.id);
  elarge::QuantizationConfig read;
  config::read_section(config::section_of<elarge::QuantizationConfig>(), section, &read, "", problems);
  problems.throw_if_any();
  nn::Quantizer quantizer(*elarge::quantization_of(read));
  std::vector<std::string> taken;
  const auto table = models::plan_parameters(config, vector.id);
  for (const nn::Entry& entry : table->entries()) {
    if (!nn::is_linear(entry)) continue;
    const std::string layer = nn::layer_name(entry);
    if (quantizer.takes(entry, layer, /*shared=*/false)) taken.push_back(layer);
  }
  std::ranges::sort(taken);
  Value out = Value::map();
  out.set("is_quantized", Value::boolean(!taken.empty()));
  out.set("layers", list_of(taken));
  return out;
}

// The recorded parameter names show which layers have codes.
Value expected_model(const VectorCase& vector, const VectorFile&) {
  const Value& recorded = needed(vector, "expect");
  const Value* const ok = recorded.find("ok");
  if (!ok) return recorded;
  std::vector<std::string> layers;
  constexpr std::string_view leaf = ".quant_kernel";
  for (const auto& [name, shape] : ok->find("params")->entries)
    if (name.ends_with(leaf)) layers.push_back(name.substr(0, name.size() - leaf.size()));
  std::ranges::sort(layers);
  Value out = Value::map(), value = Value::map();
  value.set("is_quantized", *ok->find("is_quantized"));
  value.set("layers", list_of(layers));
  out.set("ok", value);
  return out;
}

}  // namespace

VectorKind model_quantize_vectors() {
  return {.name = "model_quantize", .answer = model_quantize, .expected = expected_model};
}

VectorKind quantization_vectors() { return {.name = "quantization", .answer = quantization, .compare = compare}; }

}  // namespace easydel::probe
