// The settings of LoRA adapters: the section `lora`, and adapter_config.json as PEFT 0.21.2 writes it. A face: no
// torch.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/config/fields.h"
#include "easydel/hub/resolve.h"

namespace easydel::models {

enum class LoraBias : uint8_t { none, all, lora_only };
constexpr auto choices(LoraBias) {
  using config::Choice;
  return std::array{Choice{LoraBias::none, "none"}, Choice{LoraBias::all, "all"},
                    Choice{LoraBias::lora_only, "lora_only"}};
}

// Initial values of A and B. Of an embedding, whose A is looked up, the two change places.
enum class LoraInit : uint8_t {
  usual,     // A as torch's linear layers start, B zero
  gaussian,  // A normal with standard deviation 1 / r, B zero
  random,    // A and B as torch's linear layers start: an adapter that changes the model from the beginning
  pissa,     // B A is the weight's part of the largest singular values, and the base the rest
  olora,     // the same with the first rows and columns of a QR decomposition
  loftq      // the base is rounded to codes, and B A is the largest part of the error
};
constexpr auto choices(LoraInit) {
  using config::Choice;
  return std::array{Choice{LoraInit::usual, "default"}.also("true"),
                    Choice{LoraInit::gaussian, "gaussian"},
                    Choice{LoraInit::random, "random"}.also("false"),
                    Choice{LoraInit::pissa, "pissa"},
                    Choice{LoraInit::olora, "olora"},
                    Choice{LoraInit::loftq, "loftq"}};
}

struct LoraStart {
  LoraInit kind = LoraInit::usual;
  int64_t iterations = 0;  // "pissa_niter_16": of a randomized decomposition; 0: the exact one
  // Whether the base's weights become others (models/adapter_start.h).
  bool changes_base() const { return kind >= LoraInit::pissa; }
};

}  // namespace easydel::models

namespace easydel::config {

template <>
struct Codec<models::LoraStart> {
  static std::string expects() { return Codec<models::LoraInit>::expects() + ", pissa_niter_N"; }
  static Value schema() {
    return detail::schema_any_of({Codec<models::LoraInit>::schema(), detail::schema_type("string")});
  }
  static bool read(const Value& value, models::LoraStart& out, const At& at);
  static Value write(const models::LoraStart& start);
};

}  // namespace easydel::config

namespace easydel::models {

// What an adapter is merged into if it was trained over codes of a plain model.
enum class MergeBase : uint8_t { trained, original };
constexpr auto choices(MergeBase) {
  using config::Choice;
  return std::array{Choice{MergeBase::trained, "trained"}, Choice{MergeBase::original, "original"}};
}

struct LoftqConfig {
  int64_t loftq_bits = 4, loftq_iter = 1;

  static constexpr auto doc = "How init_lora_weights: loftq rounds the base's weights.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::loftq_bits>("Bits of the codes: 4 (nf4) or 8 (int8)."),
        field<&C::loftq_iter>("Rounds of making codes and fitting the adapter to their error.", at_least(1)),
    };
  }
  void settle(config::Keys& keys);
};

// A regular expression that matches the whole path of a layer, or names: a path, or its end after a dot. The word
// all-linear stands for all linear layers but the output layer.
using LayerNames = std::variant<std::string, std::vector<std::string>>;
inline constexpr std::string_view all_linear = "all-linear";

struct LoraConfig {
  int64_t r = 16;
  double alpha = 32;
  double dropout = 0;
  LayerNames target_modules = std::string(all_linear);
  std::optional<LayerNames> exclude_modules;
  config::Many<int64_t> layers_to_transform;
  config::Many<std::string> layers_pattern;
  Value rank_pattern, alpha_pattern;
  bool use_rslora = false, use_dora = false, lora_bias = false;
  LoraBias bias = LoraBias::none;
  LoraStart init_lora_weights;
  std::optional<LoftqConfig> loftq_config;
  std::optional<double> lora_plus_ratio;
  config::Many<std::string> modules_to_save;
  std::optional<std::string> adapter;
  bool fan_in_fan_out = false;
  std::optional<std::vector<std::string>> target_parameters;
  Value trainable_token_indices;
  std::vector<std::string> added_tokens;
  MergeBase merge_base = MergeBase::trained;
  bool merge_to_codes = false;
  std::set<std::string> given;  // keys that the document gave

