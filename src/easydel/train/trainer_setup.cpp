// What a trainer does before its first step: data, frozen parameters, the plan, the checkpoint to go on from.
#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/data/example_stream.h"
#include "easydel/data/inform_reader.h"
#include "easydel/data/saved_rows.h"
#include "easydel/data/statistics.h"
#include "easydel/models/adapter.h"
#include "easydel/models/load_types.h"
#include "easydel/tensor/memory.h"
#include "easydel/train/chat_agreement.h"
#include "easydel/train/freezing.h"
#include "easydel/train/packed_source.h"
#include "easydel/train/router_watch.h"
#include "easydel/train/row_notes.h"
#include "easydel/train/state_files.h"
#include "easydel/train/store_settings.h"
#include "easydel/train/trainer.h"
#include "easydel/train/transformation.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;

// Empty: the model's folder has no name of its own, so the run has that of the model's family.
std::string folder_name(const TrainerSection& trainer, const fs::path& model) {
  if (trainer.common.model_name) return *trainer.common.model_name;
  const std::string name = model.lexically_normal().filename().string();
  return name == "." ? "" : name;
}

Checkpoints checkpoints_of(const TrainerParts& parts) {
  if (parts.checkpoints) return *parts.checkpoints;
  if (auto made = checkpoints_before_loading(parts.trainer, parts.model->folder())) return std::move(*made);
  return Checkpoints(fs::path(parts.trainer.common.save_directory) / parts.model->model_type(),
                     parts.trainer.common.save_total_limit, missing_in_state);
}

// Packing by the trainer's key or by the mixture's, each with its own default strategy.
data::Packing packing_of(const TrainerSection& trainer, const data::MixtureConfig& mixture, bool evaluation) {
  if (!trainer.facts().packs) return data::Packing::none;
  const DataKeys own = trainer.data_keys();
  const bool by_mixture = mixture.pack_tokens || mixture.pack_on_the_fly;
  if (evaluation && own.eval_packing && !*own.eval_packing) return data::Packing::none;
  if (!own.packing && !by_mixture && !(evaluation && own.eval_packing.value_or(false))) return data::Packing::none;
  return own.packing_strategy.value_or(by_mixture ? data::Packing::greedy : data::Packing::bfd);
}

// Weights in the dtype that is saved; the optimizer's state, and the fp32 masters if the weights are not saved as fp32.
int64_t checkpoint_bytes(const TrainerParts& parts, const RunPlan& plan) {
  const auto each =
      int64_t(c10::elementSize(models::scalar_type_of(parts.save_dtype, parts.model->file_type(), "save_dtype")));
  const bool adapter = trained_adapter(*parts.model) != nullptr;
  const int64_t weights = adapter ? 4 * plan.trainable : each * plan.parameters;
  if (!parts.trainer.common.save_optimizer_state) return weights;
  return weights + plan.memory.optimizer + (each == 4 || adapter ? 0 : 4 * plan.trainable);
}

void warn_of_full_disk(const RunPlan& plan) {
  const auto free = int64_t(files::free_bytes(plan.folder));
  if (free < plan.checkpoint_bytes)
    log::warning(plan.folder, ": a checkpoint needs ", bytes_text(plan.checkpoint_bytes), ", and the disk has ",
                 bytes_text(free), " free; free some space, or choose another trainer.save_directory");
}

data::WeightSchedule weight_schedule(const TrainerConfig& common, const data::MixtureConfig& mixture,
                                     const data::DatasetOptions& options) {
  const std::string where = "mixture.mixture_weight_schedule";
  if (!common.max_training_steps) refuse(where, "needs to know how long the run is", "set trainer.max_training_steps");
  if (common.per_epoch_training_steps)
    refuse(where, "makes the run one epoch",
           "leave trainer.per_epoch_training_steps out; max_training_steps ends the run");
  data::WeightSchedule out;
  out.interpolation = mixture.mixture_weight_schedule->interpolation;
  for (const data::WeightPointConfig& point : mixture.mixture_weight_schedule->points) {
    data::WeightPoint& one = out.points.emplace_back();
    one.step = point.step;
    for (const std::string& name : data::names_of(options.informs)) one.weights.push_back(point.weights.at(name));
  }
  out.examples_per_update = common.total_batch_size;
  out.examples_in_run = *common.max_training_steps * common.total_batch_size;
  out.is_packed = options.packing != data::Packing::none;
  return out;
}

