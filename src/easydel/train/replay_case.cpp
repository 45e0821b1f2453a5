#include "easydel/train/replay_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <set>

#include "easydel/base/error.h"
#include "easydel/config/codec.h"
#include "easydel/train/dpo_config.h"
#include "easydel/train/sft_config.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;

// TRL's arguments, each taken once; what is left over at the end must not be able to change a number.
class Arguments {
 public:
  Arguments(const Value& config, std::string where) : config_(config), where_(std::move(where)) {}

  const Value* take(const std::string& name) {
    taken_.insert(name);
    const Value* value = config_.find(name);
    return value && !value->is_null() ? value : nullptr;
  }
  double number(const std::string& name, double otherwise) {
    const Value* value = take(name);
    if (!value) return otherwise;
    if (!value->as_double()) refuse(where_, str("config.", name, " is no number: ", to_yaml_flow(*value)));
    return *value->as_double();
  }
  int64_t integer(const std::string& name, int64_t otherwise) {
    return static_cast<int64_t>(number(name, static_cast<double>(otherwise)));
  }
  bool flag(const std::string& name) {
    const Value* value = take(name);
    return value && value->as_bool().value_or(false);
  }
  std::string word(const std::string& name, const std::string& otherwise) {
    const Value* value = take(name);
    return value ? value->scalar : otherwise;
  }
  void ignore(std::initializer_list<const char*> names) { taken_.insert(names.begin(), names.end()); }
  [[noreturn]] void not_built(const std::string& name, const std::string& value) const {
    refuse(where_, str("config.", name, " = ", value, " is not built yet"));
  }
  // Whatever nobody asked for may only be absent, null or false.
  void finish() const {
    for (const auto& [name, value] : config_.entries)
      if (!taken_.contains(name) && !value.is_null() && value.as_bool() != false) not_built(name, to_yaml_flow(value));
  }
  const std::string& where() const { return where_; }

 private:
  const Value& config_;
  std::string where_;
  std::set<std::string> taken_;
};

// A word as the enum whose YAML word it is.
template <class E>
E choice(Arguments& arguments, const std::string& name, const Value& value) {
  config::Problems problems;
  E out{};
  const std::string path = name, hint;
  if (!config::Codec<E>::read(value, out, {path, problems, hint})) arguments.not_built(name, to_yaml_flow(value));
  return out;
}

Schedule::Curve curve_of(Arguments& arguments, const std::string& name, const Value* value, Schedule::Curve otherwise) {
  if (!value) return otherwise;
  if (value->scalar == "linear") return Schedule::Curve::linear;
  if (value->scalar == "cosine") return Schedule::Curve::cosine;
  if (value->scalar == "1-sqrt") return Schedule::Curve::one_minus_sqrt;
  arguments.not_built("lr_scheduler_kwargs." + name, value->scalar);
}

Schedule read_schedule(Arguments& arguments, int64_t steps) {
  Schedule out;
  out.steps = steps;
  out.rate = arguments.number("learning_rate", 5e-5);
  const double warmup = arguments.number("warmup_steps", 0), share = arguments.number("warmup_ratio", 0);
  // A number below 1 is a share of the steps, rounded up.
  out.warmup =
      static_cast<int64_t>(warmup >= 1 ? warmup : std::ceil(static_cast<double>(steps) * std::max(warmup, share)));
  const std::string type = arguments.word("lr_scheduler_type", "linear");
  const Value none = Value::map();
  const Value* given = arguments.take("lr_scheduler_kwargs");
  Arguments more(given ? *given : none, arguments.where() + ": lr_scheduler_kwargs");
  using Shape = Schedule::Shape;
  if (type == "constant" || type == "constant_with_warmup") {
    out.shape = Shape::constant;
    if (type == "constant") out.warmup = 0;
  } else if (type == "linear") {
    out.shape = Shape::linear;
  } else if (type == "cosine" || type == "cosine_with_min_lr") {
    out.shape = Shape::cosine;
    out.cycles = more.number("num_cycles", 0.5);
    out.rate_end = more.number("min_lr", more.number("min_lr_rate", 0) * out.rate);
  } else if (type == "cosine_with_restarts") {
    out.shape = Shape::cosine_with_restarts;
    out.cycles = more.number("num_cycles", 1);
  } else if (type == "polynomial") {
    out.shape = Shape::polynomial;
    out.power = more.number("power", 1);
    out.rate_end = more.number("lr_end", 1e-7);
  } else if (type == "inverse_sqrt") {
    out.shape = Shape::inverse_sqrt;
    out.timescale = more.integer("timescale", 0);
  } else if (type == "warmup_stable_decay") {
    out.shape = Shape::warmup_stable_decay;
    out.decay = more.integer("num_decay_steps", 0);
    out.stable = more.integer("num_stable_steps", -1);
    out.rate_end = more.number("min_lr_ratio", 0) * out.rate;
    out.cycles = more.number("num_cycles", 0.5);
    out.warmup_curve = curve_of(more, "warmup_type", more.take("warmup_type"), Schedule::Curve::linear);
    out.decay_curve = curve_of(more, "decay_type", more.take("decay_type"), Schedule::Curve::cosine);
  } else {
    arguments.not_built("lr_scheduler_type", type);
  }
  more.finish();
  return out;
}

