// The keys of `trainer:` that all training methods share. A face: no torch. A method's own keys:
// <trainer_type>_config.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/train/loss_config.h"
#include "easydel/train/schedule_config.h"

namespace easydel::train {

enum class OptimizerName : uint8_t {
  adamw,
  adadelta,
  adafactor,
  adagrad,
  adamax,
  adamw_8bit,
  ademamix,
  ademamix_8bit,
  lion,
  lion_8bit,
  mars,
  muon,
  nadam,
  quad,
  radam,
  rmsprop,
  schedule_free_adamw,
  sgd,
  skew,
  soap
};
constexpr auto choices(OptimizerName) {
  using enum OptimizerName;
  return std::array{config::Choice{adamw, "adamw"}.also("adam"),
                    config::Choice{adadelta, "adadelta"},
                    config::Choice{adafactor, "adafactor"},
                    config::Choice{adagrad, "adagrad"},
                    config::Choice{adamax, "adamax"},
                    config::Choice{adamw_8bit, "adamw_8bit"}.also("adamw_bnb_8bit"),
                    config::Choice{ademamix, "ademamix"},
                    config::Choice{ademamix_8bit, "ademamix_8bit"},
                    config::Choice{lion, "lion"},
                    config::Choice{lion_8bit, "lion_8bit"},
                    config::Choice{mars, "mars"},
                    config::Choice{muon, "muon"},
                    config::Choice{nadam, "nadam"},
                    config::Choice{quad, "quad"},
                    config::Choice{radam, "radam"},
                    config::Choice{rmsprop, "rmsprop"},
                    config::Choice{schedule_free_adamw, "schedule_free_adamw"}.also("adamw_schedule_free"),
                    config::Choice{sgd, "sgd"},
                    config::Choice{skew, "skew"},
                    config::Choice{soap, "soap"}};
}

enum class QuantizationMode : uint8_t { nf4, a4q, a8q, int8, mxfp4 };
constexpr auto choices(QuantizationMode) {
  using enum QuantizationMode;
  using config::Choice;
  return std::array{Choice{nf4, "nf4"}, Choice{a4q, "a4q"}, Choice{a8q, "a8q"}, Choice{int8, "8bit"}.also("int8"),
                    Choice{mxfp4, "mxfp4"}};
}

enum class Truncation : uint8_t { keep_end, keep_start };
constexpr auto choices(Truncation) {
  using enum Truncation;
  return std::array{config::Choice{keep_end, "keep_end"}, config::Choice{keep_start, "keep_start"}};
}

enum class ProgressBar : uint8_t { tqdm, rich, json };
constexpr auto choices(ProgressBar) {
  using enum ProgressBar;
  return std::array{config::Choice{tqdm, "tqdm"}, config::Choice{rich, "rich"}, config::Choice{json, "json"}};
}

enum class MomentDType : uint8_t { fp32, bf16 };
constexpr auto choices(MomentDType) {
  using enum MomentDType;
  return std::array{config::Choice{fp32, "fp32"}.also("float32"), config::Choice{bf16, "bf16"}.also("bfloat16")};
}

enum class BenchmarkErrors : uint8_t { warn, stop };
constexpr auto choices(BenchmarkErrors) {
  using enum BenchmarkErrors;
  return std::array{config::Choice{warn, "warn"}, config::Choice{stop, "stop"}};
}

struct OptimizerArguments {
  std::optional<double> b1, b2, eps, momentum;
  double decay = 0.99, gamma = 0.025;
  bool nesterov = true, centered = false;
  int64_t precondition_frequency = 10, max_precond_dim = 10000;
  double preconditioner_lr = 0.7;
  int64_t block_size = 256, max_size_dense = 16384;
  double b3 = 0.9999, slow_weight = 5, rho = 0.9, dampening = 0, rate_decay = 0, initial_accumulator_value = 0,
         momentum_decay = 4e-3, r = 0, weight_rate_power = 2;
  std::optional<int64_t> t_alpha, t_beta3;
  bool decoupled_weight_decay = true, stable_embedding = false;

