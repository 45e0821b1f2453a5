// Weights in codes as files hold them: bitsandbytes' tensors for nf4 and fp4, compressed-tensors' for the other
// formats. The readers of these files are bitsandbytes.cpp, compressed_tensors.cpp and scaled.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/kernels/executor.h"
#include "easydel/quant/format_config.h"
#include "easydel/weights/dtype.h"
#include "easydel/weights/safetensors.h"

namespace easydel::quant {

// int8: in words; int8_bytes: in bytes, as compressed-tensors' int-quantized.
enum class FileCodes : uint8_t { nf4, fp4, int8, w4a16, fp8, mxfp4, mxfp8, nvfp4, int2, int8_bytes };
// UserError, at `where`, for a word that is no such format, or one that is not made of values here.
FileCodes file_codes(const std::string& word, const std::string& where);

struct FileCodesSpec {
  FileCodes codes = FileCodes::nf4;
  int64_t group = 64;                           // of nf4, fp4 and w4a16
  weights::DType dtype = weights::DType::bf16;  // of the values; compressed-tensors keeps scales in it
  int64_t row_group = 0;                        // of int8 and fp8: values of a row that share a scale; 0: all
  bool zeros = false;                           // w4a16 with zero points
};
// The files of codes that `format` makes in memory, for a model of values in `dtype`. UserError, at `where`: no file
// format holds them.
FileCodesSpec file_spec(const Format& format, weights::DType dtype, const std::string& where);
// Whether rows of k values can be written so; others stay plain.
bool fits(const FileCodesSpec& spec, int64_t k);

// A tensor of a weight [n, k]: "name" + ending is its name, where "name.weight" is that of the values.
struct CodesPart {
  std::string ending;  // ".weight", ".weight.absmax"
  weights::DType dtype;
  std::vector<int64_t> shape;
};
std::vector<CodesPart> parts_of(const FileCodesSpec& spec, int64_t n, int64_t k);
// The bytes of all parts, in that order.
std::vector<std::vector<std::byte>> bytes_of_parts(kernels::Executor& executor, const FileCodesSpec& spec,
                                                   const float* values, int64_t n, int64_t k);

// A weight in the codes of memory: one in a byte, [n, k], and scales [n, groups], or of the flat blocks of nf4 and fp4.
struct WeightCodes {
  int64_t n = 0, k = 0;
  std::vector<uint8_t> codes;
  std::vector<float> scales;
};
// The bytes of all parts, of codes that file_spec() named. Reading them gives the same values.
std::vector<std::vector<std::byte>> bytes_of_parts(const FileCodesSpec& spec, const WeightCodes& weight);

// How files hold embeddings whose linear layers are as `spec`: codes of one byte, because transformers loads no others.
// Nothing: not at all.
std::optional<FileCodesSpec> spec_of_embeddings(const FileCodesSpec& spec);
// Whether transformers, or a library that it loads codes by, reads experts that are written so.
bool holds_experts(const FileCodesSpec& spec);

// The section quantization_config of config.json. `ignored`: linear layers that stay plain; `embeddings`: those that do
// not.
Value section_of(const FileCodesSpec& spec, const std::vector<std::string>& ignored,
                 const std::vector<std::string>& embeddings = {});

// A stack of matrices [n, rows, k] in mxfp4 as gpt_oss's folders hold it: NAME_blocks and NAME_scales. `bytes` gives
// bytes_of_parts() of one matrix.
std::vector<weights::OutTensor> blocks_of_stack(
    const std::string& name, const std::vector<int64_t>& shape,
    std::function<std::vector<std::vector<std::byte>>(int64_t matrix)> bytes);
// The section quantization_config of such a folder, whose other weights are plain.
Value section_of_blocks();

}  // namespace easydel::quant
