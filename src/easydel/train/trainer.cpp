#include "easydel/train/trainer.h"

#include <ATen/ops/aminmax.h>

#include <cmath>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/data/text_bytes.h"
#include "easydel/models/adapter.h"
#include "easydel/models/not_finite.h"
#include "easydel/train/chat_agreement.h"
#include "easydel/train/data_order.h"
#include "easydel/train/router_watch.h"

namespace easydel::train {
namespace {

// Of one step's micro-batches: each name's mean over them, in the order of the names' first appearance.
class Means {
 public:
  void add(const std::vector<Metric>& metrics) {
    for (const Metric& metric : metrics) {
      if (metric.over != Metric::Over::batches && metric.count <= 0) continue;
      auto found = std::find_if(sums_.begin(), sums_.end(), [&](const auto& s) { return s.name == metric.name; });
      if (found == sums_.end()) found = sums_.insert(sums_.end(), {metric.name, 0, 0, metric.over, metric.exponential});
      const bool whole = metric.over == Metric::Over::everything;
      found->sum += whole ? metric.sum : metric.count > 0 ? metric.sum / metric.count : 0;
      found->count += whole ? metric.count : 1;
    }
  }
  std::vector<std::pair<std::string, double>> values() const {
    std::vector<std::pair<std::string, double>> out;
    for (const Metric& m : sums_) out.emplace_back(m.name, m.value());
    return out;
  }

 private:
  std::vector<Metric> sums_;
};

// The averages of the parameters, while it lives; the optimizer may have none.
class ShownAverage {
 public:
  explicit ShownAverage(Optimizer& optimizer) : optimizer_(optimizer), shows_(!optimizer.shows_average()) {
    if (shows_) optimizer_.show_average();
  }
  ~ShownAverage() {
    if (shows_) optimizer_.show_trained();
  }
  ShownAverage(const ShownAverage&) = delete;

 private:
  Optimizer& optimizer_;
  bool shows_;
};

void sum_over_ranks(const Ranks& ranks, std::vector<Metric>& metrics) {
  std::vector<double> values;
  for (const Metric& metric : metrics) values.insert(values.end(), {metric.sum, metric.count});
  ranks.sum(values);
  for (size_t i = 0; i < metrics.size(); ++i) metrics[i].sum = values[2 * i], metrics[i].count = values[2 * i + 1];
}

}  // namespace

Trainer::~Trainer() = default;

Forwarding Trainer::forwarding(bool training) const {
  Forwarding out;
  out.checkpointing = training ? parts_.checkpointing : nn::CheckpointPolicy();
  out.training = training;
  out.embedding_noise = config().neftune_noise_alpha.value_or(0);
  out.seed = uint64_t(config().shuffle_seed_train);
  if (ranks_.parts() > 1) out.ranks = &ranks_;
  return out;
}

void Trainer::worked(Work::Kind kind, int64_t done, int64_t total) const {
  if (parts_.watcher && ranks_.first()) parts_.watcher->worked({kind, done, total});
}

Trainer::RankBatch Trainer::rank_batch_of(const MicroBatch& micro) const {
  const std::span<const data::Example* const> all(micro);
  const auto [begin, end] = ranks_.rows(int64_t(micro.size()));
  RankBatch part;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto tokens = int64_t(all[i]->tokens.size());
    if (int64_t(i) < begin) part.first_token += tokens;
    part.tokens += tokens;
  }
  part.batch = method_->collate_part(all, size_t(begin), size_t(end));
  if (ranks_.parts() > 1 && !(part.batch.weight > 0)) {
    const auto learned = std::ranges::find_if(all, [](const data::Example* e) { return e->labelled() > 0; });
    const size_t lent = learned == all.end() ? 0 : size_t(learned - all.begin());
    part.batch = method_->collate_part(all, lent, lent + 1);
    part.share = 0;
  }
  return part;
}

// `micro`: of source_->part().
Trainer::RankBatch Trainer::rank_batch_of(const RankExamples& own, size_t micro) const {
  RankBatch part;
  part.first_token = own.first_token, part.tokens = own.tokens;
  part.batch = method_->collate_part(own.examples, 0, own.examples.size());
  if (ranks_.parts() > 1 && !(part.batch.weight > 0)) {
    const data::Example* const lent = &source_->lent(micro);
    part.batch = method_->collate_part({&lent, 1}, 0, 1);
    part.share = 0;
  }
  return part;
}

std::vector<Trainer::RankBatch> Trainer::rank_batches_of(int64_t step) const {
  std::vector<RankBatch> out;
  if (method_->needs_neighbours()) {
    for (const MicroBatch& micro : source_->step(step)) out.push_back(rank_batch_of(micro));
    return out;
  }
  for (const RankExamples& own : source_->part(step, ranks_)) out.push_back(rank_batch_of(own, out.size()));
  return out;
}

