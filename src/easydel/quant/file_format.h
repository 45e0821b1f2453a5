// What a format of codes is for the reader of a folder: by which tensor its weights are known, which tensors belong to
// one, and how they are read. formats.cpp lists them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/quant/coded_weight.h"
#include "easydel/quant/file_config.h"
#include "easydel/weights/folder.h"

namespace easydel::quant {

// The tensors of one weight. Those that are read become its parts.
class WeightTensors {
 public:
  // `stem`: the layer's name, or that of a weight that is not called "weight".
  WeightTensors(const weights::Folder& folder, const FileConfig& config, weights::DType dtype, std::string values,
                std::string stem);

  const FileConfig& config() const { return config_; }
  weights::DType dtype() const { return dtype_; }        // of the model's plain weights
  const std::string& values() const { return values_; }  // what a plain checkpoint would call it
  const std::string& stem() const { return stem_; }
  std::string where(std::string_view ending) const;         // "file: name"
  bool has(std::string_view ending) const;                  // a tensor named stem + ending
  weights::TensorView view(std::string_view ending) const;  // it is there
  weights::TensorView info(std::string_view ending) const;  // it is there; shape and type alone are valid

  // The tensor is a part of the weight from now on.
  std::optional<weights::TensorView> find(std::string_view ending);
  weights::TensorView need(std::string_view ending);  // UserError: it is missing
  weights::StoredRows need_stored(std::string_view ending);

  // UserError about a tensor.
  [[noreturn]] void refuse_tensor(std::string_view ending, const std::string& problem) const;
  // UserError unless the tensor has this dtype, or this shape.
  void check_dtype(std::string_view ending, const weights::TensorView& view, weights::DType dtype) const;
  void check_shape(std::string_view ending, const weights::TensorView& view, const std::vector<int64_t>& shape) const;
  // A size that the configuration states must be that of the tensors.
  void check_stated(std::string_view key, int64_t found) const;

  // A weight with the parts and names set.
  std::shared_ptr<CodedWeight> weight(std::string format, std::vector<int64_t> shape) const;

 private:
  const weights::Folder& folder_;
  const FileConfig& config_;
  weights::DType dtype_;
  std::string values_, stem_;
  std::vector<std::pair<std::string, weights::TensorView>> parts_;
};

struct FileFormat {
  std::string_view name;
  // The ending of the tensor by which a weight of this format is known, and what replaces it in the name of the values.
  std::string_view ending, replacement;
  bool (*claims)(const WeightTensors& tensors);
  std::shared_ptr<CodedWeight> (*read)(WeightTensors& tensors);
};
std::span<const FileFormat> file_formats();

FileFormat awq_format();
FileFormat bitnet_format();
FileFormat bitsandbytes_4bit_format();
FileFormat bitsandbytes_8bit_format();
FileFormat packed_format();
FileFormat fp8_blocks_format();
FileFormat ggml_format();
FileFormat gptq_format();
FileFormat scaled_format();

// The experts of gpt_oss: blocks U8 [.., rows, groups, 16], scales U8 [.., rows, groups]. UserError if they do not
// belong together.
std::shared_ptr<CodedWeight> read_mxfp4(const std::string& where, const weights::TensorView& blocks,
                                        const weights::TensorView& scales);

// Blocks of Q8_0, Q4_0, Q4_1 or a K-quant: a matrix of whole blocks.
bool is_blocks_of_codes(const weights::TensorView& view);
// Sets codes, scales and offsets. `rows` outlives the weight, which has its shape.
void set_blocks(CodedWeight& weight, const weights::StoredRows& rows);

// Endings of tensors about activations and about keys and values, which are not quantized here. Those of a layer in
// codes are parts of its weight, so that they are saved with it.
std::span<const std::string_view> activation_scales();

// The scales of a weight of this shape: one for all, one for each row (of a stack: of each matrix, too), for groups of
// columns, or for blocks of rows and columns. `block`: rows and columns of a block, or of a group; 0: what divides.
// UserError: the tensor has another shape.
void set_scales(CodedWeight& weight, const WeightTensors& tensors, std::string_view ending,
                const weights::TensorView& scales, std::array<int64_t, 2> block);

// The groups of columns that share a scale, from the number of groups and what the configuration states.
int64_t columns_of_group(const WeightTensors& tensors, int64_t in, int64_t groups);
// Act order: the group of each column. Empty if they are in order.
std::vector<int32_t> groups_of_columns(const WeightTensors& tensors, std::string_view ending,
                                       const weights::TensorView& view, int64_t in, int64_t groups, int64_t columns);

}  // namespace easydel::quant
