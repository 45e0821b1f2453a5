#include "easydel/train/trainer.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/kernels/peak.h"
#include "easydel/train/interrupt.h"
#include "easydel/train/router_watch.h"

namespace easydel::train {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Of one step's micro-batches: each name's mean over them, in the order of the names' first appearance.
class Means {
 public:
  void add(const std::vector<Metric>& metrics) {
    for (const Metric& metric : metrics) {
      auto found = std::find_if(sums_.begin(), sums_.end(), [&](const auto& s) { return s.name == metric.name; });
      if (found == sums_.end()) found = sums_.insert(sums_.end(), {metric.name, 0, 0});
      found->sum += metric.count > 0 ? metric.sum / metric.count : 0;
      found->count += 1;
    }
  }
  std::vector<std::pair<std::string, double>> values() const {
    std::vector<std::pair<std::string, double>> out;
    for (const Metric& m : sums_) out.emplace_back(m.name, m.sum / m.count);
    return out;
  }

 private:
  std::vector<Metric> sums_;
};

void sum_over_ranks(const Ranks& ranks, std::vector<Metric>& metrics) {
  std::vector<double> values;
  for (const Metric& metric : metrics) values.insert(values.end(), {metric.sum, metric.count});
  ranks.sum(values);
  for (size_t i = 0; i < metrics.size(); ++i) metrics[i].sum = values[2 * i], metrics[i].count = values[2 * i + 1];
}

// What the machine can do at most, in TFLOP/s; nothing for a run so short that measuring would be felt.
std::optional<double> measured_peak(const models::Model& model, const Plan& plan, bool watched) {
  constexpr int64_t worth_measuring = 50;
  if (!watched || plan.steps - plan.from_step < worth_measuring) return std::nullopt;
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.shard.is_cpu()) return std::nullopt;  // the kernels measure the processor
  const kernels::Peaks peaks = kernels::measure_peaks(kernels::openmp_executor());
  return std::max(peaks.fp32_gflops, peaks.bf16_gflops) / 1e3;
}

}  // namespace

// Speed since the last report, and how long the rest will take.
class Trainer::Pace {
 public:
  Pace(int64_t first_step, int64_t steps, std::optional<double> peak)
      : first_step_(first_step), steps_(steps), peak_(peak) {}
  void add(const StepResult& result) { tokens_ += result.tokens, examples_ += result.examples; }
  void pause(double seconds) { paused_ += seconds; }  // evaluation and saving are not training
  double seconds() const { return seconds_since(begin_); }

  void fill(StepReport& report, double flops_per_token) {
    const double now = seconds() - paused_, since = std::max(now - last_, 1e-9);
    report.seconds = seconds();
    report.tokens_per_second = static_cast<double>(tokens_) / since;
    report.examples_per_second = static_cast<double>(examples_) / since;
    report.teraflops = report.tokens_per_second * flops_per_token / 1e12;
    if (peak_) report.share_of_peak = report.teraflops / *peak_;
    const auto done = static_cast<double>(report.step - first_step_);
    report.seconds_left = done > 0 ? now / done * static_cast<double>(steps_ - report.step) : 0;
    last_ = now;
    tokens_ = examples_ = 0;
  }

 private:
  Clock::time_point begin_ = Clock::now();
  int64_t first_step_, steps_, tokens_ = 0, examples_ = 0;
  std::optional<double> peak_;
  double last_ = 0, paused_ = 0;
};

Trainer::~Trainer() = default;

Forwarding Trainer::forwarding(bool training) const {
  Forwarding out;
  out.checkpointing = training ? parts_.checkpointing : nn::CheckpointPolicy();
  out.attention = parts_.load.attention;
  out.training = training;
  out.seed = static_cast<uint64_t>(config().shuffle_seed_train);
  return out;
}