  static constexpr auto doc = "Low-rank adapters (LoRA). The presence of the section turns them on.";
  static constexpr auto given_keys = &LoraConfig::given;
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::r>("Rank of the adapters. A higher rank can learn more and costs more memory.", at_least(1),
                     alias("rank")),
        field<&C::alpha>("Adapters are scaled by alpha / r.", above(0), alias("lora_alpha")),
        field<&C::dropout>("Dropout on the input of the adapters.", between(0, 1), alias("lora_dropout")),
        field<&C::target_modules>("Layers that get adapters: a list of names (q_proj), a regular expression that "
                                  "matches a layer's whole path, or all-linear, which leaves out the output layer. "
                                  "Embeddings and lm_head are named."),
        field<&C::exclude_modules>("Layers that get none although target_modules finds them."),
        field<&C::layers_to_transform>("Indices of the layers that get adapters; empty: all."),
        field<&C::layers_pattern>("With layers_to_transform: the name before the index (layers); empty: any."),
        field<&C::rank_pattern>("Other ranks for some layers: {regular expression of the end of a path: rank}."),
        field<&C::alpha_pattern>("Other values of alpha for some layers, as rank_pattern."),
        field<&C::use_rslora>("Scale the adapters by alpha / sqrt(r) instead, which suits high ranks.",
                              alias("rslora")),
        field<&C::use_dora>("DoRA: a trained length for each row of the weight (arXiv:2402.09353). Learns more at low "
                            "ranks and is slower.",
                            alias("dora")),
        field<&C::bias>("Biases that are trained, too: none, all, or those of adapted layers."),
        field<&C::lora_bias>("B has a bias, which is trained."),
        field<&C::init_lora_weights>(
            "How adapters start: default (the model is unchanged), gaussian, or random. pissa, "
            "pissa_niter_N and olora move a part of each adapted weight into its adapter, "
            "which learns faster; loftq makes up for the error of 4-bit weights. They change "
            "the base's weights in memory, which takes as much memory as these.",
            alias("init")),
        field<&C::loftq_config>("Settings of init_lora_weights: loftq."),
        field<&C::lora_plus_ratio>("LoRA+: B learns at this multiple of the learning rate (arXiv:2402.12354).",
                                   above(0), alias("loraplus_lr_ratio")),
        field<&C::modules_to_save>("Layers that are trained in full and saved with the adapter."),
        field<&C::adapter>("Folder of an adapter to start from. Its adapter_config.json gives the other keys.",
                           alias("adapter_name_or_path")),
        field<&C::fan_in_fan_out>("Weights are stored transposed.", no_effect("the model says how it stores weights")),
        field<&C::target_parameters>("Weights of stacked experts, routers or linear layers that get adapters, by the "
                                     "ends of their paths: mlp.experts.gate_up_proj, mlp.experts.down_proj, "
                                     "gate.weight. Without target_modules, nothing else gets them."),
        field<&C::trainable_token_indices>("Tokens whose rows of the embedding are trained and saved with the adapter, "
                                           "such as new special tokens: a list of ids, or {layer: ids} with "
                                           "embed_tokens and lm_head. An output layer that shares the embedding's "
                                           "weight reads these rows, too."),
        field<&C::added_tokens>("New tokens: the tokenizer and the embedding grow by them, and their rows, which start "
                                "as the mean of the others, are trained and saved with the adapter."),
        field<&C::merge_base>("Over quantization.model: what a merged model is made of, the dequantized weights that "
                              "the adapter was trained over (trained), or the plain ones before (original). The "
                              "second has fewer rounding errors, and is not the model that was trained; the log says "
                              "how far the two are apart."),
        field<&C::merge_to_codes>("Over codes: save a merged model in codes of the same format instead of plain "
                                  "weights. It is as small as the base, and the merged weights are rounded to codes "
                                  "once more; the log says by how much."),
    };
  }
  void settle(config::Keys& keys);

  // The rank and the scale of the layer at `path`.
  int64_t rank_of(std::string_view path) const;
  double scale_of(std::string_view path) const;
  // The rows of the layer at `path` that are trained. `input`: it is the model's embedding, which a plain list means.
  std::vector<int64_t> token_rows(std::string_view path, bool input) const;
  std::vector<std::string> token_layers() const;  // the names in trainable_token_indices
};

// The content of adapter_config.json.
struct AdapterConfig {
  LoraConfig lora;
  std::string base;  // name or path of the model; empty: not said
};

constexpr std::string_view adapter_config_name = "adapter_config.json",
                           adapter_weights_name = "adapter_model.safetensors";

bool is_adapter(const std::filesystem::path& folder);
// UserError "adapter_config.json: ...": there is none, another peft_type, a field that is unknown or not built and is
// neither null nor its default, a wrong value. Files of earlier and later versions of PEFT are read, too.
AdapterConfig read_adapter_config(const std::filesystem::path& folder);
// All fields, in PEFT's order. `task`: PEFT's word for it ("CAUSAL_LM"); empty: null.
Value written_adapter_config(const LoraConfig& lora, const std::string& base, const std::string& task);

struct AdapterOptions {
  LoraConfig config;
  std::string name = "default";
  std::filesystem::path folder = {};  // of its values; empty: it starts from initial values
  double weight = 1;                  // multiplies what it adds
  std::string where = "lora";         // how errors name it
  uint64_t seed = 0;                  // of its initial values
  std::vector<int64_t> added = {};    // ids of new tokens, whose rows are trained in the embedding and the output layer
};

// A weighted sum of adapters, as PEFT's add_weighted_adapter makes it.
struct AdapterSum {
  enum class Kind : uint8_t {
    linear,  // of all A and of all B, each times the root of weight and scale: adapters of one rank
    cat      // of the products: the ranks add up
  };
  struct Share {
    std::string name;
    double weight = 1;
  };
};

// The options of an adapter that a folder holds. UserError as read_adapter_config.
AdapterOptions adapter_in(const std::filesystem::path& folder);

// A model's folder and the adapter over it.
struct FoundModel {
  std::filesystem::path model;
  std::filesystem::path adapter;  // empty: none
};
// `folder` itself, or if it is an adapter, or a checkpoint of training one, the adapter and its base's folder: the path
// or hub name that its configuration gives, taken from here or from the adapter's folder. UserError if it is not found.
FoundModel find_base(const std::filesystem::path& folder, const std::string& where,
                     hub::ModelFiles files = hub::ModelFiles::all);

}  // namespace easydel::models
