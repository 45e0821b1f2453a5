// The interface of a model to the layers above, and functions that load, initialize and save one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/collective/team.h"
#include "easydel/mesh/rules.h"
#include "easydel/models/family_configs.h"
#include "easydel/models/load_config.h"
#include "easydel/models/lora_config.h"
#include "easydel/nn/cache.h"
#include "easydel/nn/cache_config.h"
#include "easydel/nn/class_head.h"
#include "easydel/nn/head.h"
#include "easydel/nn/memory.h"
#include "easydel/nn/parameter.h"
#include "easydel/nn/pass.h"
#include "easydel/nn/quantization.h"
#include "easydel/nn/trainable.h"
#include "easydel/ops/moe.h"

namespace easydel::nn {
class AdapterSlots;  // nn/adapter_slots.h
}

namespace easydel::models {

class Adapter;      // models/adapter.h
struct WholeModel;  // models/parts.h

struct Inputs {
  Tensor tokens;            // int64 [tokens]: one flat list; the pass's stream says where sequences begin
  Tensor token_types = {};  // int64 [tokens], for families with token types; undefined: all 0
};

struct Outputs {
  Tensor hidden;  // [tokens, hidden_size], of the requested tokens alone, after the final norm: what enters the head
  std::map<std::string, Tensor> extras;  // what a loss may need with its gradient, by name and layer: "router_logits.3"
};

// The auxiliary losses of a mixture of experts (models/router_loss.h).
struct RouterLoss {
  int64_t top_k = 1;
  double coefficient = 0.0;  // of the load balancing loss (router_aux_loss_coef)
  double z_coefficient =
      0.0;               // of the routers' z-loss: router_z_loss_coef, which no family of transformers' decoders has
  bool asked = false;    // output_router_logits: the model's own loss includes it
  double logit_z = 0.0;  // of the mean squared log-normalizer of all tokens' logits, in every loss: z_loss_coefficient
};

class Model {
 public:
  virtual ~Model() = default;
  // With gradients if they are enabled; the model must outlive the backward.
  virtual Outputs forward(const Inputs& inputs, nn::Pass& pass) const = 0;
  // The language head. UserError if the model is for another task.
  virtual const nn::Head& head() const = 0;
  // The classification head, or a bare stack's pooler; null: the model has none.
  virtual const nn::ClassHead* class_head() const { return nullptr; }

  virtual bool causal() const { return true; }  // false: attention is bidirectional
  virtual std::optional<RouterLoss> router_loss() const {
    return std::nullopt;
  }  // nothing: transformers has none for it

  virtual int64_t layers() const = 0;
  virtual int64_t vocabulary() const = 0;
  virtual int64_t max_positions() const = 0;  // 0: no limit
  // A cached sequence that grows past this length is recomputed from its first token, because longer sequences have
  // other rotary frequencies. 0: never.
  virtual int64_t restart_length() const { return 0; }
  // Of sequences longer than this, a token's rotary frequencies depend on the length at which it was first due. 0:
  // never.
  virtual int64_t turning_length() const { return 0; }
  // What each layer keeps of a sequence.
  virtual std::vector<nn::CacheLayer> cache_layers() const = 0;
  // Keys and values for `slots` sequences of at most `length` tokens, in the format of the load options.
  virtual std::unique_ptr<nn::Cache> make_cache(int64_t slots, int64_t length) const = 0;
  // Forward + backward floating point operations per token at context length `length`, for TFLOP/s.
  virtual double training_flops_per_token(int64_t length) const = 0;

  nn::ParameterTable& parameters() { return *parameters_; }
  const nn::ParameterTable& parameters() const { return *parameters_; }
  const Value& config() const { return config_; }  // config.json as it was read; of a text part, its own
  const std::filesystem::path& folder() const { return folder_; }  // it was loaded from; empty: none
  std::string model_type() const;
  Task task() const;  // by config.json's architectures
  at::ScalarType compute_type() const { return compute_; }
  at::ScalarType file_type() const { return file_type_; }  // of the loaded weights: the dtype that is saved by default
  at::Device device() const { return device_; }
  const collective::Team& team() const { return *team_; }
  // The backend of passes that do not name one.
  ops::AttentionMechanism attention() const { return attention_; }
  const WholeModel* whole() const {
    return whole_.get();
  }  // what it is the text part of; null: it is all of its folder
  // In the order of LoadOptions::adapters.
  const std::vector<std::shared_ptr<Adapter>>& adapters() const { return adapters_; }
  // Its weights that sequences may read with adapters of their own (models::Adapters); null: it has adapters of all
  // sequences.
  const std::shared_ptr<nn::AdapterSlots>& adapter_slots() const { return adapter_slots_; }