  static constexpr auto doc = "More hyperparameters of the optimizer.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::b1>("Decay of the mean of gradients, of optimizers that have one; null: mars, quad, skew and soap "
                      "0.95, else 0.9.",
                      between(0, 1), alias("beta1"), alias("adam_beta1")),
        field<&C::b2>("Decay of the mean of squared gradients (lion: of gradients), of optimizers that have one; null: "
                      "lion and mars 0.99, soap 0.95, else 0.999.",
                      between(0, 1), alias("beta2"), alias("adam_beta2")),
        field<&C::eps>("Added to the root of squares (adafactor: to the squares); null: adafactor 1e-30, adagrad "
                       "1e-10, adadelta 1e-6, else 1e-8.",
                       at_least(0), alias("epsilon"), alias("adam_epsilon")),
        field<&C::momentum>("rmsprop, muon, sgd: momentum; null: muon 0.95, else 0.", between(0, 1)),
        field<&C::decay>("rmsprop: decay of the mean of squared gradients.", between(0, 1), alias("alpha")),
        field<&C::gamma>("mars: weight of the correction by the last gradient.", at_least(0)),
        field<&C::nesterov>("muon, sgd with momentum: use Nesterov momentum."),
        field<&C::centered>("rmsprop: subtract the square of the mean."),
        field<&C::precondition_frequency>("soap: recompute the eigenbases every so many steps.", at_least(1)),
        field<&C::max_precond_dim>("soap: longer dimensions have no eigenbasis.", at_least(1)),
        field<&C::preconditioner_lr>("quad, skew: initial learning rate of the factors.", above(0)),
        field<&C::block_size>("quad, skew: rows and columns of a block.", at_least(1)),
        field<&C::max_size_dense>("quad, skew: longer dimensions have diagonal factors.", at_least(1)),
        field<&C::b3>("ademamix: decay of the slow mean of gradients.", between(0, 1), alias("beta3")),
        field<&C::slow_weight>("ademamix: weight of the slow mean (alpha in the paper).", at_least(0)),
        field<&C::t_alpha>("ademamix: steps in which slow_weight rises from 0; null: none.", at_least(1)),
        field<&C::t_beta3>("ademamix: steps in which b3 rises from b1; null: none.", at_least(1)),
        field<&C::rho>("adadelta: decay of the means.", between(0, 1)),
        field<&C::dampening>("sgd: share of the gradient that does not enter the momentum.", between(0, 1)),
        field<&C::rate_decay>("adagrad: how fast the learning rate decays (lr_decay).", at_least(0), alias("lr_decay")),
        field<&C::initial_accumulator_value>("adagrad: the sum of squares before the first step.", at_least(0)),
        field<&C::momentum_decay>("nadam: how fast the momentum rises.", at_least(0)),
        field<&C::decoupled_weight_decay>("nadam, radam: decay the weights themselves instead of adding to gradients."),
        field<&C::stable_embedding>(
            "adamw_8bit, lion_8bit, ademamix_8bit: keep the states of embeddings in fp32. Takes "
            "more memory; helps if training is unstable."),
        field<&C::r>("schedule_free_adamw: power of the step in the weights of the average.", at_least(0)),
        field<&C::weight_rate_power>("schedule_free_adamw: power of the learning rate in those weights.", at_least(0),
                                     alias("weight_lr_power")),
    };
  }
};

struct LearningRate {
  std::string pattern;
  std::optional<double> rate, weight_decay;

  static constexpr auto doc = "Parameters with a learning rate of their own.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::pattern>("Regular expression; the parameters whose names it finds."),
        field<&C::rate>("Their peak learning rate; it follows the same schedule. null: learning_rate.", at_least(0)),
        field<&C::weight_decay>("Their weight decay, norms and biases included; null: weight_decay.", at_least(0)),
    };
  }
};

