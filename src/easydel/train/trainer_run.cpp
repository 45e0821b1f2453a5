// A run from its first step to its end: what is reported, evaluated and saved on the way, and why it stops.
#include <sys/resource.h>

#include <cmath>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/kernels/peak.h"
#include "easydel/ops/product.h"
#include "easydel/tensor/executor.h"
#include "easydel/train/interrupt.h"
#include "easydel/train/trainer.h"

namespace easydel::train {
namespace {

// What the machine can do at most, in TFLOP/s; nothing for a run so short that measuring would be felt.
std::optional<double> measured_peak(const models::Model& model, const RunPlan& plan, bool watched) {
  constexpr int64_t worth_measuring = 50;
  if (!watched || plan.steps - plan.from_step < worth_measuring) return std::nullopt;
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.shard.is_cpu()) return std::nullopt;  // the kernels measure the processor
  const kernels::Peaks peaks = kernels::measure_peaks(tensor::executor());
  return std::max(peaks.fp32_gflops, peaks.bf16_gflops) / 1e3;
}

double peak_memory_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace

class Trainer::Course {
 public:
  Course(Trainer& trainer, const Interrupt& interrupt)
      : trainer_(trainer),
        plan_(trainer.plan_),
        config_(trainer.config()),
        interrupt_(interrupt),
        watcher_(trainer.parts_.watcher && trainer.ranks_.first() ? *trainer.parts_.watcher : quiet_) {
    outcome_.step = plan_.from_step, outcome_.steps = plan_.steps, outcome_.checkpoint = trainer.last_saved_;
    if (config_.training_time_limit) limit_ = seconds_of(*config_.training_time_limit).value_or(0);
    flops_per_token_ =
        trainer.parts_.model->training_flops_per_token(plan_.examples ? plan_.tokens / plan_.examples : 1);
    if (config_.report_metrics && trainer.ranks_.first()) {
      files::make_directories(trainer.checkpoints_.folder());
      records_.emplace(metrics_file(), plan_.from_step);
    }
  }

  Outcome run() {
    watcher_.started(plan_.from_step, plan_.steps);
    peak_ = measured_peak(*trainer_.parts_.model, plan_, trainer_.parts_.watcher != nullptr);
    begin_ = Clock::now();
    if (trainer_.evaluation_ && (!config_.do_train || (config_.eval_on_start && plan_.from_step == 0))) evaluate();
    while (config_.do_train && outcome_.step < plan_.steps) {
      step();
      if (ends()) return outcome_;
    }
    log::debug(ops::packed_weights(), " weights were packed");
    watcher_.finished();
    if (records_ && config_.do_train) {
      records_.reset();
      files::write(trainer_.checkpoints_.folder() / "loss.svg", loss_curve(metrics_file(), trainer_.title(), prefix()));
    }
    return outcome_;
  }

 private:
  std::string prefix() const { return config_.trainer_prefix.value_or(""); }
  std::filesystem::path metrics_file() const { return trainer_.checkpoints_.folder() / "metrics.jsonl"; }
  double seconds() const { return seconds_since(begin_); }

  void step() {
    const int64_t number = outcome_.step + 1;
    const bool logged = trainer_.is_due(number, config_.log_steps) || number == 1,
               recorded = trainer_.is_due(number, config_.report_steps) || number == 1;
    const StepResult result = trainer_.update(outcome_.step, logged || recorded);
    if (config_.loss().break_on_nan && !result.finite()) stop_at(result);
    outcome_.step = number;
    losses_ += result.loss;
    outcome_.train_loss = losses_ / static_cast<double>(number - plan_.from_step);
    since_record_ += result.loss, ++in_record_;
    StepReport report = report_of(result);
    report.logged = logged;
    if (records_ && recorded) {
      StepReport record = report;
      record.loss = std::exchange(since_record_, 0) / static_cast<double>(std::exchange(in_record_, 0));
      records_->add(as_record(record, prefix()));
    }
    watcher_.stepped(report);
  }

