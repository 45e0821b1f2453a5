#include "easydel/base/files.h"
#include "easydel/probe/replay_case.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"
#include "easydel/config/codec.h"
#include "easydel/probe/replay_arguments.h"
#include "easydel/probe/replay_schedule.h"
#include "easydel/train/distillation_config.h"
#include "easydel/train/dpo_config.h"
#include "easydel/train/gkd_config.h"
#include "easydel/train/sft_config.h"

namespace easydel::probe {
namespace {

namespace fs = std::filesystem;

// The enum value whose YAML word this is.
template <class E>
E choice(Arguments& arguments, const std::string& name, const Value& value) {
  config::Problems problems;
  E out{};
  const std::string path = name, hint;
  if (!config::Codec<E>::read(value, out, {path, problems, hint})) arguments.not_built(name, to_yaml_flow(value));
  return out;
}

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

// Arguments that say which of a row's tokens are learned, as the recorded batches show.
void ignore_rows(Arguments& arguments) {
  arguments.ignore({"dataset_text_field", "dataset_kwargs", "eos_token", "packing", "packing_strategy", "eval_packing",
                    "completion_only_loss", "assistant_only_loss"});
}

std::shared_ptr<train::SftConfig> read_sft(Arguments& arguments) {
  auto out = std::make_shared<train::SftConfig>();
  out->label_smoothing = arguments.number("label_smoothing_factor", 0);
  const std::string loss = arguments.word("loss_type", "nll");
  if (loss == "dft") {
    out->loss_type = train::TokenLoss::dft;
    out->label_smoothing = 0;  // TRL's smoothing applies only to the plain loss
  } else if (loss != "nll" && loss != "chunked_nll") {
    arguments.not_built("loss_type", loss);
  }
  ignore_rows(arguments);
  return out;
}

// Of trainers whose loss has none.
void refuse_smoothing(Arguments& arguments) {
  if (const double factor = arguments.number("label_smoothing_factor", 0); factor != 0)
    arguments.not_built("label_smoothing_factor", str(factor));
}

std::shared_ptr<train::DpoConfig> read_dpo(Arguments& arguments) {
  auto out = std::make_shared<train::DpoConfig>();
  out->beta = arguments.number("beta", 0.1);
  out->label_smoothing = arguments.number("label_smoothing", 0);
  out->conservative = false;
  if (const Value* loss = arguments.take("loss_type")) {
    out->loss_type.clear();
    for (const Value& one : loss->is_list() ? loss->items : std::vector<Value>{*loss})
      out->loss_type.push_back(choice<train::DpoLoss>(arguments, "loss_type", one));
  }
  if (const Value* weights = arguments.take("loss_weights"))
    for (const Value& weight : weights->items) out->loss_weights.push_back(weight.as_double().value_or(1));
  if (const Value* divergence = arguments.take("f_divergence_type"))
    out->f_divergence_type = choice<train::Divergence>(arguments, "f_divergence_type", *divergence);
  out->f_alpha_divergence_coef = arguments.number("f_alpha_divergence_coef", 0.5);
  out->discopop_tau = arguments.number("discopop_tau", 0.05);
  if (const Value* alpha = arguments.take("ld_alpha")) out->ld_alpha = alpha->as_double();
  out->sync_ref_model = arguments.flag("sync_ref_model");
  out->ref_model_mixup_alpha = arguments.number("ref_model_mixup_alpha", 0.6);
  out->ref_model_sync_steps = arguments.integer("ref_model_sync_steps", 512);
  out->disable_dropout = arguments.flag("disable_dropout");
  refuse_smoothing(arguments);
  arguments.ignore({"precompute_ref_log_probs", "precompute_ref_batch_size"});
  return out;
}

fs::path find_folder(const std::string& name, const fs::path& case_file, const fs::path& root) {
  for (const fs::path& base : {files::absolute(case_file).parent_path().parent_path(), root})
    if (files::exists(base / name)) return base / name;
  refuse(case_file.string(), "the model folder '" + name + "' is not there",
         str("looked in ", files::absolute(case_file).parent_path().parent_path().string(), " and in ", root.string()));
}

// Some of the weights, in the words 'start weights with model.layers.{i}.mlp.down_proj.weight multiplied by 0.9 ...'.
std::optional<ReplayCase::Scaled> scaled_weights(const std::string& words) {
  static const RegularExpression scaled("start weights with (\\S+) multiplied by ([0-9.]+)");
  const auto found = scaled.first_match(words);
  if (!found) return std::nullopt;
  std::string paths = RegularExpression("\\.").replace(*(*found)[1], "\\.");
  if (const size_t at = paths.find("{i}"); at != std::string::npos) paths.replace(at, 3, "\\d+");
  return ReplayCase::Scaled{std::move(paths), std::stod(*(*found)[2])};
}

void read_reference(const Value& document, ReplayCase& out, train::DpoConfig& dpo, const std::string& where) {
  const Value* words = document.find("reference_model");
  const std::string text = words && !words->is_null() ? words->scalar : "none";
  if (text.starts_with("none"))
    dpo.reference_free = true;
  else if (const auto scaled = scaled_weights(text))
    out.reference = *scaled;
  else if (!text.starts_with("frozen copy"))
    refuse(where, "the reference model '" + text + "' is not known");
}

// The notes say what the teacher is.
void read_teacher(const Value& document, ReplayCase& out, const std::string& where) {
  const Value* notes = document.find("notes");
  const std::string text = notes ? notes->scalar : "";
  const size_t teacher = text.find("teacher: ");
  const auto scaled = teacher == std::string::npos ? std::nullopt : scaled_weights(text.substr(teacher));
  if (!scaled) refuse(where, "its notes do not say what the teacher is: '" + text + "'");
  out.teacher = *scaled;
}

std::shared_ptr<train::GkdConfig> read_gkd(Arguments& arguments) {
  auto out = std::make_shared<train::GkdConfig>();
  out->own.beta = arguments.number("beta", 0.5);
  out->own.disable_dropout = arguments.flag("disable_dropout");
  out->own.lmbda = 0;  // the batches are what was learned, whoever wrote it
  if (arguments.word("loss_type", "nll") != "nll") arguments.not_built("loss_type", arguments.word("loss_type", ""));
  arguments.ignore({"temperature", "lmbda", "seq_kd", "max_new_tokens"});
  ignore_rows(arguments);
  refuse_smoothing(arguments);
  return out;
}

std::shared_ptr<train::DistillationConfig> read_distillation(Arguments& arguments) {
  auto out = std::make_shared<train::DistillationConfig>();
  out->beta = arguments.number("beta", 1.0);
  out->temperature = arguments.number("temperature", 1.0);
  out->disable_dropout = arguments.flag("disable_dropout");
  refuse_smoothing(arguments);
  // How the recorded completions were sampled.
  arguments.ignore({"teacher_model_revision", "max_completion_length", "top_p", "top_k", "min_p", "generation_kwargs",
                    "chat_template_kwargs", "repetition_penalty", "max_tool_calling_iterations"});
  return out;
}

}  // namespace

ReplayCase read_replay_case(const fs::path& case_file, const fs::path& root) {
  const std::string where = case_file.string();
  const Value document = parse_file(case_file);
  const auto text = [&](const char* name) {
    const Value* value = document.find(name);
    if (!value || value->scalar.empty()) refuse(where, str("the case has no '", name, "'"));
    return value->scalar;
  };
  const std::string trainer = text("trainer");
  const bool preference = trainer == "DPOTrainer", distills = trainer == "DistillationTrainer";
  if (!preference && !distills && trainer != "SFTTrainer" && trainer != "GKDTrainer")
    refuse(where, "trainer " + trainer + " is not built yet",
           "built: SFTTrainer, DPOTrainer, DistillationTrainer, GKDTrainer");
  const Value* config = document.find("config");
  if (!config) refuse(where, "the case has no 'config'");
  if (preference && config->find("reference_free"))
    refuse(where, "DPO as TRL 0.24 has it is not built yet", "built: as TRL 1.x has it");

  ReplayCase out;
  out.model = find_folder(text("model"), case_file, root);
  if (document.find("start_adapter")) out.adapter = case_file.parent_path() / text("start_adapter");
  out.source = read_recorded_batches(case_file.parent_path() / text("batches"), preference ? RecordedRows::pairs
                                                                                : distills ? RecordedRows::completions
                                                                                           : RecordedRows::language);
  Arguments arguments(*config, where);
  train::TrainerConfig& common = out.trainer.common;
  read_common(arguments, common, out.tx, out.source->steps_in_epoch());
  out.overrides = router_overrides(arguments);
  if (preference) {
    auto dpo = read_dpo(arguments);
    // The reference of an adapter is the model without it.
    if (out.adapter.empty() || document.find("reference_model")) read_reference(document, out, *dpo, where);
    out.trainer.use<train::DpoConfig>(dpo);
  } else if (distills) {
    read_teacher(document, out, where);
    out.trainer.use<train::DistillationConfig>(read_distillation(arguments));
  } else if (trainer == "GKDTrainer") {
    read_teacher(document, out, where);
    out.trainer.use<train::GkdConfig>(read_gkd(arguments));
  } else {
    out.trainer.use<train::SftConfig>(read_sft(arguments));
  }
  arguments.finish();
  common.save_directory = "replay";
  common.do_last_save = common.resume_if_possible = common.report_metrics = false;
  common.log_steps = 1;
  return out;
}

}  // namespace easydel::probe
