// What a session would refuse, found before there is one, and the data of a run without its model's weights.
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/elarge/load_options.h"
#include "easydel/elarge/preload_checks_core.h"
#include "easydel/elarge/session_core.h"
#include "easydel/models/model.h"

namespace easydel::elarge {

void check_session(const Config& config, int64_t ranks, Purpose purpose) {
  const bool trains = purpose.trains;
  const mesh::Mesh mesh = mesh_of(config, ranks);
  const train::MethodFacts& facts = config.trainer.facts();
  const auto check_model = [&](const ModelConfig& model, const std::string& section, bool training) {
    return models::check_model(folder_of(model, section),
                               load_options(config, model, section, training, collective::Team::alone()), mesh);
  };
  const auto check_task = [&](const ModelConfig& model, const std::string& section, models::Task task) {
    // A method that takes labels learns what the model's head is for.
    if (!trains || task == facts.task || facts.rows.has(data::RowKind::labelled)) return;
    refuse(section + ".task", str("'", model.name_or_path, "' is for ", models::name_of(task)),
           facts.task == models::Task::causal_lm
               ? "training is built for causal language models; set it to causal-language-model for a new head"
               : str("trainer_type ", config.trainer.common.trainer_type, " trains a model for ",
                     models::name_of(facts.task)));
  };
  const models::CheckedModel model = check_model(config.model, "model", trains);
  check_task(config.model, "model", model.task);
  const auto check_vocabulary = [&](const ModelConfig& side, const std::string& section, int64_t vocabulary) {
    if (trains) check_same_vocabulary(config.model, model.vocabulary, side, section, vocabulary);
  };
  std::vector<models::CheckedModel> sides;  // that the method uses
  if (config.reference_model) {
    const models::CheckedModel side = check_model(*config.reference_model, "reference_model", false);
    check_task(*config.reference_model, "reference_model", side.task);
    if (facts.reference != train::SideModelUse::none) {
      check_vocabulary(*config.reference_model, "reference_model", side.vocabulary);
      sides.push_back(side);
    }
  }
  std::optional<models::CheckedModel> teacher;
  if (config.teacher_model && trains && facts.teacher != train::SideModelUse::none) {
    sides.push_back(teacher.emplace(check_model(*config.teacher_model, "teacher_model", false)));
    check_vocabulary(*config.teacher_model, "teacher_model", teacher->vocabulary);
  }
  if (trains) check_fit(config, model, teacher ? &*teacher : nullptr);
  if (config.reward_model && trains && facts.reward != train::SideModelUse::none)
    sides.push_back(check_model(*config.reward_model, "reward_model", false));
  const auto rows = purpose.reads_data ? check_data(config, model.vocabulary, trains) : train::FirstRows();
  if (trains) check_memory(config, model, sides, folder_of(config.model, "model"), rows, mesh);
}

data::RunData run_data(const Config& config) {
  if (config.mixture.informs.empty() && config.mixture.evaluation.empty())
    refuse("mixture.informs", "the run has no data", "give at least one inform");
  const log::Quiet quiet;  // weights that are not there do not matter
  const models::CheckedModel model = models::check_model(
      folder_of(config.model, "model"), load_options(config, config.model, "model", true, collective::Team::alone()),
      ShardingConfig().mesh(1, 1));
  return prepared_data(config, model);
}

}  // namespace easydel::elarge
