// A method's own state in a checkpoint, in addition to the model's and the optimizer's: named tensors and a document.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/nn/parameter.h"
#include "easydel/weights/safetensors.h"

namespace easydel::train {

struct MethodState {
  struct Item {
    std::string name;  // of no optimizer's state and not "master.": "reference.model.norm.weight"
    Tensor tensor;     // fp32, bf16, fp16, int64 or uint8
    // If `tensor` is this rank's shard, how it is cut; null: it is whole and equal on all ranks.
    const nn::Entry* entry = nullptr;
  };
  std::vector<Item> tensors;
  Value document;  // null: none
};

// A method's state as read from a checkpoint.
class SavedState {
 public:
  SavedState(const weights::SafetensorsFile& file, const Value& document) : file_(file), document_(document) {}
  const Value& document() const { return document_; }  // null: none was saved
  bool has(const std::string& name) const { return file_.has(name); }
  Tensor tensor(const std::string& name) const;  // whole, on the CPU; UserError if it is missing
  // Into `to`: the whole tensor, or the part that this rank has of the entry. UserError if it is missing or has another
  // shape.
  void copy_into(const Tensor& to, const std::string& name, const nn::Entry* entry = nullptr) const;

 private:
  const weights::SafetensorsFile& file_;
  const Value& document_;
};

}  // namespace easydel::train