// What the trainer's keys and the mixture's say of the data to learn from.
data::DatasetOptions training_data(const TrainerSection& trainer, const data::MixtureConfig& mixture) {
  data::DatasetOptions options;
  options.informs = data::training_informs(mixture);
  if (options.informs.empty())
    refuse("mixture.informs", "there is no data to train on", "give at least one inform with split: train");
  const DataKeys keys = trainer.data_keys();
  options.target_field = keys.text_field.value_or(mixture.text_target_field);
  options.names = keys.names;
  options.kinds = trainer.facts().rows;
  options.all_columns = trainer.facts().columns;
  options.tokens_field = mixture.tokens_field_name;
  options.image_field = mixture.image_target_field;
  options.remote = data::remote_options(mixture);
  options.prepare_rows = mixture.tokenization.batch_size;
  options.prepare_threads = mixture.tokenization.num_proc.value_or(0);
  options.tokenize_callback = mixture.tokenize_callback;
  options.mixture = {mixture.block_mixture, mixture.mixture_block_size, mixture.stop_strategy, {}, {}};
  if (mixture.block_mixture && !mixture.mixture_weights.empty())
    for (const std::string& name : data::names_of(options.informs))
      options.weights.push_back(mixture.mixture_weights.at(name));
  options.packing = packing_of(trainer, mixture, false);
  if (mixture.block_mixture && mixture.mixture_weight_schedule)
    options.mixture.schedule = weight_schedule(trainer.common, mixture, options);
  if (options.packing != data::Packing::none) {
    const auto length = mixture.pack_seq_length ? mixture.pack_seq_length : trainer.common.max_length;
    if (!length)
      refuse("trainer.max_length", "packing needs to know how long a row is",
             "set max_length or mixture.pack_seq_length");
    options.row_length = *length;
  }
  options.pack_window = mixture.pack_window;
  options.shuffle_documents = mixture.pack_shuffle && trainer.common.shuffle_train_dataset;
  options.shuffled = trainer.common.shuffle_train_dataset;
  options.seed = uint64_t(mixture.seed.value_or(trainer.common.shuffle_seed_train));
  options.deduplicate = mixture.deduplicate == data::Deduplicate::exact;
  if (mixture.decontaminate)
    options.decontamination = {mixture.decontaminate->ngram, mixture.decontaminate->drop,
                               data::evaluation_informs(mixture)};
  options.bad_rows = {mixture.on_bad_row == data::OnBadRow::skip, mixture.max_bad_rows};
  return options;
}

// The same for the data to evaluate on, which `options` of the training data become; false: there are none, or the run
// does not evaluate.
bool evaluation_data(const TrainerSection& trainer, const data::MixtureConfig& mixture, data::DatasetOptions& options) {
  options.informs = data::evaluation_informs(mixture);
  if (!trainer.common.do_eval) return false;
  if (options.informs.empty()) {
    log::warning("trainer.",
                 trainer.common.evaluation_steps ? "evaluation_steps"
                 : trainer.common.eval_on_start  ? "eval_on_start"
                                                 : "do_eval",
                 ": there is no evaluation data, so nothing will be evaluated; give an inform with split: validation, "
                 "or mixture.evaluation");
    return false;
  }
  options.section = "mixture.evaluation";
  options.stream.reset();
  options.deduplicate = false, options.decontamination.reset();
  options.evaluation = true;
  options.mixture = {}, options.weights = {};
  options.packing = packing_of(trainer, mixture, true);
  options.shuffled = options.shuffle_documents = false;
  return true;
}