void read_common(Arguments& arguments, TrainerConfig& common, Schedule& schedule, int64_t recorded_steps) {
  common.gradient_accumulation_steps = arguments.integer("gradient_accumulation_steps", 1);
  common.total_batch_size = arguments.integer("per_device_train_batch_size", 1) * common.gradient_accumulation_steps;
  common.max_training_steps = arguments.integer("max_steps", recorded_steps);
  if (*common.max_training_steps > recorded_steps)
    refuse(arguments.where(),
           str("asks for ", *common.max_training_steps, " steps; ", recorded_steps, " are recorded"));
  schedule = read_schedule(arguments, *common.max_training_steps);
  common.learning_rate = schedule.rate;
  const std::string optimizer = arguments.word("optim", "adamw_torch_fused");
  if (optimizer != "adamw_torch" && optimizer != "adamw_torch_fused" && optimizer != "adamw_hf")
    arguments.not_built("optim", optimizer);
  if (const Value* more = arguments.take("optim_args")) arguments.not_built("optim_args", to_yaml_flow(*more));
  common.weight_decay = arguments.number("weight_decay", 0);
  common.extra_optimizer_kwargs.b1 = arguments.number("adam_beta1", 0.9);
  common.extra_optimizer_kwargs.b2 = arguments.number("adam_beta2", 0.999);
  common.extra_optimizer_kwargs.eps = arguments.number("adam_epsilon", 1e-8);
  if (const double most = arguments.number("max_grad_norm", 1.0); most > 0) common.clip_grad = most;
  if (const double aux = arguments.number("router_aux_loss_coef", 0); aux != 0)
    arguments.not_built("router_aux_loss_coef", str(aux));
  // What shaped the recorded batches, what only matters on several devices, and what trades memory for time.
  arguments.ignore({"seed", "data_seed", "average_tokens_across_devices", "activation_offloading",
                    "gradient_checkpointing", "gradient_checkpointing_kwargs", "max_length", "truncation_mode",
                    "pad_to_multiple_of", "pad_token", "padding_free", "shuffle_dataset", "dataset_num_proc",
                    "dataloader_drop_last", "num_train_epochs"});
}

std::shared_ptr<SftConfig> read_sft(Arguments& arguments) {
  auto out = std::make_shared<SftConfig>();
  out->label_smoothing = arguments.number("label_smoothing_factor", 0);
  const std::string loss = arguments.word("loss_type", "nll");
  if (loss == "dft") {
    out->loss_type = TokenLoss::dft;
    out->label_smoothing = 0;  // TRL's smoother is only for the plain loss
  } else if (loss != "nll" && loss != "chunked_nll") {
    arguments.not_built("loss_type", loss);
  }
  arguments.ignore({"dataset_text_field", "dataset_kwargs", "eos_token", "packing", "packing_strategy", "eval_packing",
                    "completion_only_loss", "assistant_only_loss"});
  return out;
}