Loss Trainer::loss_of(const RankBatch& part, Forwarding how, double mean_share) const {
  RouterWatch routers(*parts_.model, router_losses_);
  how.routers = &routers;
  how.share = part.share;
  Loss loss = method_->loss(*parts_.model, part.batch, how);
  routers.add_to(loss, mean_share);
  if (part.share != 1) {
    loss.sum = loss.sum * part.share;
    for (Metric& metric : loss.metrics) metric.sum *= part.share, metric.count *= part.share;
  }
  sum_over_ranks(ranks_, loss.metrics);
  return loss;
}

// One update: the losses of all micro-batches and ranks, divided by the weight of all of them.
std::optional<Trainer::StepResult> Trainer::update(int64_t step, bool metrics, const Stop& stop) {
  const std::vector<RankBatch> parts = rank_batches_of(step);
  StepResult result;
  double totals[4] = {0, 0, 0, 0};  // weight, tokens, examples, parts
  for (const RankBatch& part : parts) {
    totals[0] += part.share * part.batch.weight;
    totals[1] += part.share * double(part.batch.size());
    totals[2] += part.share * double(part.batch.examples);
    totals[3] += part.share;
  }
  ranks_.sum(totals);
  const double weight = std::max(method_->divisor(totals[0]), 1e-9);
  result.tokens = int64_t(totals[1]), result.examples = int64_t(totals[2]);

  Forwarding how = forwarding(true);
  how.step = uint64_t(step);
  how.metrics = metrics;
  Means means;
  double sum = 0;
  int64_t tokens = 0;  // of the micro-batches before
  std::vector<UpdatePart> ways;
  for (const RankBatch& part : parts) {
    how.first_token = tokens + part.first_token, how.share = part.share, how.part = int64_t(ways.size());
    ways.push_back({part.batch, how});
    tokens += part.tokens;
  }
  method_->begin_update(*parts_.model, ways);
  for (size_t i = 0; i < parts.size(); ++i) {
    worked(Work::Kind::step, int64_t(i), int64_t(parts.size()));
    if (i > 0 && stop()) {
      optimizer_->drop_gradients();
      return std::nullopt;
    }
    const Loss loss = loss_of(parts[i], ways[i].forwarding, weight / std::max(totals[3], 1.0));
    sum += loss.sum.item<double>();
    (loss.sum / weight).backward();
    means.add(loss.metrics);
  }
  ranks_.sum({&sum, 1});
  result.loss = sum / weight;
  result.metrics = means.values();
  ranks_.reduce_gradients(parts_.model->parameters());
  result.gradient_norm = ranks_.gradient_norm(parts_.model->parameters());

  if (config().loss().break_on_nan && !result.finite()) {
    optimizer_->drop_gradients();
    return result;
  }
  if (clip_grad_)
    if (const double factor = clip_factor(result.gradient_norm, *clip_grad_); factor < 1)
      optimizer_->scale_gradients(factor);
  optimizer_->step(rate_at(step));
  tokens_seen_ += result.tokens;
  method_->updated(*parts_.model, step + 1);
  return result;
}

EvaluationReport Trainer::evaluate() {
  return *evaluate([] { return false; });
}

namespace {

// What an evaluation has added up.
struct EvaluationSums {
  double loss = 0, weight = 0;
  std::vector<Metric> metrics = {};
  int64_t tokens = 0, examples = 0;

  void add(const std::array<double, 4>& totals, const std::vector<Metric>& of_batch) {
    loss += totals[0], weight += totals[1];
    tokens += int64_t(totals[2]), examples += int64_t(totals[3]);
    for (const Metric& metric : of_batch) {
      const auto found = std::ranges::find(metrics, metric.name, &Metric::name);
      if (found == metrics.end())
        metrics.push_back(metric);
      else
        found->sum += metric.sum, found->count += metric.count;
    }
  }
  double mean_loss() const { return loss / std::max(weight, 1e-9); }
  void add_to(std::vector<std::pair<std::string, double>>& values, const std::string& prefix) const {
    for (const Metric& m : metrics)
      if (m.count > 0 || m.over == Metric::Over::batches)
        values.emplace_back(prefix + m.name, m.count > 0 ? m.value() : 0);
  }
};

}  // namespace

