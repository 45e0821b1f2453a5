// A folder of weights some of which are codes: the tensors of a weight in codes appear as one tensor of its values,
// with the name and shape that it has in a plain checkpoint.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/quant/coded_weight.h"
#include "easydel/quant/file_config.h"
#include "easydel/weights/folder.h"

namespace easydel::quant {

class CodedFolder {
 public:
  // Codes are known by their tensors; `config` (of config.json) says what these do not. Reads headers and small
  // tensors. UserError: tensors of codes that do not fit together or that contradict `config`, codes of two formats for
  // one weight, codes that `config` promises and that are not there.
  CodedFolder(weights::Folder folder, const FileConfig& config, weights::DType dtype);

  std::vector<std::string> names() const;                                 // sorted; of values
  weights::TensorView info(std::string_view name) const;                  // shape and dtype of the values
  weights::TensorView at(std::string_view name) const;                    // of a weight that is not in codes
  std::shared_ptr<const CodedWeight> codes(std::string_view name) const;  // null: it is not in codes
  const std::map<std::string, std::shared_ptr<const CodedWeight>, std::less<>>& all_codes() const { return codes_; }
  // The first weight in codes that does not stand for values; null: there is none.
  const CodedWeight* only_codes() const;
  const weights::Folder& folder() const { return folder_; }

 private:
  weights::Folder folder_;
  std::map<std::string, std::shared_ptr<const CodedWeight>, std::less<>> codes_;
  std::vector<std::string> names_;
};

// The folder of a model, with the configuration beside its weights. `config`: of the part that is read.
CodedFolder open_coded(const std::filesystem::path& model, const Value& config, const Where& where);

}  // namespace easydel::quant
