// A run from its first step to its end: what is reported, evaluated and saved on the way, and why it stops.
#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/ops/product.h"
#include "easydel/train/event_file.h"
#include "easydel/train/interrupt.h"
#include "easydel/train/joint_error.h"
#include "easydel/train/machine_figures.h"
#include "easydel/train/time_left.h"
#include "easydel/train/trainer.h"

namespace easydel::train {

class Trainer::Course {
  // Files in the run's folder that ask for a save, or for a save and the end, after the step that is computed.
  static constexpr const char *save_wish = "save", *stop_wish = "stop";

 public:
  Course(Trainer& trainer, const Interrupt& interrupt)
      : trainer_(trainer),
        plan_(trainer.plan_),
        config_(trainer.config()),
        history_(trainer.history_),
        interrupt_(interrupt),
        watcher_(trainer.parts_.watcher && trainer.ranks_.first() ? *trainer.parts_.watcher : quiet_),
        stop_([this] { return trainer_.ranks_.any(interrupt_.signal() != 0); }),
        seconds_before_(history_.seconds) {
    outcome_.step = plan_.from_step, outcome_.steps = plan_.steps, outcome_.checkpoint = trainer.last_saved_;
    outcome_.before = report_of(history_.first_evaluation);
    if (config_.training_time_limit) limit_ = seconds_of(*config_.training_time_limit).value_or(0);
    // A forward alone costs a third of forward and backward. A disk writes some hundred MB a second.
    const double tokens_in_step = double(plan_.tokens) / double(std::max<int64_t>(1, plan_.steps_in_epoch));
    time_left_ = TimeLeft(plan_.tokens > 0 ? double(plan_.evaluation_tokens) / tokens_in_step / 3 : 0,
                          double(plan_.checkpoint_bytes) / 500e6);
    flops_per_token_ =
        trainer.parts_.model->training_flops_per_token(plan_.examples ? plan_.tokens / plan_.examples : 1);
    if (config_.report_metrics && trainer.ranks_.first()) {
      files::make_directories(trainer.checkpoints_.folder());
      records_.emplace(metrics_file(), plan_.from_step);
      if (config_.tensorboard) events_.emplace(trainer_.checkpoints_.folder(), plan_.from_step);
      if (events_ && plan_.from_step == 0) events_->add_text(0, "configuration", to_json(trainer_.document(), 2));
    }
    if (trainer.previews_ && trainer.ranks_.first()) {
      files::make_directories(trainer.checkpoints_.folder());
      previews_.emplace(trainer.checkpoints_.folder() / "previews.jsonl", plan_.from_step);
    }
  }

  Outcome run() {
    watcher_.started(plan_.from_step, plan_.steps);
    // In a shorter run the measurement would be felt.
    if (trainer_.parts_.watcher && plan_.steps - plan_.from_step >= 50) peak_ = measured_peak(*trainer_.parts_.model);
    begin_ = Clock::now();
    if (trainer_.ranks_.first())
      for (const char* wish : {save_wish, stop_wish}) files::remove_all(trainer_.checkpoints_.folder() / wish);
    if (begins_with_evaluation() && !evaluate() && ends()) return outcome_;
    if (begins_with_benchmarks() && !benchmark() && ends()) return outcome_;
    if (preview_was_left()) preview();
    while (config_.do_train && outcome_.step < plan_.steps && !trainer_.best_->stops()) {
      step();
      if (ends()) return outcome_;
    }
    log::debug(ops::packed_weights(), " weights were packed");
    finish();
    return outcome_;
  }

  // For a run whose steps are all made: what was due and is not there, because the process before was stopped.
  Outcome make_up() {
    begin_ = Clock::now();
    outcome_.after = report_of(history_.last_evaluation);
    if ((evaluation_was_left() && !evaluate()) || (benchmarks_were_left() && !benchmark())) {
      outcome_.signal = stop_signal();
      return outcome_;
    }
    if (preview_was_left()) preview();
    if (trainer_.ranks_.first()) trainer_.checkpoints_.prune(plan_.from_step);
    finish();
    return outcome_;
  }

