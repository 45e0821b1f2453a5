// What is saved of a model's weights: values, with the adapters in them, computed only while they are written.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "easydel/models/file_tensors.h"
#include "easydel/models/model.h"

namespace easydel::models {

// How far merging moves weights, as root mean squares over all merged weights, relative to these.
class MergeFigures {
 public:
  // Of one weight: `base` is what the adapter was trained over, `exact` the merged values, `saved` what is written; all
  // of one shape.
  void add(const std::string& layer, const Tensor& base, const Tensor& exact, const Tensor& saved);
  // The weight that is merged instead of `base`.
  void add_original(const Tensor& original, const Tensor& base);
  // `form`: what the weights were rounded to ("bf16"). Empty: nothing was merged.
  std::string told(const std::string& form) const;

 private:
  struct Squares {
    double weights = 0, change = 0, rounding = 0;
  };
  Squares all_;
  double original_ = 0, trained_ = 0;  // squares: of the difference from the original weights, of the trained ones
  double most_ = 0;                    // largest share of a layer that is lost by rounding
  std::string most_layer_;
  int64_t weights_ = 0;
};

// On the rank that writes: the whole tensor of each entry that has values, and the codes of those that have none.
struct WholeWeights {
  std::map<const nn::Entry*, Tensor> values;
  std::map<const nn::Entry*, std::vector<ops::Matrix>> codes;
};

class MergedWeights {
 public:
  MergedWeights(const Model& model, WholeWeights weights, const MergeOptions& options);

  // The entry's merged values; fp32 if an adapter changes it. `shared`: of an output layer that reads the embedding.
  Tensor of(const nn::Entry& entry, bool shared = false) const;
  // The values of a file's tensor in `type`, and their rounding in the figures.
  Tensor of(const FileTensor& file, at::ScalarType type) const;
  // The same in fp32 for a tensor that becomes codes, without the figures.
  Tensor exact(const FileTensor& file) const;
  // `saved`: the values that were written of a file's tensor, as exact() gave them.
  void note(const FileTensor& file, const Tensor& exact, const Tensor& saved) const;
  bool changes(const nn::Entry& entry) const;
  std::string told(const std::string& form) const { return state_->figures.told(form); }

 private:
  Tensor base_of(const nn::Entry& entry) const;  // what the adapter was trained over
  Tensor part(const FilePart& part, bool merged) const;
  Tensor assembled(const FileTensor& file, at::ScalarType type, bool merged) const;

  struct State {
    const nn::Entry* last = nullptr;  // the tensors of one stack of experts are written one after the other
    Tensor merged, base;
    MergeFigures figures;
  };
  const Model* model_;
  WholeWeights weights_;
  MergeOptions options_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace easydel::models
