// A LoRA adapter of a model: which layers it adapts, its parameters, its files as PEFT has them, and merging.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "easydel/models/lora_config.h"
#include "easydel/nn/adapted_weight.h"
#include "easydel/nn/weight_policy.h"

namespace easydel::weights {
class SafetensorsFile;
}

namespace easydel::models {

class Model;
struct LoadOptions;
struct MergeOptions;

class Adapter final : public nn::WeightPolicy {
 public:
  // UserError: the folder has no readable adapter_model.safetensors.
  explicit Adapter(AdapterOptions options);

  // What a linear layer, an output layer or an embedding is for the adapter. Any other parameter is `in_full` or none.
  struct Layer {
    std::string module = {};  // the layer's path: "model.layers.0.self_attn.q_proj"
    nn::Entry* base = nullptr;
    bool shared = false;     // an output layer that reads the embedding `base`
    bool embedding = false;  // a row of A is looked up
    nn::LowRank parts = {};  // empty: the layer is trained in full
    nn::Parameter own = {};  // of a layer that is trained in full: its weight
    // Of a layer some rows of which are trained: their indices, and their values [rows, in].
    std::vector<int64_t> rows = {};
    nn::Parameter row_values = {};
    nn::ExpertFactors stack = {};  // of stacked experts
    bool by_parameter = false;     // target_parameters named its weight
    bool has_low_rank() const { return bool(parts.a); }
  };

  std::shared_ptr<nn::Weight> linear(const nn::Scope& scope, nn::Entry& entry, std::shared_ptr<nn::Weight> weight,
                                     bool shared) override;
  std::shared_ptr<nn::Weight> embedding(const nn::Scope& scope, nn::Entry& entry,
                                        std::shared_ptr<nn::Weight> weight) override;

  std::shared_ptr<nn::Weight> router(const nn::Scope& scope, nn::Entry& entry,
                                     std::shared_ptr<nn::Weight> weight) override;
  std::shared_ptr<nn::WeightStack> experts(const nn::Scope& scope, nn::Entry& entry,
                                           std::shared_ptr<nn::WeightStack> weight) override;

  // While the model is built. Whether the base's parameter is trained and saved with the adapter: a bias, or a part of
  // a layer that is trained in full and is no product.
  bool learns(const nn::Entry& entry) const;
  bool owns(const nn::Entry& entry) const { return own_.contains(entry.path); }
  // Checks that the adapter's file fits an entry that it owns. Reads headers only.
  void match(const nn::Entry& entry);
  // Creates the shard of an entry that it owns, fp32: from the file, or by `initial`.
  void fill(nn::Entry& entry, const std::function<Tensor()>& initial);
  // The same of a parameter of the base, for which the file may have values. `match_base` returns the file's name of
  // them; empty: none.
  std::string match_base(const nn::Entry& entry);
  void fill_base(nn::Entry& entry);
  // After fill_base: takes the part of a weight that the adapter starts with (adapter_start.h) out of the base.
  // UserError if the weight is in codes.
  void start_base(nn::Entry& entry);
  // After the last layer. UserError: no layer has an adapter, or what the file has does not fit the model.
  void finish() const;

  const AdapterOptions& options() const { return options_; }
  const std::vector<Layer>& layers() const { return layers_; }
  // The names in the adapter's file of base parameters that it holds other values of.
  const std::map<const nn::Entry*, std::string>& held_of_base() const { return held_of_base_; }
  // The value of the base's parameter without the adapter, where that is not entry.shard; else undefined.
  Tensor original(const nn::Entry& entry) const;

  using ValueOf = std::function<Tensor(const nn::Entry&)>;  // the whole tensor of an entry
  // fp32: the base's `whole` value with the adapter in it, where `value` gives the adapter's parameters. `whole` itself
  // if the adapter does not change the layer. `shared`: of an output layer that reads the embedding.
  Tensor merged(const nn::Entry& base, const Tensor& whole, bool shared, const ValueOf& value) const;
  bool changes(const nn::Entry& base, bool shared) const { return find(base, shared) != nullptr; }

  // Puts the adapter into the base's values, rounded once to their dtype, and back: what was there before is kept. A
  // weight in codes becomes values of the computation's dtype, or codes of its format again. An output layer that reads
  // the embedding stays as it is. UserError if a weight cannot hold the adapter.
  enum class MergeInto : uint8_t { values, codes };
  void merge(MergeInto into = MergeInto::values);
  void unmerge();