Trainer::Part Trainer::part_of(const MicroBatch& micro) const {
  const std::span<const data::Example* const> all(micro);
  const auto [begin, end] = ranks_.rows(static_cast<int64_t>(micro.size()));
  Part part;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto tokens = static_cast<int64_t>(all[i]->tokens.size());
    if (static_cast<int64_t>(i) < begin) part.first_token += tokens;
    part.tokens += tokens;
  }
  part.batch = method_->collate(all.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  if (ranks_.parts() > 1 && !(part.batch.weight > 0)) {
    const auto learned = std::ranges::find_if(all, [](const data::Example* e) { return e->labelled() > 0; });
    const size_t lent = learned == all.end() ? 0 : static_cast<size_t>(learned - all.begin());
    part.batch = method_->collate(all.subspan(lent, 1));
    part.share = 0;
  }
  return part;
}

Loss Trainer::loss_of(const Part& part, Forwarding how, double mean_share) const {
  RouterWatch routers(*parts_.model, router_losses_);
  how.routers = &routers;
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
Trainer::StepResult Trainer::update(int64_t step, bool metrics) {
  std::vector<Part> parts;
  StepResult result;
  double totals[4] = {0, 0, 0, 0};  // weight, tokens, examples, parts
  for (const MicroBatch& micro : source_->step(step)) {
    const Part& part = parts.emplace_back(part_of(micro));
    totals[0] += part.share * part.batch.weight;
    totals[1] += part.share * static_cast<double>(part.batch.size());
    totals[2] += part.share * static_cast<double>(part.batch.examples);
    totals[3] += part.share;
  }
  ranks_.sum(totals);
  const double weight = std::max(method_->divisor(totals[0]), 1e-9);
  result.tokens = static_cast<int64_t>(totals[1]), result.examples = static_cast<int64_t>(totals[2]);

  Forwarding how = forwarding(true);
  how.step = static_cast<uint64_t>(step);
  how.metrics = metrics;
  Means means;
  double sum = 0;
  int64_t tokens = 0;  // of the micro-batches before
  for (const Part& part : parts) {
    how.first_token = tokens + part.first_token;
    const Loss loss = loss_of(part, how, weight / std::max(totals[3], 1.0));
    sum += loss.sum.item<double>();
    (loss.sum / weight).backward();
    means.add(loss.metrics);
    tokens += part.tokens;
  }
  ranks_.sum({&sum, 1});
  result.loss = sum / weight;
  result.metrics = means.values();
  ranks_.reduce_gradients(parts_.model->parameters());
  result.gradient_norm = ranks_.gradient_norm(parts_.model->parameters());

  if (config().loss().break_on_nan && (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm))) {
    optimizer_->drop_gradients();
    return result;
  }
  if (config().clip_grad)
    if (const double factor = clip_factor(result.gradient_norm, *config().clip_grad); factor < 1) optimizer_->scale_gradients(factor);
  optimizer_->step(schedule_.at(step));
  tokens_seen_ += result.tokens;
  method_->updated(*parts_.model, step + 1);
  return result;
}

EvaluationReport Trainer::evaluate() {
  if (!evaluation_)
    refuse("mixture.evaluation", "there is nothing to evaluate on", "give an inform with split: validation");
  const auto begin = Clock::now();
  const c10::AutoGradMode no_grad(false);
  const int64_t at_once = config().eval_batch_size.value_or(
      std::max<int64_t>(1, config().total_batch_size / config().gradient_accumulation_steps));
  const auto order = evaluation_->epoch(0);
  EvaluationReport report;
  std::vector<Metric> metrics;
  double sum = 0, weight = 0;
  int64_t batches = 0;
  for (size_t i = 0; i < order.size(); i += static_cast<size_t>(at_once), ++batches) {
    if (config().max_evaluation_steps && batches == *config().max_evaluation_steps) break;
    MicroBatch micro;
    for (size_t k = i; k < std::min(order.size(), i + static_cast<size_t>(at_once)); ++k)
      micro.push_back(&evaluation_->at(order[k]));
    const Part part = part_of(micro);
    const Loss loss = loss_of(part, forwarding(false), method_->divisor(part.batch.weight));
    double totals[4] = {loss.sum.item<double>(), part.share * part.batch.weight,
                        part.share * static_cast<double>(part.batch.size()),
                        part.share * static_cast<double>(part.batch.examples)};
    ranks_.sum(totals);
    sum += totals[0], weight += totals[1];
    report.tokens += static_cast<int64_t>(totals[2]), report.examples += static_cast<int64_t>(totals[3]);
    if (metrics.empty()) {
      metrics = loss.metrics;
    } else {
      for (size_t m = 0; m < std::min(metrics.size(), loss.metrics.size()); ++m)
        metrics[m].sum += loss.metrics[m].sum, metrics[m].count += loss.metrics[m].count;
    }
  }
  report.loss = sum / std::max(weight, 1e-9);
  for (const Metric& m : metrics) report.metrics.emplace_back(m.name, m.count > 0 ? m.sum / m.count : 0);
  report.seconds = seconds_since(begin);
  return report;
}