 protected:
  friend struct Loader;
  friend struct ModelCopy;
  std::unique_ptr<nn::ParameterTable> parameters_ = std::make_unique<nn::ParameterTable>();
  Value config_;
  std::filesystem::path folder_;
  at::ScalarType compute_ = at::kFloat, file_type_ = at::kFloat;
  at::Device device_ = at::kCPU;
  ops::AttentionMechanism attention_ = ops::AttentionMechanism::automatic;
  nn::CacheSetting cache_format_;
  std::shared_ptr<const WholeModel> whole_;
  std::vector<std::shared_ptr<Adapter>> adapters_;
  std::shared_ptr<nn::AdapterSlots> adapter_slots_;
  ops::MoeMethod moe_method_ = ops::MoeMethod::fused_moe;
  std::shared_ptr<const collective::Team> team_ = collective::Team::alone();
};

struct LoadOptions {
  // Of the computation; automatic: the file's, but fp32 for fp16 on a CPU and for dtypes without products.
  DTypeSetting dtype = DTypeSetting::automatic;
  DTypeSetting param_dtype = DTypeSetting::automatic;  // of storage; automatic: the computation's
  DeviceSetting device = DeviceSetting::automatic;
  std::string key_prefix = {};  // of dtype, param_dtype and device in errors: "loader." of a configuration
  // Shards of trainable parameters are fp32 masters that require gradients. What is not trained has no master, and
  // weights of products stay in the file's dtype.
  bool training = false;
  bool keep_file_types = false;          // shards have the dtypes of the file, as far as it holds fp32 or bf16
  nn::Trainable trainable;               // with `training`: which parameters are trainable, if there are no adapters
  std::vector<AdapterOptions> adapters;  // over the weights; with `training`, what they add is trained alone
  uint64_t seed = 0;                     // of initial values if the folder has no weights
  ops::AttentionMechanism attention = ops::AttentionMechanism::automatic;
  ops::MoeMethod moe_method = ops::MoeMethod::fused_moe;
  nn::CacheSetting cache_format;
  // The model's task. If config.json is for another one, the head starts from random values and the file's tensors of
  // its head are ignored. Nothing: the task of config.json.
  std::optional<Task> task;
  // Classes of the head. A new head gets as many; UserError if the file's head has another number. Nothing: the file's.
  std::optional<int64_t> labels = {};
  Value overrides;                                                           // config.json keys to put over the file's
  std::shared_ptr<const collective::Team> team = collective::Team::alone();  // the ranks that share the model
  std::vector<mesh::Rule> partition_rules;                                   // tried before the layers' own
  std::optional<nn::Quantization> quantization =
      {};  // of linear layers, as they are loaded: on one rank, on a CPU, not to train
  // Asked after the quantization how products read the weights. Null: nothing else has a say.
  std::shared_ptr<nn::WeightPolicy> weight_policy = {};
};

// A parameter of a model that was not loaded.
struct ParameterName {
  std::string path;
  int unit = -1;  // its layer (nn::Entry::unit)
  bool trainable = false;
};

// What check_model found out.
struct CheckedModel {
  Task task = Task::causal_lm;
  int64_t vocabulary = 0;
  int64_t elements = 0, trainable = 0;  // of all parameters; of those that options.training trains
  int64_t coded = 0, coded_bytes = 0;   // elements that stay in the checkpoint's codes, and what these take
  int64_t layers = 0;
  std::vector<ParameterName> parameters = {};
};

// Loads a folder with config.json and weights; without weights it starts from random values (transformers'
// distributions, our generator: f(seed, path, element)). For a model that also sees or hears, its text part. Throws
// UserError: no config, unknown model type or architecture, missing, unexpected or misshapen tensors (all of them are
// listed), an unsupported value in config.json.
std::shared_ptr<Model> load_model(const std::filesystem::path& folder, const LoadOptions& options);
// Whether weights of the folder are codes that only adapters can be trained over. UserError as load_model.
bool has_codes(const std::filesystem::path& folder);
// Throws all of load_model's UserErrors, without allocating or reading weights. `mesh`: that of the ranks that will
// share the model and are not connected yet (options.team is this rank alone).
CheckedModel check_model(const std::filesystem::path& folder, const LoadOptions& options, const mesh::Mesh& mesh);
// The same weights again as an independent, frozen model (a reference model). Of a model with adapters its base, which
// shares the weights that do not change.
std::shared_ptr<Model> copy_model(const Model& model);
// The same weights on another mesh of the same ranks, as a frozen model, with the adapters merged; where a weight is
// cut as before, both share it. Nothing is read from the disk. Collective. UserError: the adapters cannot be merged, or
// the weights are codes.
std::shared_ptr<Model> lay_out_anew(const Model& model, std::shared_ptr<const collective::Team> team,
                                    const std::vector<mesh::Rule>& partition_rules);

// How adapters are merged into weights in codes.
struct MergeOptions {
  // The merged weights become codes of the format that they had; else they are values, and the model is a plain one.
  bool to_codes = false;
  // The weights as they were before codes were made of them: an adapter is merged into these instead of the values of
  // the codes that it was trained over. Null: into the latter. The same family and sizes; has values.
  std::shared_ptr<const Model> original = {};
};

constexpr uint64_t default_shard_bytes = 5ull << 30;

// Writes config.json, generation_config.json and the weights under Hugging Face's names and in `dtype` (automatic: as
// loaded), so that transformers loads the folder; for a text part, the whole model that it came from. Collective: every
// rank calls it, rank 0 writes. The caller writes the tokenizer's files. With adapters the merged weights, and a line
// of the log says how far they moved.
void save_model(const Model& model, const std::filesystem::path& folder, DTypeSetting dtype = DTypeSetting::automatic,
                uint64_t max_shard_bytes = default_shard_bytes, const MergeOptions& merge = {});

}  // namespace easydel::models