  // Evaluates and saves where the step asks for it. True: the run is over before its last step.
  bool ends() {
    // Each rank has its own clock, and a signal may reach one before the other: they stop and save at the same step.
    const bool long_ago =
        config_.save_interval_minutes && seconds() - last_save_ >= 60 * *config_.save_interval_minutes;
    double wishes[3] = {double(interrupt_.signal()), seconds() > limit_ ? 1.0 : 0.0, long_ago ? 1.0 : 0.0};
    trainer_.ranks_.max(wishes);
    outcome_.signal = int(wishes[0]);
    const bool stop = outcome_.signal != 0 || wishes[1] != 0, minutes = wishes[2] != 0;
    const int64_t step = outcome_.step;
    if (trainer_.evaluation_ && config_.do_eval && !stop &&
        trainer_.is_due(step, config_.evaluation_steps.value_or(plan_.steps_in_epoch)))
      evaluate();
    if (stop || minutes || (config_.save_steps && step % *config_.save_steps == 0) ||
        (step == plan_.steps && config_.do_last_save))
      save();
    if (!stop) return false;
    outcome_.finished = step == plan_.steps;
    watcher_.finished();
    log::warning(outcome_.signal ? "stopped by a signal" : "stopped by training_time_limit", " after step ", step,
                 " of ", plan_.steps, "; saved in ", outcome_.checkpoint.string(), "; run again to go on");
    return true;
  }

  void evaluate() {
    EvaluationReport report = trainer_.evaluate();
    report.step = outcome_.step;
    paused_ += report.seconds;
    if (records_) records_->add(as_record(report, prefix()));
    watcher_.evaluated(report);
    if (!outcome_.before) outcome_.before = report;
    if (report.step > plan_.from_step) outcome_.after = report;
  }

  void save() {
    const auto begin = Clock::now();
    trainer_.save(outcome_.step);
    outcome_.checkpoint = trainer_.last_saved_;
    paused_ += seconds_since(begin);
    last_save_ = seconds();
  }

  // Speed since the last report, and how long the rest will take.
  StepReport report_of(const StepResult& result) {
    StepReport report;
    report.step = outcome_.step, report.steps = plan_.steps;
    report.epoch = static_cast<double>(report.step) / static_cast<double>(plan_.steps_in_epoch);
    report.loss = result.loss, report.learning_rate = trainer_.schedule_.at(report.step - 1);
    if (config_.log_grad_norms) report.gradient_norm = result.gradient_norm;
    report.tokens = result.tokens, report.tokens_seen = trainer_.tokens_seen_;
    report.metrics = result.metrics;
    if (config_.track_memory) report.metrics.emplace_back("peak_memory_bytes", peak_memory_bytes());

    const double trained = seconds() - paused_, since = std::max(trained - std::exchange(reported_, trained), 1e-9);
    report.seconds = seconds();
    report.tokens_per_second = static_cast<double>(result.tokens) / since;
    report.examples_per_second = static_cast<double>(result.examples) / since;
    report.teraflops = report.tokens_per_second * flops_per_token_ / 1e12;
    if (peak_) report.share_of_peak = report.teraflops / *peak_;
    const auto done = static_cast<double>(report.step - plan_.from_step);
    report.seconds_left = trained / done * static_cast<double>(plan_.steps - report.step);
    return report;
  }

  [[noreturn]] void stop_at(const StepResult& result) {
    watcher_.finished();
    if (outcome_.step > 0) save();
    refuse(str("step ", outcome_.step + 1),
           str("the loss is ", result.loss, " and the gradient's norm ", result.gradient_norm),
           (outcome_.checkpoint.empty() ? std::string("nothing was saved")
                                        : "the steps before it are in " + outcome_.checkpoint.string()) +
               "; lower learning_rate, set clip_grad, or check the data");
  }

  Trainer& trainer_;
  const RunPlan& plan_;
  const TrainerConfig& config_;
  const Interrupt& interrupt_;
  Watcher quiet_;
  Watcher& watcher_;
  std::optional<Records> records_;
  std::optional<double> peak_;
  double flops_per_token_ = 0, limit_ = INFINITY;
  Clock::time_point begin_ = Clock::now();
  double paused_ = 0;     // seconds of evaluating and saving, which are not training
  double reported_ = 0;   // seconds of training at the last report
  double last_save_ = 0;  // seconds
  double losses_ = 0, since_record_ = 0;
  int64_t in_record_ = 0;  // steps since the last record
  Outcome outcome_;
};

Outcome Trainer::run() {
  const Interrupt interrupt;
  if (plan_.from_step >= plan_.steps) {
    log::info("nothing left to train: ", plan_.checkpoint, " has all ", plan_.steps, " steps");
    Outcome outcome;
    outcome.step = plan_.from_step, outcome.steps = plan_.steps, outcome.checkpoint = last_saved_;
    return outcome;
  }
  method_->examine(source_->examples(), forwarding(false));
  if (evaluation_) method_->examine(evaluation_->examples(), forwarding(false));
  return Course(*this, interrupt).run();
}

}  // namespace easydel::train