void refuse_unknown_length(const TrainerConfig& common, const data::DatasetOptions& options) {
  if (common.max_training_steps || options.packing == data::Packing::none || !data::is_streamed(options)) return;
  refuse("trainer.max_training_steps",
         "rows are packed while the run goes on, so the number of updates in an epoch is not known",
         "set it; `easydel data stats` counts the updates of an epoch");
}

// What the run notes of its rows.
RowNotes notes_of(const TrainerSection& trainer, int64_t vocabulary, std::vector<int32_t> end_tokens = {}) {
  return {vocabulary, trainer.saved_examples().shifted, std::move(end_tokens)};
}

// Rows have a limit on either side; the smaller one holds.
void limit_length(TrainerSection& trainer, const data::MixtureConfig& mixture) {
  if (const auto most = mixture.tokenization.max_length)
    trainer.common.max_length = std::min(*most, trainer.common.max_length.value_or(*most));
}

}  // namespace

FirstRows check_data(TrainerSection trainer, const data::MixtureConfig& mixture,
                     std::shared_ptr<const text::Tokenizer> tokenizer, int64_t vocabulary) {
  data::refuse_images(mixture);
  limit_length(trainer, mixture);
  const std::unique_ptr<Method> method = build_method({trainer, mixture, tokenizer, nullptr});
  const data::Prepare prepare =
      with_notes(preparation(*method, trainer.method()), notes_of(trainer, vocabulary), *tokenizer);
  FirstRows out;
  data::DatasetOptions options;
  if (!data::training_informs(mixture).empty()) {
    options = training_data(trainer, mixture);
    out.packed_length = options.packing == data::Packing::none ? 0 : options.row_length;
    options.stream = data::stream_options(mixture);
    refuse_unknown_length(trainer.common, options);
    data::check_first_rows(options, [&](const data::TypedRow& row) {
      data::Prepared prepared = prepare(row);
      if (!prepared.example) return prepared;
      const auto tokens = int64_t(prepared.example->tokens.size());
      ++out.rows, out.tokens += tokens, out.labelled += prepared.example->labelled();
      out.longest = std::max(out.longest, tokens);
      return prepared;
    });
  }
  if (evaluation_data(trainer, mixture, options)) data::check_first_rows(options, prepare);
  return out;
}

data::RunData run_data(TrainerSection trainer, const data::MixtureConfig& mixture,
                       std::shared_ptr<const text::Tokenizer> tokenizer, int64_t vocabulary, models::Task task,
                       const std::vector<int32_t>& end_tokens) {
  limit_length(trainer, mixture);
  const auto prepare_with = [&](const TrainerSection& section) -> data::Prepare {
    const std::shared_ptr<const Method> method = build_method({section, mixture, tokenizer, nullptr});
    const data::Prepare prepare =
        with_notes(preparation(*method, section.method()), notes_of(section, vocabulary, end_tokens), *tokenizer);
    return data::with_images([method, tokenizer, prepare](const data::TypedRow& row) { return prepare(row); });
  };
  data::RunData out;
  data::DatasetOptions options;
  if (!data::training_informs(mixture).empty()) options = training_data(trainer, mixture);
  options.store = store_options(trainer, mixture, *tokenizer, vocabulary, task, nullptr);
  options.stream = stream_options(trainer, mixture, *tokenizer, vocabulary);
  if (!options.informs.empty()) out.training = options;
  if (!data::evaluation_informs(mixture).empty()) {
    trainer.common.do_eval = true;  // shown whether or not the run evaluates
    if (evaluation_data(trainer, mixture, options)) out.evaluation = options;
  }
  out.prepare = prepare_with(trainer);
  out.tokenizer = tokenizer;
  out.end_tokens = end_tokens;
  out.not_stored = why_not_stored(trainer, task, nullptr);
  out.mixture = mixture;
  out.saved = trainer.saved_examples();
  out.labels_are_shifted = trainer.common.loss().shift_tokens;
  out.packs = trainer.facts().packs;
  out.max_length = trainer.common.max_length;
  out.examples_per_update = trainer.common.total_batch_size;
  if (const int64_t most = trainer.common.per_epoch_training_steps.value_or(0); most > 0) out.max_steps_in_epoch = most;
  trainer.common.max_length.reset();
  out.prepare_whole = prepare_with(trainer);
  return out;
}