 private:
  std::string prefix() const { return config_.trainer_prefix.value_or(""); }
  std::string named(const std::string& name) const { return prefix().empty() ? name : prefix() + "/" + name; }
  std::filesystem::path metrics_file() const { return trainer_.checkpoints_.folder() / "metrics.jsonl"; }
  double seconds() const { return seconds_since(begin_); }

  static std::optional<EvaluationReport> report_of(const std::optional<RunHistory::Evaluation>& evaluation) {
    if (!evaluation) return std::nullopt;
    EvaluationReport out;
    out.step = evaluation->step, out.loss = evaluation->loss;
    return out;
  }

  bool evaluation_is_due(int64_t step) const {
    return !trainer_.evaluation_sets_.empty() && config_.do_eval &&
           trainer_.is_due(step, config_.evaluation_steps.value_or(plan_.steps_in_epoch));
  }

  // Whether something was due at the step that the run goes on from, and there is no trace of it: `last` is the step of
  // the last one that was made, `key` what a record of it has.
  bool was_left(bool due, std::optional<int64_t> last, const std::optional<Records>& records,
                const std::string& key) const {
    if (plan_.from_step == 0 || !config_.do_train || !due) return false;
    const bool made = last.value_or(0) >= plan_.from_step || (records && records->has(key));
    const bool unknown = !trainer_.history_is_known_ && !config_.report_metrics;
    return trainer_.ranks_.any(trainer_.ranks_.first() && !made && !unknown);
  }

  bool evaluation_was_left() const {
    const auto& last = history_.last_evaluation;
    return was_left(evaluation_is_due(plan_.from_step), last ? last->step : 0, records_, named("eval_loss"));
  }

  bool benchmarks_are_due(int64_t step) const {
    return trainer_.parts_.benchmarks && config_.do_train && trainer_.is_due(step, config_.benchmark_interval);
  }

  bool benchmarks_were_left() const {
    const auto& last = history_.last_benchmarks;
    return was_left(benchmarks_are_due(plan_.from_step), last ? last->step : 0, records_, named("eval/"));
  }

  bool begins_with_benchmarks() const {
    const bool on_start = trainer_.parts_.benchmarks && config_.eval_on_start && plan_.from_step == 0;
    return (on_start && config_.do_train) || benchmarks_were_left();
  }

  bool preview_is_due(int64_t step) const {
    return trainer_.previews_ && trainer_.is_due(step, config_.generation_interval);
  }

  bool preview_was_left() const {
    return was_left(preview_is_due(plan_.from_step), history_.last_preview, previews_, "prompt");
  }

  bool begins_with_evaluation() const {
    if (trainer_.evaluation_sets_.empty()) return false;
    const bool on_start = config_.do_eval && config_.eval_on_start && plan_.from_step == 0;
    return !config_.do_train || on_start || evaluation_was_left();
  }

  void finish() {
    watcher_.finished();
    // An average that belongs to the optimizer's rule is the model.
    if (!trainer_.optimizer_->has_moving_average()) trainer_.optimizer_->show_average();
    load_best();
    if (!records_ || !config_.do_train) return;
    records_.reset();
    try {
      const auto write = [&](const char* name, auto picture) {
        const std::string svg = picture(metrics_file(), trainer_.title(), prefix());
        if (!svg.empty()) files::write(trainer_.checkpoints_.folder() / name, svg);
      };
      write("loss.svg", loss_curve), write("curves.svg", all_curves), write("benchmarks.svg", benchmark_curves);
    } catch (const UserError& error) {  // the run itself is saved
      log::warning("the curves could not be written: ", error.headline());
    }
  }

  // The run ends with the weights of its best evaluation, if it was asked to.
  void load_best() {
    const std::optional<int64_t> best = trainer_.best_->step();
    if (!trainer_.best_->is_kept() || !best || !config_.do_train) return;
    outcome_.best_step = best;
    if (*best == outcome_.step) return;
    const std::filesystem::path folder = trainer_.checkpoints_.path_of(*best);
    if (trainer_.ranks_.any(trainer_.ranks_.first() && !files::exists(folder))) {
      log::warning(folder.string(), ", the best checkpoint, is not there; the model is that of the last step");
      outcome_.best_step = std::nullopt;
      return;
    }
    load_weights(folder, trainer_.parts_.load, *trainer_.parts_.model);
    outcome_.checkpoint = folder;
    log::info("the best evaluation was that after step ", *best, "; the model has its weights, from ", folder.string());
  }