std::optional<EvaluationReport> Trainer::evaluate(const Stop& stop) {
  if (evaluation_sets_.empty())
    refuse("mixture.evaluation", "there is no evaluation data", "give an inform with split: validation");
  const auto begin = Clock::now();
  const c10::AutoGradMode no_grad(false);
  const ShownAverage average(*optimizer_);
  const int64_t batch =
      config().eval_batch_size.value_or(config().total_batch_size / config().gradient_accumulation_steps);
  const int64_t at_once = std::max<int64_t>(1, batch / method_->evaluated_per_row());
  const auto batches_of = [&](const EvaluationSet& set) {
    const int64_t all = (set.data->size() + at_once - 1) / at_once;
    return std::min(all, config().max_evaluation_steps.value_or(all));
  };
  int64_t done = 0, all_batches = 0;
  for (const EvaluationSet& set : evaluation_sets_) all_batches += batches_of(set);
  EvaluationReport report;
  EvaluationSums whole;
  for (const EvaluationSet& set : evaluation_sets_) {
    EvaluationSums own;
    for (int64_t k = 0; k < batches_of(set); ++k, ++done) {
      if (stop()) return std::nullopt;
      worked(Work::Kind::evaluation, done, all_batches);
      const int64_t first = k * at_once;
      std::vector<data::Example> examples;
      for (int64_t i = first; i < std::min(set.data->size(), first + at_once); ++i)
        examples.push_back(set.data->at(set.data->index(0, i)));
      if (parts_.trainer.facts().token_loss && parts_.model->task() == models::Task::causal_lm)
        data::count_text_bytes(examples, *parts_.tokenizer, config().loss().shift_tokens);
      examples = method_->evaluated(std::move(examples), sampler_.get(), first);
      MicroBatch micro;
      for (const data::Example& example : examples) micro.push_back(&example);
      const RankBatch part = rank_batch_of(micro);
      const Loss loss = loss_of(part, forwarding(false), method_->divisor(part.batch.weight));
      std::array<double, 4> totals = {loss.sum.item<double>(), part.share * part.batch.weight,
                                      part.share * double(part.batch.size()), part.share * double(part.batch.examples)};
      ranks_.sum(totals);
      whole.add(totals, loss.metrics);
      own.add(totals, loss.metrics);
    }
    if (set.name.empty() || evaluation_sets_.size() == 1) continue;
    report.of_sets.emplace_back(set.name + "/loss", own.mean_loss());
    own.add_to(report.of_sets, set.name + "/");
  }
  report.loss = whole.mean_loss();
  whole.add_to(report.metrics, "");
  report.tokens = whole.tokens, report.examples = whole.examples;
  report.seconds = seconds_since(begin);
  return report;
}

std::optional<BenchmarkReport> Trainer::run_benchmarks(const std::atomic<bool>& stop) {
  const auto begin = Clock::now();
  const ShownAverage average(*optimizer_);
  static const std::atomic<bool> never = false;  // a signal may reach one rank and not the others
  auto metrics = parts_.benchmarks->run(ranks_.count() > 1 ? never : stop, [this](int64_t done, int64_t total) {
    worked(Work::Kind::benchmarks, done, total);
  });
  if (!metrics) return std::nullopt;
  BenchmarkReport report;
  report.metrics = std::move(*metrics);
  report.seconds = seconds_since(begin);
  return report;
}

std::vector<Preview> Trainer::make_previews(int64_t step) {
  const ShownAverage average(*optimizer_);
  return previews_->after(step);
}

namespace {

constexpr const char* after_divergence = "lower learning_rate, set clip_grad, or check the data";

}  // namespace

std::string Trainer::not_finite() const {
  const std::string here = models::first_not_finite(*parts_.model);
  const bool anywhere = ranks_.any(!here.empty());
  return here.empty() && anywhere ? "a parameter on another rank" : here;
}

Value Trainer::document() const {
  if (!parts_.document.is_null()) return parts_.document;
  Value out = Value::map(), model = Value::map();
  model.set("name_or_path", Value::text(parts_.model->folder().string()));
  out.set("model", model);
  out.set("trainer", config::write(parts_.trainer));
  out.set("mixture", config::write(parts_.mixture));
  return out;
}

RunState Trainer::state_at(int64_t step) const {
  RunState state;
  state.step = step;
  state.tokens_seen = tokens_seen_;
  state.optimizer_steps = optimizer_->steps();
  state.seed = uint64_t(parts_.mixture.seed.value_or(config().shuffle_seed_train));
  state.cursor = source_->cursor(step);
  if (training_) state.cursor.set(order_key, Value::text(data_order(config(), parts_.mixture, training_->windows())));
  state.data = source_->fingerprint();
  state.update = config().total_batch_size;
  state.order_class = order();
  state.method = method_->state().document;
  state.document = document();
  if (training_) state.bad_rows = bad_rows();
  state.has_optimizer = config().save_optimizer_state;
  state.history = history_;
  state.history->best_model = best_->state();
  return state;
}