std::optional<Checkpoints> checkpoints_before_loading(const TrainerSection& trainer, const fs::path& model) {
  const std::string name = folder_name(trainer, model);
  if (name.empty()) return std::nullopt;
  return Checkpoints(fs::path(trainer.common.save_directory) / name, trainer.common.save_total_limit, missing_in_state);
}

std::shared_ptr<data::Dataset> build_dataset(TrainerSection trainer, const data::MixtureConfig& mixture,
                                             std::shared_ptr<const text::Tokenizer> tokenizer) {
  data::refuse_images(mixture);
  limit_length(trainer, mixture);
  const std::unique_ptr<Method> method = build_method({trainer, mixture, std::move(tokenizer), nullptr});
  const data::DatasetOptions options = training_data(trainer, mixture);
  const data::Prepare prepare = preparation(*method, trainer.method());
  auto dataset = std::make_shared<data::Dataset>(data::Dataset::build(options, prepare));
  if (mixture.save) data::save_data("mixture.save", options, prepare, *dataset, mixture, trainer.saved_examples());
  return dataset;
}

void Trainer::build_data() {
  std::vector<int32_t> ends;
  if (parts_.model->task() == models::Task::causal_lm) ends = end_tokens(parts_.model->folder(), *parts_.tokenizer);
  const data::Prepare prepare =
      with_notes(preparation(*method_, parts_.trainer.method()),
                 notes_of(parts_.trainer, parts_.model->vocabulary(), std::move(ends)), *parts_.tokenizer);
  data::DatasetOptions options = training_data(parts_.trainer, parts_.mixture);
  options.store = store_options(parts_.trainer, parts_.mixture, *parts_.tokenizer, parts_.model->vocabulary(),
                                parts_.model->task(), parts_.model.get());
  options.stream = stream_options(parts_.trainer, parts_.mixture, *parts_.tokenizer, parts_.model->vocabulary());
  refuse_unknown_length(config(), options);
  options.on_rows = [this](int64_t rows) { worked(Work::Kind::reading, rows, 0); };
  training_ = std::make_shared<data::Dataset>(data::Dataset::build(options, prepare));
  if (parts_.mixture.save && ranks_.first())
    data::save_data("mixture.save", options, prepare, *training_, parts_.mixture, parts_.trainer.saved_examples());
  worked(Work::Kind::reading, 1, 1);  // done
  const int64_t update = config().total_batch_size, parts = config().gradient_accumulation_steps;
  const int64_t most_steps = config().per_epoch_training_steps.value_or(0);
  if (training_->packed_stream()) {
    source_ = std::make_unique<PackedSource>(training_, update, parts, most_steps);
  } else {
    source_ = std::make_unique<DatasetSource>(
        training_, update, parts, most_steps,
        parts_.mixture.prefetch_buffer_size.value_or(DatasetSource::default_steps_ahead));
  }

  if (!evaluation_data(parts_.trainer, parts_.mixture, options)) return;
  // Informs of one name are one set, in the order of the first of them.
  std::vector<std::pair<std::string, std::vector<data::InformConfig>>> sets;
  for (const data::InformConfig& inform : options.informs) {
    const std::string name = inform.name.value_or("");
    auto found = std::ranges::find(sets, name, &std::pair<std::string, std::vector<data::InformConfig>>::first);
    if (found == sets.end()) found = sets.insert(sets.end(), {name, {}});
    found->second.push_back(inform);
  }
  for (auto& [name, informs] : sets) {
    options.informs = std::move(informs);
    evaluation_sets_.push_back({name, std::make_shared<data::Dataset>(data::Dataset::build(options, prepare))});
  }
  worked(Work::Kind::reading, 1, 1);
}

