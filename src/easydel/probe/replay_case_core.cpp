#include "easydel/base/files.h"
#include "easydel/probe/replay_case.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"
#include "easydel/probe/replay_arguments.h"
#include "easydel/probe/replay_methods.h"
#include "easydel/probe/replay_schedule.h"

namespace easydel::probe {
namespace {

namespace fs = std::filesystem;

train::Schedule schedule_of(Arguments& arguments, int64_t steps) {
  train::Schedule out;
  out.steps = steps;
  out.rate = arguments.number("learning_rate", 5e-5);
  const double warmup = arguments.number("warmup_steps", 0), share = arguments.number("warmup_ratio", 0);
  // A number below 1 is a fraction of the steps, rounded up.
  out.warmup = int64_t(warmup >= 1 ? warmup : std::ceil(double(steps) * std::max(warmup, share)));
  const Value none = Value::map();
  const Value* given = arguments.take("lr_scheduler_kwargs");
  return read_schedule(arguments.word("lr_scheduler_type", "linear"), given ? *given : none, out, arguments.where());
}

// The optimizer that transformers' Trainer builds for the word: the betas are passed to optimizers that have any.
train::OptimizerRules read_rules(Arguments& arguments, const std::string& optimizer) {
  const double b1 = arguments.number("adam_beta1", 0.9), b2 = arguments.number("adam_beta2", 0.999);
  const double eps = arguments.number("adam_epsilon", 1e-8);
  if (optimizer == "adamw_torch" || optimizer == "adamw_torch_fused" || optimizer == "adamw_hf")
    return {train::adamw({b1, b2, eps})};
  if (optimizer == "adafactor") return {train::adafactor({})};
  if (optimizer == "adagrad") return {train::adagrad({})};
  if (optimizer == "lion_32bit") return {train::lion(b1, b2)};
  if (optimizer == "rmsprop") return {train::rmsprop({})};
  if (optimizer == "sgd") return {train::sgd({})};
  arguments.not_built("optim", optimizer);
}

void read_common(Arguments& arguments, train::TrainerConfig& common, train::Transformation& tx,
                 int64_t recorded_steps) {
  common.gradient_accumulation_steps = arguments.integer("gradient_accumulation_steps", 1);
  common.total_batch_size = arguments.integer("per_device_train_batch_size", 1) * common.gradient_accumulation_steps;
  common.max_training_steps = arguments.integer("max_steps", recorded_steps);
  if (*common.max_training_steps > recorded_steps)
    refuse(arguments.where(),
           str("asks for ", *common.max_training_steps, " steps; ", recorded_steps, " are recorded"));
  tx.schedule = schedule_of(arguments, *common.max_training_steps);
  const std::string optimizer = arguments.word("optim", "adamw_torch_fused");
  if (const Value* more = arguments.take("optim_args")) arguments.not_built("optim_args", to_yaml_flow(*more));
  tx.optimizer = {.rules = read_rules(arguments, optimizer), .weight_decay = arguments.number("weight_decay", 0)};
  if (const double most = arguments.number("max_grad_norm", 1.0); most > 0) tx.clip_grad = most;
  // Arguments that shaped the recorded batches, matter only on several devices, or trade memory for time.
  arguments.ignore({"seed", "data_seed", "average_tokens_across_devices", "activation_offloading",
                    "gradient_checkpointing", "gradient_checkpointing_kwargs", "max_length", "truncation_mode",
                    "pad_to_multiple_of", "pad_token", "padding_free", "shuffle_dataset", "dataset_num_proc",
                    "dataloader_drop_last", "num_train_epochs"});
}

// A mixture of experts uses its router's loss unless the coefficient is 0; null means the coefficient of config.json.
Value router_overrides(Arguments& arguments) {
  Value out = Value::map();
  const Value* coefficient = arguments.take("router_aux_loss_coef");
  const double given = arguments.number("router_aux_loss_coef", 1);
  out.set("output_router_logits", Value::boolean(given != 0));
  if (coefficient) out.set("router_aux_loss_coef", Value::number(given));
  return out;
}

fs::path find_folder(const std::string& name, const fs::path& case_file, const fs::path& root) {
  for (const fs::path& base : {files::absolute(case_file).parent_path().parent_path(), root})
    if (files::exists(base / name)) return base / name;
  refuse(case_file.string(), "the model folder '" + name + "' is not there",
         str("looked in ", files::absolute(case_file).parent_path().parent_path().string(), " and in ", root.string()));
}

}  // namespace

// Some of the weights, in the words 'start weights with model.layers.{i}.mlp.down_proj.weight multiplied by 0.9 ...'.
std::optional<ReplayCase::Scaled> scaled_weights(const std::string& words) {
  static const RegularExpression scaled("start weights with (\\S+) multiplied by ([0-9.]+)");
  const auto found = scaled.first_match(words);
  if (!found) return std::nullopt;
  std::string paths = RegularExpression("\\.").replace(*(*found)[1], "\\.");
  if (const size_t at = paths.find("{i}"); at != std::string::npos) paths.replace(at, 3, "\\d+");
  return ReplayCase::Scaled{std::move(paths), std::stod(*(*found)[2])};
}

bool read_reference(const Value& document, ReplayCase& out, const std::string& where) {
  const Value* words = document.find("reference_model");
  const std::string text = words && !words->is_null() ? words->scalar : "none";
  if (text.starts_with("none")) return false;
  if (const auto scaled = scaled_weights(text))
    out.reference = *scaled;
  else if (!text.starts_with("frozen copy"))
    refuse(where, "the reference model '" + text + "' is not known");
  return true;
}

ReplayCase read_replay_case(const fs::path& case_file, const fs::path& root) {
  const std::string where = case_file.string();
  const Value document = parse_file(case_file);
  const auto text = [&](const char* name) {
    const Value* value = document.find(name);
    if (!value || value->scalar.empty()) refuse(where, str("the case has no '", name, "'"));
    return value->scalar;
  };
  const ReplayMethod& method = replay_method(text("trainer"), where);
  const Value* config = document.find("config");
  if (!config) refuse(where, "the case has no 'config'");

  ReplayCase out;
  out.model = find_folder(text("model"), case_file, root);
  if (document.find("start_adapter")) out.adapter = case_file.parent_path() / text("start_adapter");
  out.source = read_recorded_batches(case_file.parent_path() / text("batches"), method);
  for (const auto& [name, values] :
       {std::pair{"score_head_weight", &out.head_weight}, std::pair{"score_head_bias", &out.head_bias}})
    if (const Value* const rows = document.find(name))
      for (const Value& row : rows->items)
        for (const Value& value : row.is_list() ? row.items : std::vector<Value>{row})
          values->push_back(float(value.as_double().value_or(0)));
  Arguments arguments(*config, where);
  train::TrainerConfig& common = out.trainer.common;
  read_common(arguments, common, out.tx, out.source->steps_in_epoch());
  out.overrides = router_overrides(arguments);
  method.read(arguments, document, out);
  arguments.finish();
  common.save_directory = "replay";
  common.do_last_save = common.resume_if_possible = common.report_metrics = false;
  common.log_steps = 1;
  return out;
}

}  // namespace easydel::probe