// On several ranks each one has counted those of its own part of a stream.
Value Trainer::bad_rows() const {
  const data::DatasetReport& own = training_->report();
  if (!training_->is_stream() || training_->packed_stream() || ranks_.parts() == 1) return own.bad_rows();
  data::DatasetReport all;
  for (const std::string& text : ranks_.of_parts(to_json(own.bad_rows()))) {
    const Value rows = parse_json(text, "bad rows of a rank");
    if (!rows.is_map()) continue;
    all.skipped += rows.find("count")->as_int().value_or(0);
    for (const Value& row : rows.find("first")->items)
      if (all.skipped_rows.size() < data::named_skipped_rows) all.skipped_rows.push_back(row.scalar);
  }
  return all.bad_rows();
}

void Trainer::save(int64_t step) {
  if (saved_step_ == step) return;
  if (const std::string broken = not_finite(); !broken.empty())
    refuse(str("step ", step), str("the weights are not finite (", broken, "), so they are not saved"),
           after_divergence);
  const RunState state = state_at(step);
  last_saved_ = checkpoints_.path_of(step);
  saved_step_ = step;
  // The first rank writes; the others send it their parts.
  if (!ranks_.first()) return write_checkpoint({}, state);
  checkpoints_.save(step, [&](const std::filesystem::path& folder) { write_checkpoint(folder, state); });
  log::info("saved ", last_saved_.string());
  if (config().remove_ckpt_after_load && !resumed_from_.empty() && resumed_from_ != last_saved_)
    checkpoints_.remove(std::exchange(resumed_from_, {}));
}

std::filesystem::path Trainer::keep_diverged(int64_t step) {
  if (saved_step_ == step) {
    if (ranks_.first()) checkpoints_.rename_diverged(step);
    saved_step_ = -1;
    return checkpoints_.diverged_path(step);
  }
  if (step == plan_.from_step || !not_finite().empty()) return {};
  const RunState state = state_at(step);
  if (ranks_.first())
    checkpoints_.save_diverged(step, [&](const std::filesystem::path& folder) { write_checkpoint(folder, state); });
  else
    write_checkpoint({}, state);
  return checkpoints_.diverged_path(step);
}

void Trainer::write_model(const std::filesystem::path& folder, bool at_end) {
  const models::Adapter* const adapter = trained_adapter(*parts_.model);
  // A run with an adapter saves it alone, and at its end the whole model, too.
  const bool whole = !adapter || (at_end && merges_adapter(*parts_.model, config().merge_lora_before_save));
  if (adapter) {
    const std::string name = parts_.model_name.empty() ? parts_.model->folder().string() : parts_.model_name;
    models::save_adapter(*parts_.model, *adapter, adapter_folder(folder), name);
  }
  if (whole)
    models::save_model(*parts_.model, folder, parts_.save_dtype, models::default_shard_bytes,
                       merge_of_run(*parts_.model, parts_.load));
  if (whole && ranks_.first()) method_->write_files(folder);
  if (!ranks_.first() || !parts_.tokenizer) return;
  const text::ChatFingerprint chat = chat_fingerprint(parts_.model->folder(), *parts_.tokenizer);
  const auto save_tokenizer = [&](const std::filesystem::path& to) {
    text::save_tokenizer(*parts_.tokenizer, to);
    text::save_chat_fingerprint(chat, to);
  };
  if (adapter) save_tokenizer(adapter_folder(folder));
  if (whole) save_tokenizer(folder);
}

void Trainer::write_checkpoint(const std::filesystem::path& folder, const RunState& state) {
  const bool at_end = state.step == plan_.steps;
  if (optimizer_->has_moving_average()) {
    const ShownAverage average(*optimizer_);
    if (ranks_.first()) files::make_directories(folder / "ema");
    write_model(folder / "ema", at_end);
  }
  // An average that belongs to the optimizer's rule is the model.
  std::optional<ShownAverage> average;
  if (!optimizer_->has_moving_average()) average.emplace(*optimizer_);
  write_model(folder, at_end);
  if (config().save_optimizer_state) write_optimizer(ranks_, folder, *optimizer_, method_->state());
  if (ranks_.first()) write_state(folder, state);
}

std::string Trainer::order() const {
  const auto& entries = parts_.model->parameters().entries();
  const std::string own = order_class(entries.empty() ? at::kFloat : entries.front().compute);
  return ranks_.count() == 1 ? own : str(own, ", ", ranks_.mesh());
}

bool Trainer::is_due(int64_t step, std::optional<int64_t> interval) const {
  return step == plan_.steps || (interval && step % *interval == 0);
}

std::string Trainer::title() const {
  return str(parts_.trainer.common.trainer_type, " of ", checkpoints_.folder().filename().string());
}

}  // namespace easydel::train