  void step() {
    const int64_t number = outcome_.step + 1;
    const bool logged = trainer_.is_due(number, config_.log_steps) || number == 1,
               recorded = trainer_.is_due(number, config_.report_steps) || number == 1;
    const auto result = updated(logged || recorded);
    if (!result) return;
    if (config_.loss().break_on_nan && !result->finite()) stop_at(*result);
    outcome_.step = number;
    losses_ += result->loss;
    outcome_.train_loss = losses_ / double(number - plan_.from_step);
    history_.unrecorded_loss += result->loss, ++history_.unrecorded_steps;
    StepReport report = report_of(*result);
    report.logged = logged;
    last_losses_.push_back(result->loss);
    if (int64_t(last_losses_.size()) > std::min<int64_t>(config_.log_steps, 1000)) last_losses_.pop_front();
    report.mean_steps = int64_t(last_losses_.size());
    report.mean_loss = std::accumulate(last_losses_.begin(), last_losses_.end(), 0.0) / double(report.mean_steps);
    if (recorded) {
      StepReport record = report;
      record.loss = std::exchange(history_.unrecorded_loss, 0) / double(std::exchange(history_.unrecorded_steps, 0));
      report_record(as_record(record, prefix()));
    }
    trainer_.add_weight_histograms(number, events_ ? &*events_ : nullptr);
    watcher_.stepped(report);
  }

  void report_record(const Value& record) {
    if (records_) records_->add(record);
    if (events_) events_->add(record);
  }

  // A step that fails, for example because a reward does, ends the run after a save: nothing has changed yet.
  std::optional<StepResult> updated(bool metrics) {
    try {
      return trainer_.update(outcome_.step, metrics, stop_);
    } catch (const UserError& error) {
      const bool on_all_ranks = trainer_.ranks_.count() == 1 || dynamic_cast<const JointError*>(&error);
      if (outcome_.step > plan_.from_step && on_all_ranks) save();
      throw;
    }
  }

  int stop_signal() const {
    double signal = interrupt_.signal();
    trainer_.ranks_.max({&signal, 1});
    return int(signal);
  }

  // Evaluates and saves where the step asks for it. True: the run is over before its last step.
  bool ends() {
    // Each rank has its own clock, and a signal may reach one before the other: they stop and save at the same step.
    const bool long_ago =
        config_.save_interval_minutes && seconds() - last_save_ >= 60 * *config_.save_interval_minutes;
    const auto wished = [&](const char* name) {
      const std::filesystem::path file = trainer_.checkpoints_.folder() / name;
      if (!trainer_.ranks_.first() || !files::exists(file)) return 0.0;
      files::remove_all(file);
      return 1.0;
    };
    double wishes[5] = {double(interrupt_.signal()), seconds() > limit_ ? 1.0 : 0.0, long_ago ? 1.0 : 0.0,
                        wished(save_wish), wished(stop_wish)};
    trainer_.ranks_.max(wishes);
    outcome_.signal = int(wishes[0]);
    const bool minutes = wishes[2] != 0 || wishes[3] != 0;
    bool stop = outcome_.signal != 0 || wishes[1] != 0 || wishes[4] != 0;
    const int64_t step = outcome_.step;
    const bool evaluates = !stop && evaluation_is_due(step);
    const bool benchmarks = !stop && benchmarks_are_due(step), previews = !stop && preview_is_due(step);
    if ((evaluates && !evaluate()) || (benchmarks && !benchmark())) {
      outcome_.signal = stop_signal();
      stop = true;
    }
    if (previews && !stop) preview();
    const bool early = trainer_.best_->stops() && step < plan_.steps;
    const bool saves =
        step > 0 &&
        (stop || minutes || std::exchange(is_best_, false) || (early && config_.do_last_save) ||
         (config_.save_steps && step % *config_.save_steps == 0) || (step == plan_.steps && config_.do_last_save));
    if (saves) save();
    if (!stop && (evaluates || benchmarks || previews || saves)) {  // minutes, with a large model
      outcome_.signal = stop_signal();
      stop = outcome_.signal != 0;
      if (stop && step > 0) save();
    }
    if (!stop && early) {
      log::info("stopped early after step ", step, " of ", plan_.steps, ": ", *config_.early_stopping_patience,
                " evaluations in a row were not better");
      return false;
    }
    if (!stop) return false;
    outcome_.finished = step == plan_.steps;
    watcher_.finished();
    trainer_.ranks_.barrier();  // no rank leaves while the first one still writes
    const char* const reason = outcome_.signal    ? "stopped by a signal"
                               : wishes[4] != 0.0 ? "stopped by the file stop"
                                                  : "stopped by training_time_limit";
    log::warning(reason, " after step ", step, " of ", plan_.steps, "; ",
                 step > 0 ? "saved in " + outcome_.checkpoint.string() + "; run again to go on"
                          : std::string("nothing was saved"));
    return true;
  }