struct TrainerConfig {
  std::string trainer_type = "sft";
  double learning_rate = 5e-5;
  std::optional<double> learning_rate_end;
  OptimizerName optimizer = OptimizerName::adamw;
  Scheduler scheduler = Scheduler::none;
  SchedulerArguments scheduler_kwargs;
  int64_t warmup_steps = 0;
  double warmup_ratio = 0;
  std::vector<LearningRate> learning_rates;
  std::optional<double> ema_decay, neftune_noise_alpha;
  double weight_decay = 0.01;
  std::optional<std::string> weight_decay_pattern;
  std::optional<double> clip_grad;
  OptimizerArguments extra_optimizer_kwargs;
  MomentDType tx_mu_dtype = MomentDType::fp32;
  int64_t num_train_epochs = 10;
  int64_t total_batch_size = 32;
  int64_t gradient_accumulation_steps = 1;
  std::optional<int64_t> max_training_steps;
  std::optional<int64_t> per_epoch_training_steps;
  bool do_train = true;
  bool do_eval = false;
  bool eval_on_start = false;
  std::optional<int64_t> evaluation_steps;
  std::optional<int64_t> eval_batch_size;
  std::optional<int64_t> max_evaluation_steps;
  std::optional<int64_t> per_epoch_evaluation_steps;
  std::optional<int64_t> early_stopping_patience;
  double early_stopping_threshold = 0;
  std::optional<std::string> metric_for_best_model;
  std::optional<bool> greater_is_better;
  bool load_best_model_at_end = false;
  std::optional<int64_t> max_length = 4096;
  Truncation truncation_mode = Truncation::keep_end;
  std::optional<bool> train_on_inputs;
  std::optional<LossConfig> loss_config;
  std::optional<int64_t> lmhead_chunksize;
  bool shuffle_train_dataset = true;
  int64_t shuffle_seed_train = 64871;
  std::optional<std::string> frozen_parameters;
  std::vector<int64_t> frozen_layers;
  std::string save_directory = "EasyDeL-Checkpoints";
  std::optional<std::string> model_name;
  std::optional<int64_t> save_steps;
  std::optional<double> save_interval_minutes;
  std::optional<int64_t> save_total_limit;
  bool save_optimizer_state = true;
  bool do_last_save = true;
  bool resume_if_possible = true;
  bool remove_ckpt_after_load = false;
  bool push_to_hub = false;
  std::optional<std::string> hub_model_id;
  std::string hub_revision = "main";
  bool hub_private_repo = false;
  int64_t log_steps = 10;
  int64_t report_steps = 5;
  bool report_metrics = true;
  bool tensorboard = true;
  bool log_grad_norms = true;
  ProgressBar progress_bar_type = ProgressBar::tqdm;
  std::optional<std::string> training_time_limit;
  std::optional<std::string> trainer_prefix;
  bool track_memory = false;
  // Accepted; no effect, or not built yet.
  bool aux_loss_enabled = false;
  Value custom_scheduler, init_tx, step_partition_spec;
  bool remove_unused_columns = true, use_grain = true, offload_dataset = false, low_mem_usage = true;
  std::optional<int64_t> grain_shard_index, grain_shard_count;
  int64_t dataloader_num_workers = 0;
  bool merge_lora_before_save = true, save_tpu_preemption_checkpoints = true;
  std::optional<int64_t> step_start_point;
  bool force_step_start_point = false;
  bool log_all_workers = false, use_wandb = false;
  std::optional<std::string> wandb_entity, wandb_name;
  std::string weight_distribution_pattern = ".*";
  int64_t weight_distribution_log_steps = 50;
  bool performance_mode = false, auto_shard_states = true;
  std::optional<QuantizationMode> quantization_mode;
  std::string quantization_pattern;
  std::optional<int64_t> quantization_group_size, quantization_bits;
  Value tensor_straight_through;
  std::optional<int64_t> generation_interval;
  Value generation_prompts;
  bool generation_use_train_prompts = false;
  int64_t generation_num_prompts = 1;
  std::optional<double> generation_temperature, generation_top_p;
  std::optional<int64_t> generation_top_k, generation_max_new_tokens;
  bool use_esurge_generation = true;
  double esurge_hbm_utilization = 0.45;
  int64_t esurge_page_size = 32;
  std::optional<int64_t> benchmark_interval;
  std::vector<Value> benchmarks;
  BenchmarkErrors benchmark_errors = BenchmarkErrors::warn;
  Value watchers;
  std::variant<bool, std::string> sparsify_module = false;