std::string Trainer::chat_disagreement() const {
  TrainerSection whole = parts_.trainer;
  whole.common.max_length.reset();
  const log::Quiet quiet;  // what the method says of its rows was said
  const std::unique_ptr<Method> method = build_method({whole, parts_.mixture, parts_.tokenizer, nullptr});
  return train::chat_disagreement(training_data(parts_.trainer, parts_.mixture), preparation(*method, whole.method()),
                                  parts_.tokenizer);
}

void Trainer::make_plan() {
  RunPlan& plan = plan_;
  for (const nn::Entry& entry : parts_.model->parameters().entries()) {
    plan.parameters += entry.elements();
    if (entry.shard.defined()) plan.memory.weights += int64_t(entry.shard.nbytes());
    if (!entry.trainable) continue;
    plan.trainable += entry.elements();
    plan.memory.gradients += int64_t(entry.shard.nbytes());
  }
  plan.update = config().total_batch_size;
  plan.micro_batches = config().gradient_accumulation_steps;
  plan.steps_in_epoch = source_->steps_in_epoch();
  plan.steps = config().max_training_steps.value_or(plan.steps_in_epoch * config().num_train_epochs);
  plan.folder = checkpoints_.folder().string();
  if (training_) {
    plan.examples = training_->size();
    plan.tokens = training_->tokens();
    plan.labels = training_->labels();
    plan.longest = training_->longest();
    const data::DatasetReport& report = training_->first_report();
    plan.mistakes = report.mistakes.lines(report.rows);
    if (plan.labels > 0 && parts_.model->task() == models::Task::causal_lm)
      if (std::string line = data::never_stops(end_tokens(parts_.model->folder(), *parts_.tokenizer), report.special,
                                               *parts_.tokenizer);
          !line.empty())
        plan.mistakes.push_back(std::move(line));
    if (ranks_.first() && parts_.model->task() == models::Task::causal_lm)
      if (std::string line = chat_disagreement(); !line.empty()) plan.mistakes.push_back(std::move(line));
    if (const int64_t most = parts_.model->max_positions(); most > 0 && plan.longest > most)
      log::warning("the longest example has ", plan.longest, " tokens; the model was trained for at most ", most,
                   " (trainer.max_length: ", most, " would keep to that)");
  }
  for (const EvaluationSet& set : evaluation_sets_) {
    plan.evaluation_examples += set.data->size();
    plan.evaluation_tokens += set.data->tokens();
  }
  if (!config().max_training_steps && config().warmup_steps > 0 && config().warmup_steps >= plan.steps)
    log::warning("trainer.warmup_steps: a warm-up of ", config().warmup_steps, " steps does not end within ",
                 plan.steps, " steps; the rate never reaches learning_rate");
}

std::string RunPlan::text() const {
  std::string out = str("model       ", counted(parameters, "parameter"), ", ", trainable, " of them trained\n");
  out += str("data        ", counted(examples, "example"), " of at most ", counted(longest, "token"), "; ",
             counted(tokens, "token"), " in an epoch",
             labels > 0 ? str(", ", labels, " of them learned") : std::string(), "\n");
  if (labels > 0) out += str("learned     ", data::percent_text(labels, tokens), " of the tokens\n");
  for (const std::string& mistake : mistakes) out += "mistakes    " + mistake + "\n";
  if (evaluation_examples)
    out +=
        str("evaluation  ", counted(evaluation_examples, "example"), ", ", counted(evaluation_tokens, "token"), "\n");
  out += str("steps       ", steps, " of ", counted(update, "example"),
             micro_batches > 1 ? str(" in ", micro_batches, " parts") : std::string(), "; ", steps_in_epoch,
             " in an epoch", from_step ? str("; going on after step ", from_step) : std::string(), "\n");
  out += "memory      " + memory.text() + "\n";
  out += str("checkpoints ", folder, "; ", bytes_text(checkpoint_bytes), " each\n");
  return out;
}