  // False: a signal came before its end, and there is no result.
  bool evaluate() {
    std::optional<EvaluationReport> made = trainer_.evaluate(stop_);
    if (!made) return false;
    EvaluationReport& report = *made;
    report.step = outcome_.step;
    paused_ += report.seconds;
    time_left_.add_evaluation(report.seconds);
    report_record(as_record(report, prefix()));
    watcher_.evaluated(report);
    const RunHistory::Evaluation evaluation{report.step, report.loss};
    if (!history_.first_evaluation) history_.first_evaluation = evaluation;
    history_.last_evaluation = evaluation;
    if (trainer_.best_->evaluated(report) && trainer_.best_->is_kept() && report.step > 0) {
      is_best_ = true;
      trainer_.checkpoints_.protect(report.step);
    }
    if (!outcome_.before) outcome_.before = report;
    if (report.step > plan_.from_step || report.step == plan_.steps) outcome_.after = report;
    return true;
  }

  // False: a signal came before its end, and there is no result.
  bool benchmark() {
    const auto begin = Clock::now();
    std::optional<BenchmarkReport> report;
    try {
      report = trainer_.run_benchmarks(interrupt_.has_come());
      if (!report) return false;
    } catch (const UserError& error) {
      if (config_.benchmark_errors == BenchmarkErrors::stop) {
        if (outcome_.step > plan_.from_step) save();
        throw;
      }
      log::warning("the benchmarks after step ", outcome_.step, " failed, and the run goes on: ", error.what());
    }
    paused_ += seconds_since(begin);
    time_left_.add_benchmarks(seconds_since(begin));
    if (!report) return true;
    report->step = outcome_.step;
    report_record(as_record(*report, prefix()));
    watcher_.benchmarked(*report);
    history_.last_benchmarks = {report->step, std::move(report->metrics)};
    return true;
  }

  void preview() {
    const auto begin = Clock::now();
    const int64_t step = outcome_.step;
    for (const Preview& made : trainer_.make_previews(step)) {
      if (!previews_) continue;
      previews_->add(as_record(made, step));
      log::info("preview after step ", step, ": ", made.prompt, " => ", made.text);
      if (events_) events_->add_text(step, "preview", made.prompt + "\n\n" + made.text);
    }
    history_.last_preview = step, paused_ += seconds_since(begin);
  }

  void save() {
    const auto begin = Clock::now();
    if (records_) records_->sync();  // the checkpoint counts on its lines
    if (previews_) previews_->sync();
    history_.seconds = seconds_before_ + seconds();
    trainer_.save(outcome_.step);
    outcome_.checkpoint = trainer_.last_saved_;
    paused_ += seconds_since(begin);
    time_left_.add_save(seconds_since(begin));
    last_save_ = seconds();
  }