  static constexpr auto doc = "How the model is trained.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    constexpr auto loader = no_effect("rows are tokenized once, before the first step");
    constexpr auto rollouts = no_effect("this method does not generate");
    constexpr auto compiled = no_effect("nothing is compiled here");
    return std::array{
        field<&C::trainer_type>("The training method: sft, dpo, ..."),
        field<&C::learning_rate>("The peak learning rate.", at_least(0)),
        field<&C::learning_rate_end>("The rate at the end of the schedule; null: 0.", at_least(0)),
        field<&C::optimizer>("The optimizer."),
        field<&C::scheduler>("How the rate falls after the warm-up."),
        field<&C::scheduler_kwargs>("More about the schedule.", alias("lr_scheduler_kwargs")),
        field<&C::warmup_steps>("Steps in which the rate rises from 0.", at_least(0)),
        field<&C::warmup_ratio>("The same as a fraction of all steps, rounded up; warmup_steps counts if it is not 0.",
                                between(0, 1)),
        field<&C::learning_rates>("Learning rates of single parameters; the first pattern that finds a name counts."),
        field<&C::ema_decay>("Keep an exponential moving average of the trained parameters with this decay: it is what "
                             "evaluations see, and checkpoints have it in the folder ema. Costs fp32 memory of one "
                             "more copy. null: none.",
                             between(0, 1)),
        field<&C::neftune_noise_alpha>("Add uniform noise to the embeddings while training, of at most this / "
                                       "sqrt(tokens of the sequence * hidden size) (arXiv:2310.05914); null: none.",
                                       at_least(0)),
        field<&C::weight_decay>("Decoupled; norms and biases are not decayed.", at_least(0)),
        field<&C::weight_decay_pattern>("Regular expression; only parameters that it finds are decayed."),
        field<&C::clip_grad>("Largest global norm of the gradient; null: not clipped.", above(0),
                             alias("max_grad_norm")),
        field<&C::extra_optimizer_kwargs>("Hyperparameters of the optimizer."),
        field<&C::tx_mu_dtype>("Dtype in which the optimizer's first moment is kept between steps, as in optax. bf16 "
                               "saves 2 bytes for each trained parameter and rounds the moment after each step."),
        field<&C::num_train_epochs>("Passes over the data.", at_least(1)),
        field<&C::total_batch_size>(
            "Examples in one step (optimizer update), over all ranks and gradient_accumulation_steps.", at_least(1)),
        field<&C::gradient_accumulation_steps>(
            "Number of micro-batches in a step. More of them need less memory and give the same update up to rounding.",
            at_least(1)),
        field<&C::max_training_steps>("Number of steps; null: num_train_epochs decides.", at_least(1)),
        field<&C::per_epoch_training_steps>("Steps in an epoch; null: as many as the data has.", at_least(1)),
        field<&C::do_train>("Whether to train."),
        field<&C::do_eval>("Evaluate on the held-out data after each epoch, or every evaluation_steps."),
        field<&C::eval_on_start>("Evaluate once before the first step."),
        field<&C::evaluation_steps>("Steps between evaluations.", at_least(1)),
        field<&C::eval_batch_size>("Examples in a batch of an evaluation; null: as many as in a micro-batch.",
                                   at_least(1)),
        field<&C::max_evaluation_steps>("Batches of one evaluation; null: all of the data.", at_least(1)),
        field<&C::per_epoch_evaluation_steps>("As max_evaluation_steps.", at_least(1)),
        field<&C::early_stopping_patience>(
            "Stop after this many evaluations in a row without a better metric_for_best_model; null: never.",
            at_least(1)),
        field<&C::early_stopping_threshold>("What counts as better for early stopping: at least this difference.",
                                            at_least(0)),
        field<&C::metric_for_best_model>("Metric of evaluations that says which checkpoint is the best; null: loss."),
        field<&C::greater_is_better>("Whether a greater metric is better; null: unless its name ends in loss, or it is "
                                     "perplexity or bits_per_byte."),
        field<&C::load_best_model_at_end>("Save a checkpoint at each evaluation that is the best so far, keep it "
                                          "whatever save_total_limit is, and end the run with its weights."),
        field<&C::max_length>("Longest example in tokens; longer ones are truncated. null: no limit.", at_least(2),
                              deprecated("max_sequence_length")),
        field<&C::truncation_mode>("Which end of an example that is too long is kept."),
        field<&C::train_on_inputs>("Whether the tokens of prompts are labels; null: as in TRL for the kind of row."),
        field<&C::loss_config>("The loss of a token."),
        field<&C::lmhead_chunksize>("The same as loss_config.chunk_token_size.", at_least(1)),
        field<&C::shuffle_train_dataset>("Shuffle the data anew for each epoch, with shuffle_seed_train."),
        field<&C::shuffle_seed_train>("Seed of the order of the data.", at_least(0)),
        field<&C::frozen_parameters>("Regular expression; parameters whose names it finds are not trained."),
        field<&C::frozen_layers>("Numbers of layers that are not trained, from 0, in addition to frozen_parameters.",
                                 at_least(0)),
        field<&C::save_directory>("Folder for the checkpoints."),
        field<&C::model_name>("Folder below save_directory; null: the name of the model's folder."),
        field<&C::save_steps>("Steps between checkpoints; null: only one at the end.", at_least(1)),
        field<&C::save_interval_minutes>("Minutes between checkpoints.", above(0)),
        field<&C::save_total_limit>("How many checkpoints are kept; the oldest ones are deleted. null: all.",
                                    at_least(1)),
        field<&C::save_optimizer_state>("Save the optimizer's state, which resuming exactly needs. It is about twice "
                                        "as large as the weights in fp32."),
        field<&C::do_last_save>("Save a checkpoint at the end of the run."),
        field<&C::resume_if_possible>("Continue from the newest checkpoint that is intact."),
        field<&C::remove_ckpt_after_load>(
            "Delete the checkpoint that the run continued from after a newer one was written."),
        field<&C::push_to_hub>(
            "Upload the model to the hub at the end of the training; only files that changed are sent."),
        field<&C::hub_model_id>("The repository, owner/name.", alias("hub_repo_id")),
        field<&C::hub_revision>("Branch of the repository."),
        field<&C::hub_private_repo>("If this run creates the repository, make it private."),
        field<&C::log_steps>("Steps between lines of the log.", at_least(1)),
        field<&C::report_steps>("Steps between records of metrics.jsonl.", at_least(1)),
        field<&C::report_metrics>("Write metrics.jsonl and its curves: loss.svg, curves.svg, benchmarks.svg."),
        field<&C::tensorboard>("Write an event file of TensorBoard into the run's folder, with report_metrics."),
        field<&C::log_grad_norms>("Record the norm of the gradient."),
        field<&C::progress_bar_type>("tqdm and rich draw a bar; json prints a line of JSON for each record."),
        field<&C::training_time_limit>("Save and stop after this time: 30s, 50min, 23h."),
        field<&C::trainer_prefix>("Prefix of the names of metrics."),
        field<&C::track_memory>("Record the peak memory of the process."),
        field<&C::aux_loss_enabled>(
            "Add the router losses of a mixture of experts, as output_router_logits in config.json does."),
        field<&C::custom_scheduler>("A function; only possible in Python.", not_built("a function in YAML")),
        field<&C::init_tx>("Build the optimizer immediately.", compiled),
        field<&C::step_partition_spec>("How a batch is sharded.", no_effect("batches are cut over dp and fsdp")),
        field<&C::remove_unused_columns>("Drop other fields.", loader),
        field<&C::use_grain>("Upstream's loader.", loader),
        field<&C::offload_dataset>("Keep data on the host.", loader),
        field<&C::low_mem_usage>("Load with little memory.", no_effect("loading always does")),
        field<&C::grain_shard_index>("Part of the data.", loader),
        field<&C::grain_shard_count>("Parts of the data.", loader),
        field<&C::dataloader_num_workers>("Processes that load.", loader),
        field<&C::merge_lora_before_save>(
            "Save the model with its adapter merged at the end of the run, in addition to "
            "the adapter. Checkpoints before the end hold the adapter alone."),
        field<&C::save_tpu_preemption_checkpoints>("Save when the run is asked to stop.",
                                                   no_effect("SIGTERM always saves")),
        field<&C::step_start_point>("Start at another step.", not_built("beginning at another step")),
        field<&C::force_step_start_point>("Start at another step.", not_built("beginning at another step")),
        field<&C::log_all_workers>("Log on every rank.", no_effect("rank 0 logs what all have computed")),
        field<&C::use_wandb>(
            "Report to Weights & Biases.",
            not_built("reporting to Weights & Biases during a run (scripts/send_metrics.py sends one that has ended)")),
        field<&C::wandb_entity>("Account that reports.", no_effect("nothing is reported to Weights & Biases")),
        field<&C::wandb_name>("Name of the report.", no_effect("nothing is reported to Weights & Biases")),
        field<&C::weight_distribution_pattern>(
            "Regular expression; trained parameters whose names it finds have a histogram in TensorBoard's event file. "
            "\"^$\" finds none."),
        field<&C::weight_distribution_log_steps>(
            "Steps between histograms, each of which reads all of these parameters.", at_least(1)),
        field<&C::performance_mode>("Compute fewer metrics.", no_effect("metrics cost little here")),
        field<&C::auto_shard_states>("Shard the optimizer's state.", no_effect("it always is as its parameter is")),
        field<&C::quantization_mode>("Quantization-aware training: products read the linear layers rounded to this "
                                     "format, and the weights learn what it loses. For a model that is quantized "
                                     "afterwards; a step costs more. On a CPU; ranks along dp and fsdp.",
                                     deprecated("quantization_block")),
        field<&C::quantization_group_size>("Values that share a scale in quantization_mode; null: the format's own.",
                                           at_least(1)),
        field<&C::quantization_pattern>("The layers of quantization_mode, as quantization.model.pattern names them."),
        field<&C::quantization_bits>("Bits of quantization_mode, which its name says already.", between(1, 8)),
        field<&C::tensor_straight_through>("A function; only possible in Python.",
                                           not_built("another estimator than straight-through")),
        field<&C::generation_interval>(
            "Steps between previews: texts that the model generates, for previews.jsonl, the log and TensorBoard. The "
            "last step has one, too. Costs the time to generate them, and changes nothing of the run.",
            at_least(1)),
        field<&C::generation_prompts>(
            "Prompts of previews: a text or a list; each is a text to continue, or a conversation as a list of "
            "messages, which the chat template formats."),
        field<&C::generation_use_train_prompts>(
            "Make previews of the training data's prompts, each time of other ones."),
        field<&C::generation_num_prompts>("Prompts of the training data in a preview.", at_least(1)),
        field<&C::generation_temperature>("Temperature of previews; 0: greedy; null: as the model's own settings.",
                                          at_least(0)),
        field<&C::generation_top_p>("Sample from the smallest set of tokens whose probabilities add up to this; null: "
                                    "the model's own.",
                                    between(0, 1)),
        field<&C::generation_top_k>("Sample from this many of the likeliest tokens; null: the model's own.",
                                    at_least(0)),
        field<&C::generation_max_new_tokens>("Maximum number of tokens of a preview; null: 64.", at_least(1)),
        field<&C::use_esurge_generation>("Generate with the engine.", rollouts),
        field<&C::esurge_hbm_utilization>("Memory of the engine.", rollouts),
        field<&C::esurge_page_size>("Page size of the engine.", rollouts),
        field<&C::benchmark_interval>("Steps between runs of the benchmarks; null: after the last step alone, which "
                                      "always has one (and before the first, with eval_on_start).",
                                      at_least(1)),
        field<&C::benchmarks>("Benchmark tasks that are evaluated while the model is trained (docs/evaluation.md): "
                              "names of tasks, or maps "
                              "with `tasks`, `name` and keys of the section eval, which they replace."),
        field<&C::benchmark_errors>("What a benchmark that fails does: warn, and the run goes on, or stop the run."),
        field<&C::watchers>("Objects; only possible in Python.", not_built("watchers")),
        field<&C::sparsify_module>("Sparse weights.", not_built("sparse weights")),
    };
  }
  void settle(config::Keys& keys);

  LossConfig loss() const { return loss_config.value_or(LossConfig{}); }
};

// UserError "trainer.total_batch_size: ..." unless an update divides into its parts on each of the `ranks` that read
// different examples.
void check_update_divides(const TrainerConfig& config, int64_t ranks);

// The prompts of generation_prompts, each a text or a list of messages.
std::vector<Value> generation_prompts(const TrainerConfig& config);

// "50min", "23h", "30s" in seconds; nullopt: it says none of these.
std::optional<double> seconds_of(const std::string& text);

}  // namespace easydel::train