Trainer::Trainer(TrainerParts parts, Composing)
    : parts_(std::move(parts)), ranks_(parts_.load.team), checkpoints_(checkpoints_of(parts_)) {
  check(parts_.model, "a trainer without a model");
  limit_length(parts_.trainer, parts_.mixture);
  check(&parts_.model->team() == parts_.load.team.get(), "the model is on other ranks than its load options");
  if (ranks_.first()) checkpoints_.lock();
  freeze(*parts_.model, config());
  if (merges_adapter(*parts_.model, config().merge_lora_before_save)) {
    models::refuse_unmergeable(*parts_.model, "trainer.merge_lora_before_save");
    merge_of_run(*parts_.model, parts_.load);  // what it would refuse at the end
  }
  router_losses_ = wants_router_losses(*parts_.model, config().aux_loss_enabled);
  const auto before = int64_t(tensor::memory_use().in_use);
  method_ = build_method({parts_.trainer, parts_.mixture, parts_.tokenizer, parts_.model, parts_.side});
  side_bytes_ = std::max<int64_t>(0, int64_t(tensor::memory_use().in_use) - before);  // a copy as a reference
  std::vector<const SideModel*> sides{&parts_.side.reference, &parts_.side.teacher};
  for (const SideModel& reward : parts_.side.rewards) sides.push_back(&reward);
  for (const SideModel* side : sides)
    if (side->model)
      for (const nn::Entry& entry : side->model->parameters().entries())
        if (entry.shard.defined()) side_bytes_ += int64_t(entry.shard.nbytes());
}

Trainer::Trainer(TrainerParts parts) : Trainer(std::move(parts), Composing()) {
  check_update_divides(config(), ranks_.parts());
  check(parts_.tokenizer, "a trainer without a tokenizer");
  build_data();
  begin(std::nullopt);
}

Trainer::Trainer(TrainerParts parts, std::unique_ptr<BatchSource> source, std::optional<Transformation> tx)
    : Trainer(std::move(parts), Composing()) {
  check(source, "a trainer without examples");
  source_ = std::move(source);
  begin(std::move(tx));
}

void Trainer::begin(std::optional<Transformation> tx) {
  if (parts_.trainer.facts().samples && parts_.tokenizer)
    sampler_ = std::make_unique<Sampler>(parts_.model, parts_.tokenizer);
  source_ = method_->source(std::move(source_), sampler_.get());
  make_plan();
  const Transformation made = tx ? std::move(*tx) : transformation_of(config(), plan_.steps);
  schedule_ = made.schedule;
  best_.emplace(config());
  if (config().generation_interval && config().do_train) {
    if (!parts_.tokenizer || parts_.model->task() != models::Task::causal_lm)
      refuse("trainer.generation_interval", "a model without a language model's head and a tokenizer generates nothing",
             "leave it out");
    previews_.emplace(config(), parts_.model, parts_.tokenizer, training_);
  }
  clip_grad_ = made.clip_grad;
  optimizer_ = std::make_unique<Optimizer>(parts_.model->parameters(), made.optimizer);
  plan_.memory.optimizer = optimizer_->state_bytes();
  plan_.checkpoint_bytes = checkpoint_bytes(parts_, plan_);
  warn_of_full_disk(plan_);
  if (ranks_.first()) checkpoints_.tidy();
  ranks_.barrier();
  if (config().resume_if_possible) resume();
  if (plan_.checkpoint.empty())
    if (const std::string broken = not_finite(); !broken.empty())
      refuse(parts_.model->folder().string(), str(broken, " holds values that are not finite (NaN or infinity)"),
             "the model cannot be trained; fetch it again");
  plan_memory();
  if (training_) training_->forget_report();
}

}  // namespace easydel::train