  // Speed since the last report, and how long the rest will take.
  StepReport report_of(const StepResult& result) {
    StepReport report;
    report.step = outcome_.step, report.steps = plan_.steps;
    report.epoch = double(report.step) / double(plan_.steps_in_epoch);
    report.loss = result.loss, report.learning_rate = trainer_.rate_at(report.step - 1);
    if (config_.log_grad_norms) report.gradient_norm = result.gradient_norm;
    report.tokens = result.tokens, report.tokens_seen = trainer_.tokens_seen_;
    report.metrics = result.metrics;
    if (config_.track_memory) report.metrics.emplace_back("peak_memory_bytes", peak_memory_bytes());

    const double trained = seconds() - paused_, since = std::max(trained - std::exchange(reported_, trained), 1e-9);
    report.seconds = seconds_before_ + seconds();
    report.tokens_per_second = double(result.tokens) / since;
    report.examples_per_second = double(result.examples) / since;
    report.teraflops = report.tokens_per_second * flops_per_token_ / 1e12;
    if (peak_) report.share_of_peak = report.teraflops / *peak_;
    time_left_.add_step(since);
    report.seconds_left = seconds_left(report.step);
    return report;
  }

  // What is due after this step alone (its own evaluation and save, too).
  double seconds_left(int64_t step) const {
    const bool evaluates = !trainer_.evaluation_sets_.empty() && config_.do_eval;
    const int64_t evaluations =
        evaluates ? due_between(step - 1, plan_.steps, config_.evaluation_steps.value_or(plan_.steps_in_epoch), true)
                  : 0;
    const int64_t saves = due_between(step - 1, plan_.steps, config_.save_steps.value_or(0), config_.do_last_save);
    const int64_t benchmarks = trainer_.parts_.benchmarks
                                   ? due_between(step - 1, plan_.steps, config_.benchmark_interval.value_or(0), true)
                                   : 0;
    return time_left_.left(plan_.steps - step, evaluations, saves, benchmarks);
  }

  // The state before this step already leads here, so it is kept under a name that no run resumes from.
  [[noreturn]] void stop_at(const StepResult& result) {
    watcher_.finished();
    const int64_t step = outcome_.step;
    const std::filesystem::path kept = step > 0 ? trainer_.keep_diverged(step) : std::filesystem::path();
    const auto last = trainer_.checkpoints_.last();
    refuse(str("step ", step + 1), str("the loss is ", result.loss, " and the gradient's norm ", result.gradient_norm),
           str("lower learning_rate, set clip_grad, or check the data; the next run ",
               last && config_.resume_if_possible ? "goes on from " + last->string() : std::string("starts anew"),
               kept.empty() ? std::string() : str("; the state before this step is kept in ", kept.string())));
  }

  Trainer& trainer_;
  const RunPlan& plan_;
  const TrainerConfig& config_;
  RunHistory& history_;
  const Interrupt& interrupt_;
  Watcher quiet_;
  Watcher& watcher_;
  const Stop stop_;
  const double seconds_before_;  // of the processes before
  std::optional<Records> records_;
  std::optional<Records> previews_;  // previews.jsonl
  std::optional<EventFile> events_;
  std::optional<double> peak_;
  double flops_per_token_ = 0, limit_ = INFINITY;
  Clock::time_point begin_ = Clock::now();
  double paused_ = 0;     // seconds of evaluating and saving, which are not training
  double reported_ = 0;   // seconds of training at the last report
  double last_save_ = 0;  // seconds
  bool is_best_ = false;  // the last evaluation, whose checkpoint is to be saved
  double losses_ = 0;
  std::deque<double> last_losses_;  // as many as log_steps
  TimeLeft time_left_;
  Outcome outcome_;
};

Outcome Trainer::run() {
  const Interrupt interrupt(ranks_.first());
  if (config().do_train && (plan_.from_step >= plan_.steps || best_->stops())) {
    if (plan_.from_step >= plan_.steps)
      log::info("nothing left to train: ", plan_.checkpoint, " has all ", plan_.steps, " steps");
    else
      log::info("nothing left to train: the run stopped early, and ", plan_.checkpoint, " is its last checkpoint");
    if (!changes_.empty())
      log::info("it was trained with other settings than this run's (", changes_,
                "); to train anew, name another save_directory or model_name, or set resume_if_possible: false");
    return Course(*this, interrupt).make_up();
  }
  const Forwarding how = forwarding(false);
  Examination examined{{}, how, ranks_, checkpoints_.folder(), order()};
  if (data::Dataset* const set = source_->dataset()) examined.sets.push_back(set);
  for (const EvaluationSet& set : evaluation_sets_) examined.sets.push_back(set.data.get());
  method_->examine(examined);
  return Course(*this, interrupt).run();
}

}  // namespace easydel::train
