// The weights in codes of a model that is saved: those of its folder as they are, and those that were made while it was
// loaded (the section quantization.model) in the files that quant/file_codes.h names.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/models/merged_weights.h"
#include "easydel/nn/made_codes.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/quant/file_codes.h"
#include "easydel/weights/safetensors.h"

namespace easydel::models {

class SavedCodes {
 public:
  // `files`: all tensors of the model. A model with adapters has none unless `merge_to_codes`; what adapters change
  // becomes codes of its format once more then. UserError, at `where`: no file holds codes of a layer, or there are
  // none to merge into. The model outlives it.
  SavedCodes(const Model& model, const std::vector<FileTensor>& files, bool merge_to_codes, const std::string& where);
  bool has(const FileTensor& file) const;  // whether the weight is saved in codes
  // The tensors of such a weight. Their bytes are made while they are written, from the first tensor to the last.
  // `type`: of values that codes stand for.
  std::vector<weights::OutTensor> of(const FileTensor& file, const MergedWeights& merged, at::ScalarType type) const;
  // The output layers that read a coded embedding, or read a plain one by codes: weights of their own in the files.
  std::vector<weights::OutTensor> heads(const MergedWeights& merged) const;
  const Value& section() const { return section_; }  // of config.json
  // The format of codes that are made of merged values; empty: there are none.
  const std::string& format() const { return format_; }

 private:
  using Made = std::map<const nn::Entry*, nn::MadeCodes>;
  using Bytes = std::vector<std::vector<std::byte>>;  // of the parts of one matrix
  // How a tensor of the model becomes codes.
  struct Plan {
    quant::Format format;
    quant::FileCodesSpec spec;
    at::ScalarType compute;
    std::string layer;                      // its name in the file, without ".weight"
    std::optional<ops::Matrix> codes = {};  // nothing: they are made of the merged values
  };
  // How a stack of experts becomes blocks.
  struct BlocksPlan {
    std::string name;  // of its values in the file
    std::vector<int64_t> shape;
    std::vector<std::pair<const nn::Entry*, nn::MadeCodes>> parts;  // which share its rows
  };
  // The bytes that were made last: a file asks for the parts of a weight one by one.
  struct Last {
    std::string layer;
    Bytes bytes;
  };

  Made find_made(const Model& model) const;
  void plan_made(const Model& model, const Made& made, const std::vector<FileTensor>& files, const std::string& where);
  void plan_heads(const Model& model, const Made& made, const std::vector<FileTensor>& files,
                  const quant::FileCodesSpec& spec, const std::string& where);
  void plan_blocks(const Model& model, const Made& made, const std::vector<FileTensor>& files,
                   const std::string& where);
  std::vector<weights::OutTensor> parts_of(const Plan& plan, int64_t n, int64_t k, std::function<Bytes()> make) const;
  std::vector<weights::OutTensor> coded(const Plan& plan, const FileTensor& file, const MergedWeights& merged) const;
  static Bytes block_bytes(const BlocksPlan& plan, int64_t expert);
  void plan_merged(const Model& model, const std::vector<FileTensor>& files, const std::string& where);

  std::map<std::string, Plan> plans_;               // by FileTensor::name
  std::map<std::string, BlocksPlan> blocks_;        // the same
  std::vector<std::pair<Plan, FileTensor>> heads_;  // and the embedding that each reads
  std::shared_ptr<Last> last_ = std::make_shared<Last>();
  std::optional<quant::CodedFolder> folder_;
  Value section_ = Value::map();
  std::string format_;
};

}  // namespace easydel::models