 private:
  const Layer* find(const nn::Entry& base, bool shared) const;
  void merge_codes(nn::Entry& base, MergeInto into, const ValueOf& value);
  bool targets(const std::string& module, bool output) const;
  // Whether the linear layer `module` with this weight gets A and B.
  bool adapts(const nn::Entry& entry, const std::string& module, bool shared) const;
  bool in_full(const std::string& path) const;  // of a parameter
  nn::Parameter add(const nn::Scope& scope, const std::string& leaf, const std::string& file_name,
                    std::vector<int64_t> shape, nn::Role role, nn::ParameterOptions options);
  std::shared_ptr<nn::Weight> adapt(const nn::Scope& scope, nn::Entry& entry, std::shared_ptr<nn::Weight> weight,
                                    Layer layer);
  // The same if target_parameters names the layer's weight; else `weight` itself.
  std::shared_ptr<nn::Weight> adapt_parameter(const nn::Scope& scope, nn::Entry& entry,
                                              std::shared_ptr<nn::Weight> weight, Layer layer);
  std::shared_ptr<nn::Weight> replace(const nn::Scope& scope, nn::Entry& entry, std::shared_ptr<nn::Weight> weight,
                                      Layer layer);
  // The indices of the rows of an embedding or output layer that are trained. `first`: no embedding before it has any.
  std::vector<int64_t> trained_rows(const Layer& layer, bool first) const;
  // Trains the rows of trainable_token_indices and of new tokens; `weight` itself if the layer has none.
  std::shared_ptr<nn::Weight> with_rows(const nn::Scope& scope, nn::Entry& entry, std::shared_ptr<nn::Weight> weight,
                                        Layer layer);
  void check_names_of_parts() const;
  void start_lengths(nn::Entry& entry, const nn::Weight& weight, Layer& layer) const;

  AdapterOptions options_;
  std::shared_ptr<const weights::SafetensorsFile> file_;  // null: initial values
  std::shared_ptr<nn::AdapterSwitch> state_ = std::make_shared<nn::AdapterSwitch>();
  // Of output layers that read the embedding: they are never merged.
  std::shared_ptr<nn::AdapterSwitch> shared_state_ = std::make_shared<nn::AdapterSwitch>();
  std::vector<Layer> layers_;
  std::set<std::string, std::less<>> own_;  // paths of its entries
  std::set<std::string> seen_;              // layers that could have an adapter
  std::set<std::string> adapted_;           // modules
  std::set<std::string> parameters_;        // what target_parameters could name, by PEFT's names
  std::set<std::string> unused_;            // tensors of the file
  std::vector<std::string> missing_, misshapen_;
  std::map<const nn::Entry*, std::string> held_of_base_;
  std::map<const nn::Entry*, Tensor> originals_, unmerged_;
  std::map<nn::Entry*, std::vector<ops::Matrix>> unmerged_codes_;
  std::map<std::string, Tensor, std::less<>> first_values_;  // of A and B, by path, until they are created
};

// The vocabulary of the model `config` (config.json): vocab_size; 0: not said.
int64_t read_vocabulary(const Value& config);
// The vocabulary that the model `config` needs with its adapters: more than it has if one brings new tokens, trains
// rows of such or was saved with a larger embedding; 0: no adapter says. UserError: rows would be without values.
int64_t needed_vocabulary(const std::vector<AdapterOptions>& adapters, const Value& config, const Where& where);

// Writes adapter_config.json, adapter_model.safetensors and README.md, as PEFT does. `base`: the model's name. The
// caller writes the tokenizer. Collective; rank 0 writes.
void save_adapter(const Model& model, const Adapter& adapter, const std::filesystem::path& folder,
                  const std::string& base);
// Reads the values that save_adapter wrote into an adapter of the same layers. UserError if they do not fit.
void load_adapter(Model& model, const Adapter& adapter, const std::filesystem::path& folder);

// How save_model merges the model's adapters. `load`: how the model was loaded. UserError: merge_base asks for
// original weights that are not known, or merge_to_codes for codes that cannot be made.
struct MergeKeys {
  MergeBase base = MergeBase::trained;
  bool to_codes = false;
  // How errors name the two.
  std::string base_key = "lora.merge_base", codes_key = "lora.merge_to_codes";
};
MergeOptions merge_options(const Model& model, const LoadOptions& load, const MergeKeys& keys);

// UserError `where`: save_model could not write the model with its adapters merged.
void refuse_unmergeable(const Model& model, const std::string& where);

}  // namespace easydel::models
