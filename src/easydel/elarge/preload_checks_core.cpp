#include "easydel/elarge/preload_checks_core.h"

#include <algorithm>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/free_memory.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/elarge/adapter_config.h"
#include "easydel/hub/resolve.h"
#include "easydel/models/parts_config.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/chat_agreement.h"
#include "easydel/train/freezing.h"
#include "easydel/train/rewards.h"
#include "easydel/weights/folder.h"

namespace easydel::elarge {
namespace {

// The folder or file of a model's tokenizer. Only files that describe a model are fetched.
std::filesystem::path tokenizer_of(const ModelConfig& model, const std::string& section) {
  if (model.tokenizer)
    return hub::resolve_model(*model.tokenizer, section + ".tokenizer", "main", hub::ModelFiles::description);
  const std::string where = section + ".name_or_path";
  const models::FoundModel found =
      models::find_base(hub::resolve_model(model.name_or_path, where, model.revision, hub::ModelFiles::description),
                        where, hub::ModelFiles::description);
  return !found.adapter.empty() && text::Tokenizer::exists(found.adapter) ? found.adapter : found.model;
}

// Functions of plug-ins, schemas and hosts of rewards; models are loaded later.
void check_reward_rules(const train::TrainerSection& trainer) {
  if (!trainer.rollouts()) return;
  std::vector<train::RewardEntry> entries = trainer.rollouts()->rewards;
  std::erase_if(entries, [](const train::RewardEntry& one) { return one.type == train::RewardType::model; });
  train::build_rewards(entries);
}

}  // namespace

void check_fit(const Config& config, const models::CheckedModel& model, const models::CheckedModel* teacher) {
  train::check_freezing(model.parameters, config.trainer.common);
  const auto sizes_of = [](const models::CheckedModel& of, const ModelConfig& named, const std::string& section) {
    const weights::ConfigFile file = weights::read_config(folder_of(named, section));
    const Value text = models::part_config(file.document, file.where, models::PartRole::text);
    return train::ModelSizes{of.layers, train::layer_shapes(text).hidden};
  };
  std::optional<train::ModelSizes> of_teacher;
  if (teacher) of_teacher = sizes_of(*teacher, *config.teacher_model, "teacher_model");
  config.trainer.check_sizes(sizes_of(model, config.model, "model"), of_teacher ? &*of_teacher : nullptr);
}

train::FirstRows check_data(const Config& config, int64_t vocabulary, bool trains) {
  if (trains) check_reward_rules(config.trainer);
  if (config.mixture.informs.empty() && config.mixture.evaluation.empty()) return {};
  std::optional<log::Quiet> quiet;
  if (trains) quiet.emplace();
  auto tokenizer = text::Tokenizer::load(tokenizer_of(config.model, "model"), read_chat_template(config.model, "model"),
                                         added_tokens(config, trains));
  if (config.model.tokenizer && tokenizer->id_limit() > vocabulary)
    refuse(config.mixture.tokenization.tokenizer ? "mixture.tokenization.tokenizer" : "model.tokenizer",
           str("'", *config.model.tokenizer, "' has ids up to ", tokenizer->id_limit() - 1,
               "; the model's vocabulary has ", vocabulary, " tokens"),
           "give a tokenizer of the model's vocabulary, or of a smaller one");
  return train::check_data(config.trainer, config.mixture, std::move(tokenizer), vocabulary);
}

data::RunData prepared_data(const Config& config, const models::CheckedModel& model) {
  auto tokenizer = text::Tokenizer::load(tokenizer_of(config.model, "model"), read_chat_template(config.model, "model"),
                                         added_tokens(config, true));
  std::vector<int32_t> ends;
  const train::MethodFacts& facts = config.trainer.facts();
  if (model.task == models::Task::causal_lm && facts.task == models::Task::causal_lm && !facts.samples)
    ends = train::end_tokens(folder_of(config.model, "model"), *tokenizer);
  return train::run_data(config.trainer, config.mixture, std::move(tokenizer), model.vocabulary, model.task, ends);
}

void check_memory(const Config& config, const models::CheckedModel& model,
                  const std::vector<models::CheckedModel>& sides, const std::filesystem::path& folder,
                  const train::FirstRows& rows, const mesh::Mesh& mesh) {
  const std::optional<FreeMemory> free = free_memory();
  if (!free) return;
  const int64_t ranks = mesh.ranks(), data_ranks = mesh.size(mesh::batch_axes());
  const train::TrainerConfig& trainer = config.trainer.common;
  const weights::ConfigFile file = weights::read_config(folder);
  const Value text = models::part_config(file.document, file.where, models::PartRole::text);
  const bool is_fp32 =
      config.loader.dtype == DTypeSetting::fp32 ||
      (config.loader.dtype == DTypeSetting::automatic && weights::dtype_of_weights(text) == weights::DType::f32);
  // Weights that are trained are fp32, with a copy in the computation's dtype; others stay in their file's, or are
  // codes.
  const bool codes = config.quantization.weight_format().has_value();
  const auto frozen_bytes = [&](const models::CheckedModel& of, int64_t elements) {
    return (elements - of.coded) * (codes ? 1 : 4) / 2 + of.coded_bytes;
  };
  const int64_t weights = model.trainable * (is_fp32 ? 4 : 6) + frozen_bytes(model, model.elements - model.trainable);
  int64_t side_bytes = 0;
  for (const models::CheckedModel& side : sides) side_bytes += frozen_bytes(side, side.elements);
  // A model with adapters is its own reference: its base.
  if (config.trainer.has_reference() && !config.reference_model && !adapter_of(config, true))
    side_bytes += model.elements * (is_fp32 ? 4 : 2);
  const auto state_bytes = [&](train::OptimizerName name) {  // of each element, at least
    using enum train::OptimizerName;
    const bool short_moment = trainer.tx_mu_dtype == train::MomentDType::bf16;
    switch (name) {
      case adamw:
        return short_moment ? 6 : 8;
      case adamw_8bit:
      case ademamix_8bit:
        return 2;
      case lion_8bit:
        return 1;
      case adafactor:
        return 0;
      default:
        return short_moment ? 2 : 4;
    }
  };
  const bool recomputes =
      config.base_config.values.gradient_checkpointing == nn::GradientCheckpointing::nothing_saveable;
  train::MemoryPlan plan;
  plan.weights = weights / ranks;
  plan.gradients = model.trainable * 4 / ranks;
  plan.optimizer = model.trainable * state_bytes(trainer.optimizer) / ranks;
  plan.side_models = side_bytes / ranks;
  plan.micro_batches = trainer.gradient_accumulation_steps;
  if (rows.tokens > 0 && !config.trainer.facts().samples) {
    // There may be no more rows than those that were read, and then micro-batches are smaller.
    const int64_t length = std::max<int64_t>(1, rows.packed_length > 0 ? std::min(rows.packed_length, rows.tokens)
                                                                       : rows.tokens / std::max<int64_t>(1, rows.rows));
    const int64_t examples =
        std::clamp<int64_t>(trainer.total_batch_size / plan.micro_batches / data_ranks, 1, rows.tokens / length);
    plan.tokens = examples * length;
    plan.labelled = plan.tokens * rows.labelled / std::max<int64_t>(rows.tokens, 1);
    plan.longest_pairs = length * length;
    plan.pairs = examples * plan.longest_pairs;
    plan.activations = train::counted_activations(
        train::layer_shapes(text),
        {.checkpointing = nn::checkpoint_policy(config.base_config.values.gradient_checkpointing,
                                                config.base_config.values.gradient_checkpointing_targets),
         .element_bytes = is_fp32 ? 4 : 2,
         .keeps_scores = config.base_config.values.attn_mechanism == AttentionMechanism::vanilla,
         .vocabulary = model.vocabulary,
         .rows_in_chunk = trainer.loss().chunk_token_size.value_or(0)});
    log::debug("counted from shapes, activations need ", train::bytes_text(plan.activation_bytes()));
    // It is only counted, from the first rows; when the model is there, it is measured.
    train::ActivationCost& cost = plan.activations;
    for (double* one : {&cost.per_token, &cost.per_pair, &cost.per_longest_pair}) *one *= 0.85;
  }
  if (plan.total() <= free->bytes) return;
  std::vector<std::string> keys =
      what_would_fit(plan, free->bytes,
                     {.accumulation = train::micro_batches_of(trainer.total_batch_size, data_ranks),
                      .longest = rows.packed_length > 0 ? rows.packed_length : rows.longest,
                      .recomputes = recomputes,
                      .is_fp32 = is_fp32});
  if (frozen_bytes(model, model.elements) / ranks + plan.side_models + plan.activation_bytes() <= free->bytes)
    keys.emplace_back("the section lora, or trainer.frozen_parameters: what is frozen has no gradients or state");
  for (int64_t more = 2 * ranks; more <= 1024; more *= 2)
    if (plan.total() * ranks / more <= free->bytes) {
      keys.push_back(str("sharding over ", more, " ranks of as much memory each"));
      break;
    }
  refuse("memory",
         str("training ", config.model.name_or_path, " (", counted(model.elements, "parameter"), ") needs ",
             plan.text(), "; ", free->limit, " has ", train::bytes_text(free->bytes), " free"),
         keys.empty() ? std::string("train a smaller model") : "this would fit: " + join(keys, "; or "));
}

void check_same_vocabulary(const ModelConfig& model, int64_t model_vocabulary, const ModelConfig& side,
                           const std::string& section, int64_t side_vocabulary, const std::string& key) {
  const std::filesystem::path own = tokenizer_of(model, "model"), other = tokenizer_of(side, section);
  const std::string where = section + key,
                    remedy = "both models score the same ids; give one that was made from the same model";
  if (own == other) return;
  if (!text::Tokenizer::exists(own) || !text::Tokenizer::exists(other)) {
    if (side_vocabulary != model_vocabulary)
      refuse(where, str("has a vocabulary of ", side_vocabulary, " tokens, and the model of ", model_vocabulary),
             remedy);
    return;
  }
  const auto ours = text::Tokenizer::load(own), theirs = text::Tokenizer::load(other);
  const text::TokenId ids = ours->id_limit();
  for (text::TokenId id = 0; id < std::min(ids, theirs->id_limit()); ++id)
    if (const std::string a = ours->token_of(id), b = theirs->token_of(id); a != b)
      refuse(where, str("has another vocabulary than the model: token ", id, " is '", b, "' there and '", a, "' here"),
             remedy);
  // Embeddings may be padded to different sizes, but each token needs a row.
  if (side_vocabulary < std::min<int64_t>(ids, model_vocabulary))
    refuse(where, str("has embeddings of ", side_vocabulary, " tokens; the tokenizer has ", ids), remedy);
}

}  // namespace easydel::elarge