void Trainer::save(int64_t step) {
  if (saved_step_ == step) return;
  RunState state;
  state.step = step;
  state.tokens_seen = tokens_seen_;
  state.optimizer_steps = optimizer_->steps();
  state.seed = static_cast<uint64_t>(parts_.mixture.seed.value_or(config().shuffle_seed_train));
  state.cursor = source_->cursor(step);
  state.data = source_->fingerprint();
  state.update = config().total_batch_size;
  state.order_class = order();
  state.document = parts_.document;
  last_saved_ = checkpoints_.path_of(step);
  saved_step_ = step;
  // The first rank writes; the others send it their parts.
  if (!ranks_.first()) return write_checkpoint({}, state);
  checkpoints_.save(step, [&](const std::filesystem::path& folder) { write_checkpoint(folder, state); });
  log::info("saved ", last_saved_.string());
  if (config().remove_ckpt_after_load && !resumed_from_.empty() && resumed_from_ != last_saved_)
    checkpoints_.remove(std::exchange(resumed_from_, {}));
}

void Trainer::write_checkpoint(const std::filesystem::path& folder, const RunState& state) {
  models::save_model(*parts_.model, folder, parts_.save_dtype);
  if (config().save_optimizer_state) write_optimizer(ranks_, folder, *optimizer_, method_->state().get());
  if (!ranks_.first()) return;
  if (parts_.tokenizer) text::save_tokenizer(*parts_.tokenizer, folder);
  write_state(folder, state);
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

Outcome Trainer::run() {
  const Interrupt interrupt;
  Outcome outcome;
  outcome.step = plan_.from_step, outcome.steps = plan_.steps, outcome.checkpoint = last_saved_;
  if (plan_.from_step >= plan_.steps) {
    log::info("nothing is left to train: ", plan_.checkpoint, " has all ", plan_.steps, " steps");
    return outcome;
  }
  const std::string prefix = config().trainer_prefix.value_or("");
  const auto metrics_file = checkpoints_.folder() / "metrics.jsonl";
  std::optional<Records> records;
  if (config().report_metrics && ranks_.first()) {
    files::make_directories(checkpoints_.folder());
    records.emplace(metrics_file, plan_.from_step);
  }
  method_->examine(source_->examples(), forwarding(false));
  if (evaluation_) method_->examine(evaluation_->examples(), forwarding(false));

  Watcher quiet;
  Watcher& watcher = parts_.watcher && ranks_.first() ? *parts_.watcher : quiet;
  watcher.started(plan_.from_step, plan_.steps);
  const auto peak = measured_peak(*parts_.model, plan_, parts_.watcher != nullptr);
  Pace pace(plan_.from_step, plan_.steps, peak);
  const auto evaluate_now = [&](int64_t step) {
    EvaluationReport report = evaluate();
    report.step = step;
    pace.pause(report.seconds);
    if (records) records->add(as_record(report, prefix));
    watcher.evaluated(report);
    (outcome.before ? outcome.after : outcome.before) = report;
    if (step > plan_.from_step) outcome.after = report;
  };
  const auto save_now = [&](int64_t step) {
    const auto begin = Clock::now();
    save(step);
    outcome.checkpoint = last_saved_;
    pace.pause(seconds_since(begin));
  };
  if (evaluation_ && (!config().do_train || (config().eval_on_start && plan_.from_step == 0)))
    evaluate_now(plan_.from_step);
  if (!config().do_train) {
    watcher.finished();
    return outcome;
  }

  const double limit = config().training_time_limit ? seconds_of(*config().training_time_limit).value_or(0) : INFINITY;
  const double flops = parts_.model->training_flops_per_token(plan_.examples ? plan_.tokens / plan_.examples : 1);
  const std::optional<int64_t> evaluation_steps = config().evaluation_steps.value_or(plan_.steps_in_epoch);
  double losses = 0, since_record = 0, last_save_seconds = 0;
  int64_t in_record = 0;
  for (int64_t step = plan_.from_step; step < plan_.steps;) {
    const int64_t number = step + 1;
    const bool logged = is_due(number, config().log_steps) || number == 1,
               recorded = is_due(number, config().report_steps) || number == 1;
    const StepResult result = update(step, logged || recorded);
    if (config().loss().break_on_nan && (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm))) {
      watcher.finished();
      if (step > 0) save_now(step);
      refuse(str("step ", number), str("the loss is ", result.loss, " and the gradient's norm ", result.gradient_norm),
             (outcome.checkpoint.empty() ? std::string("nothing was saved")
                                         : "the steps before it are in " + outcome.checkpoint.string()) +
                 "; lower learning_rate, set clip_grad, or look at the data");
    }
    outcome.step = step = number;
    losses += result.loss, since_record += result.loss, ++in_record;
    outcome.train_loss = losses / static_cast<double>(step - plan_.from_step);
    pace.add(result);
    StepReport report;
    report.step = step, report.steps = plan_.steps;
    report.epoch = static_cast<double>(step) / static_cast<double>(plan_.steps_in_epoch);
    report.loss = result.loss, report.learning_rate = schedule_.at(step - 1);
    if (config().log_grad_norms) report.gradient_norm = result.gradient_norm;
    report.tokens = result.tokens, report.tokens_seen = tokens_seen_;
    report.metrics = result.metrics;
    report.logged = logged;
    if (config().track_memory) {
      rusage usage = {};
      getrusage(RUSAGE_SELF, &usage);
      report.metrics.emplace_back("peak_memory_bytes", static_cast<double>(usage.ru_maxrss) * 1024);
    }
    pace.fill(report, flops);
    if (records && recorded) {
      report.loss = std::exchange(since_record, 0) / static_cast<double>(std::exchange(in_record, 0));
      records->add(as_record(report, prefix));
      report.loss = result.loss;
    }
    watcher.stepped(report);

    // Each rank has its own clock, and a signal may reach one before the other: they stop and save at the same step.
    const bool long_ago =
        config().save_interval_minutes && pace.seconds() - last_save_seconds >= 60 * *config().save_interval_minutes;
    double wishes[3] = {double(interrupt.signal()), pace.seconds() > limit ? 1.0 : 0.0, long_ago ? 1.0 : 0.0};
    ranks_.max(wishes);
    outcome.signal = int(wishes[0]);
    const bool stop = outcome.signal != 0 || wishes[1] != 0, minutes = wishes[2] != 0;
    if (evaluation_ && config().do_eval && !stop && is_due(step, evaluation_steps)) evaluate_now(step);
    if (stop || minutes || (config().save_steps && step % *config().save_steps == 0) ||
        (step == plan_.steps && config().do_last_save)) {
      save_now(step);
      last_save_seconds = pace.seconds();
    }
    if (!stop) continue;
    outcome.finished = step == plan_.steps;
    watcher.finished();
    log::warning(outcome.signal ? "stopped by a signal" : "stopped by training_time_limit", " after step ", step,
                 " of ", plan_.steps, "; saved in ", outcome.checkpoint.string(), "; run again to go on");
    return outcome;
  }
  watcher.finished();
  if (records) {
    records.reset();
    files::write(checkpoints_.folder() / "loss.svg", loss_curve(metrics_file, title(), prefix));
  }
  return outcome;
}

}  // namespace easydel::train
