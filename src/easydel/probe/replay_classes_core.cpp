// Recorded runs of the trainers with a class head: RewardTrainer, PRMTrainer.
#include "easydel/base/error.h"
#include "easydel/probe/replay_methods.h"
#include "easydel/probe/replay_rows.h"
#include "easydel/train/prm_config.h"
#include "easydel/train/reward_config.h"

namespace easydel::probe {
namespace {

void read_reward(Arguments& arguments, const Value&, ReplayCase& to) {
  auto out = std::make_shared<train::RewardConfig>();
  out->center_rewards_coefficient.reset();
  if (const Value* value = arguments.take("center_rewards_coefficient"))
    out->center_rewards_coefficient = value->as_double();
  out->disable_dropout = arguments.flag("disable_dropout");
  arguments.ignore({"eos_token", "label_smoothing_factor"});
  to.trainer.use<train::RewardConfig>(out);
}

void read_prm(Arguments& arguments, const Value&, ReplayCase& to) {
  auto out = std::make_shared<train::PrmConfig>();
  out->disable_dropout = arguments.flag("disable_dropout");
  arguments.ignore({"step_separator", "train_on_last_step_only", "max_prompt_length", "max_completion_length",
                    "label_smoothing_factor"});
  to.trainer.use<train::PrmConfig>(out);
}

std::vector<data::Example> reward_rows(const Value& line, const std::string& where) {
  const RecordedRows ids = required_rows(line, "input_ids", where);
  const RecordedRows mask = required_rows(line, "attention_mask", where);
  const auto margins = floats_of(line, "margin");
  const size_t half = ids.size() / 2;
  std::vector<data::Example> out(half);
  for (size_t i = 0; i < 2 * half; ++i)
    append(out[i % half], example_of(ids[i], &mask[i], std::vector<int64_t>(ids[i].size(), data::no_label)));
  for (size_t i = 0; i < std::min(half, margins.size()); ++i)
    out[i].set({"margin", data::Column::Per::example, std::vector<float>{margins[i]}});
  return out;
}

// Labels are classes of the tokens themselves.
std::vector<data::Example> prm_rows(const Value& line, const std::string& where) {
  const RecordedRows ids = required_rows(line, "input_ids", where);
  const RecordedRows mask = required_rows(line, "attention_mask", where);
  const RecordedRows labels = required_rows(line, "labels", where);
  std::vector<data::Example> out(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    for (size_t k = 0; k < ids[i].size(); ++k) {
      if (!mask[i][k]) continue;
      out[i].tokens.push_back(int32_t(ids[i][k]));
      out[i].labels.push_back(int32_t(labels[i][k]));
    }
    out[i].lengths = {int32_t(out[i].tokens.size())};
  }
  return out;
}

}  // namespace

std::vector<ReplayMethod> replayed_classes() {
  return {{"PRMTrainer", read_prm, prm_rows}, {"RewardTrainer", read_reward, reward_rows}};
}

}  // namespace easydel::probe
