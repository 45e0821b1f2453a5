#include "easydel/elarge/load_options.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/elarge/adapter_config.h"
#include "easydel/elarge/session_core.h"
#include "easydel/hub/resolve.h"
#include "easydel/mesh/world.h"
#include "easydel/models/adapter.h"
#include "easydel/models/load_types.h"
#include "easydel/models/registry_config.h"
#include "easydel/nn/quantized_training.h"
#include "easydel/text/chat_fingerprint.h"
#include "easydel/train/chat_agreement.h"

namespace easydel::elarge {
namespace {

DeviceSetting device_of(const Config& config) {
  if (config.loader.device != DeviceSetting::automatic) return config.loader.device;
  const std::optional<Backend> backend =
      config.platform.backend ? config.platform.backend : config.base_config.values.backend;
  if (!backend) return DeviceSetting::automatic;
  return *backend == Backend::cpu ? DeviceSetting::cpu : DeviceSetting::gpu;
}

}  // namespace

nn::CheckpointPolicy checkpointing_of(const Config& config) {
  const BaseValues& values = config.base_config.values;
  return nn::checkpoint_policy(values.gradient_checkpointing, values.gradient_checkpointing_targets);
}

models::FoundModel found_model(const ModelConfig& model, const std::string& section) {
  const std::string where = section + ".name_or_path";
  return models::find_base(hub::resolve_model(model.name_or_path, where, model.revision), where);
}

std::filesystem::path folder_of(const ModelConfig& model, const std::string& section) {
  return found_model(model, section).model;
}

namespace {

// The adapters of the run's own model, or of a side model that is named by its adapter's folder.
std::vector<models::AdapterOptions> adapters_of(const Config& config, const ModelConfig& model,
                                                const std::string& section, bool training) {
  if (section == "model") {
    const auto adapter = adapter_of(config, training);
    if (!adapter) return {};
    return {{.config = adapter->config,
             .folder = adapter->folder,
             .where = adapter->where,
             .seed = uint64_t(config.trainer.common.shuffle_seed_train),
             .added = adapter->added}};
  }
  const std::filesystem::path folder = found_model(model, section).adapter;
  if (folder.empty()) return {};
  return {models::adapter_in(folder)};
}

// Quantization-aware training: null if it is not asked for.
std::shared_ptr<nn::WeightPolicy> quantized_training(const train::TrainerConfig& trainer, DTypeSetting saved,
                                                     const models::LoadOptions& options) {
  if (!trainer.quantization_mode) return nullptr;
  const std::string where = "trainer.quantization_mode";
  if (!options.adapters.empty()) refuse_codes_beside_adapter();
  const mesh::Mesh& mesh = options.team->mesh();
  if (mesh.ranks() > mesh.size("dp") * mesh.size("fsdp"))
    refuse(where, str("is not built yet on the mesh ", mesh.describe()),
           "share the ranks out along dp and fsdp (sharding.axis_dims)");
  const quant::FormatConfig format{
      .method = config::Codec<train::QuantizationMode>::write(*trainer.quantization_mode).scalar,
      .group_size = trainer.quantization_group_size,
      .bits = trainer.quantization_bits};
  return std::make_shared<nn::QuantizedTraining>(
      quant::format_of(format, where), models::scalar_type_of(saved, at::ScalarType::Undefined, "loader.param_dtype"),
      where, trainer.quantization_pattern);
}

}  // namespace

models::LoadOptions load_options(const Config& config, const ModelConfig& model, const std::string& section,
                                 bool training, std::shared_ptr<const collective::Team> team) {
  models::LoadOptions options;
  options.adapters = adapters_of(config, model, section, training);
  options.task = models::head_of(model.task);
  // If the method trains another task than language modeling, the model gets that task's head.
  const models::Task trained = config.trainer.facts().task;
  if (training && trained != models::Task::causal_lm) {
    if (options.task.value_or(trained) != trained)
      refuse(section + ".task", config.trainer.common.trainer_type + " trains another task", "leave it out");
    options.task = trained;
    options.labels = config.trainer.facts().labels;
    // An adapter does not reach a class head, which starts from random values: it is trained in full, as PEFT does.
    for (models::AdapterOptions& adapter : options.adapters)
      if (auto& full = adapter.config.modules_to_save;
          trained != models::Task::base && adapter.folder.empty() && std::ranges::count(full, "score") == 0)
        full.push_back("score");
  }
  options.dtype = config.loader.dtype;
  options.param_dtype = config.loader.param_dtype;
  options.device = device_of(config);
  options.key_prefix = "loader.";
  options.training = training;
  if (const auto& frozen = config.trainer.common.frozen_parameters; training && frozen)
    options.trainable = nn::Trainable::except(*frozen);
  if (const auto& layers = config.trainer.common.frozen_layers; training && !layers.empty())
    options.trainable = options.trainable.without_layers(layers);
  options.attention = config.base_config.values.attn_mechanism;
  options.moe_method = config.base_config.values.moe_method;
  options.overrides = config.base_config.values.config_json;
  options.team = std::move(team);
  options.partition_rules = config.sharding.rules();
  options.quantization = quantization_of(config.quantization);
  if (training && section == "model")
    options.weight_policy = quantized_training(config.trainer.common, config.loader.param_dtype, options);
  options.cache_format = config.quantization.cache_format(config.base_config.values.kvdtype);
  return options;
}

mesh::Mesh mesh_of(const Config& config, int64_t ranks) {
  const mesh::World world = mesh::read_world();
  return config.sharding.mesh(ranks, world.size == ranks ? world.size / world.local_size : 1);
}

void warn_of_changed_chat(const ModelConfig& model, const text::Tokenizer& tokenizer) {
  const models::FoundModel found = found_model(model, "model");
  const std::filesystem::path& trained = found.adapter.empty() ? found.model : found.adapter;
  const auto before = text::load_chat_fingerprint(trained);
  if (!before) return;
  const std::string changed = text::chat_changes(*before, train::chat_fingerprint(found.model, tokenizer));
  if (!changed.empty())
    log::warning(
        trained.string(), ": ", changed,
        " changed since the model was trained, so it may not answer as it learned to; restore the files of the "
        "trained folder, or train with the new ones");
}

}  // namespace easydel::elarge