std::shared_ptr<DpoConfig> read_dpo(Arguments& arguments) {
  auto out = std::make_shared<DpoConfig>();
  out->beta = arguments.number("beta", 0.1);
  out->label_smoothing = arguments.number("label_smoothing", 0);
  out->conservative = false;
  if (const Value* loss = arguments.take("loss_type")) {
    out->loss_type.clear();
    for (const Value& one : loss->is_list() ? loss->items : std::vector<Value>{*loss})
      out->loss_type.push_back(choice<DpoLoss>(arguments, "loss_type", one));
  }
  if (const Value* weights = arguments.take("loss_weights"))
    for (const Value& weight : weights->items) out->loss_weights.push_back(weight.as_double().value_or(1));
  if (const Value* divergence = arguments.take("f_divergence_type"))
    out->f_divergence_type = choice<Divergence>(arguments, "f_divergence_type", *divergence);
  out->f_alpha_divergence_coef = arguments.number("f_alpha_divergence_coef", 0.5);
  out->discopop_tau = arguments.number("discopop_tau", 0.05);
  if (const Value* alpha = arguments.take("ld_alpha")) out->ld_alpha = alpha->as_double();
  out->sync_ref_model = arguments.flag("sync_ref_model");
  out->ref_model_mixup_alpha = arguments.number("ref_model_mixup_alpha", 0.6);
  out->ref_model_sync_steps = arguments.integer("ref_model_sync_steps", 512);
  out->disable_dropout = arguments.flag("disable_dropout");
  if (const double factor = arguments.number("label_smoothing_factor", 0); factor != 0)
    arguments.not_built("label_smoothing_factor", str(factor));
  arguments.ignore({"precompute_ref_log_probs", "precompute_ref_batch_size"});
  return out;
}

fs::path find_folder(const std::string& name, const fs::path& case_file, const fs::path& root) {
  for (const fs::path& base : {fs::absolute(case_file).parent_path().parent_path(), root})
    if (fs::exists(base / name)) return base / name;
  refuse(case_file.string(), "the model folder '" + name + "' is not there",
         str("looked in ", fs::absolute(case_file).parent_path().parent_path().string(), " and in ", root.string()));
}

// 'start weights with model.layers.{i}.mlp.down_proj.weight multiplied by 0.9 ...' and the like.
void read_reference(const Value& document, ReplayCase& out, DpoConfig& dpo, const std::string& where) {
  const Value* words = document.find("reference_model");
  const std::string text = words && !words->is_null() ? words->scalar : "none";
  static const std::regex scaled("start weights with (\\S+) multiplied by ([0-9.]+)");
  std::smatch match;
  if (text.starts_with("none")) {
    dpo.reference_free = true;
  } else if (std::regex_search(text, match, scaled)) {
    out.reference_scaled = std::regex_replace(match[1].str(), std::regex("\\."), "\\.");
    if (const size_t at = out.reference_scaled.find("{i}"); at != std::string::npos)
      out.reference_scaled.replace(at, 3, "\\d+");
    out.reference_scale = std::stod(match[2].str());
  } else if (!text.starts_with("frozen copy")) {
    refuse(where, "the reference model '" + text + "' is not known");
  }
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
  const bool preference = trainer == "DPOTrainer";
  if (!preference && trainer != "SFTTrainer")
    refuse(where, "trainer " + trainer + " is not built yet", "built: SFTTrainer, DPOTrainer");
  for (const char* name : {"peft", "adapter", "lora"})
    if (document.find(name)) refuse(where, "training adapters is not built yet");
  const Value* config = document.find("config");
  if (!config) refuse(where, "the case has no 'config'");
  if (preference && config->find("reference_free"))
    refuse(where, "DPO as TRL 0.24 has it is not built yet", "built: as TRL 1.x has it");

  ReplayCase out;
  out.model = find_folder(text("model"), case_file, root);
  out.source = read_recorded_batches(case_file.parent_path() / text("batches"), preference);
  Arguments arguments(*config, where);
  TrainerConfig& common = out.trainer.common;
  read_common(arguments, common, out.schedule, out.source->steps_in_epoch());
  if (preference) {
    auto dpo = read_dpo(arguments);
    read_reference(document, out, *dpo, where);
    common.trainer_type = "dpo";
    out.trainer.own = dpo;
  } else {
    out.trainer.own = read_sft(arguments);
  }
  arguments.finish();
  common.save_directory = "replay";
  common.do_last_save = common.resume_if_possible = common.report_metrics = false;
  common.log_steps = 1;
  return out;
}

}  // namespace easydel::train
