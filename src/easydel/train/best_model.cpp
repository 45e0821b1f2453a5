#include "easydel/train/best_model.h"

#include <cmath>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::train {

BestModel::BestModel(const TrainerConfig& config)
    : metric_(config.metric_for_best_model.value_or("loss")),
      keeps_(config.load_best_model_at_end),
      patience_(config.early_stopping_patience),
      threshold_(config.early_stopping_threshold) {
  // As other tools call it: eval_loss, eval/loss.
  for (const char* prefix : {"eval_", "eval/"})
    if (metric_.starts_with(prefix)) metric_.erase(0, 5);
  greater_ = config.greater_is_better.value_or(!metric_.ends_with("loss") && metric_ != "perplexity" &&
                                               metric_ != "bits_per_byte");
  if (config.scheduler == Scheduler::reduce_on_plateau)
    plateau_.emplace(config.scheduler_kwargs, config.learning_rate, greater_);
}

double BestModel::metric_of(const EvaluationReport& report) const {
  if (metric_ == "loss") return report.loss;
  std::vector<std::string> names{"loss"};
  for (const auto* const list : {&report.metrics, &report.of_sets})
    for (const auto& [name, value] : *list) {
      if (name == metric_) return value;
      names.push_back(name);
    }
  refuse("trainer.metric_for_best_model", "'" + metric_ + "' is not reported by the evaluations",
         "they report " + join(names, ", "));
}

bool BestModel::evaluated(const EvaluationReport& report) {
  if (!keeps_ && !patience_ && !plateau_) return false;
  const double value = metric_of(report);
  if (plateau_) plateau_->evaluated(value);
  const bool better = !best_ || (greater_ ? value > *best_ : value < *best_);
  worse_ = better && (!best_ || std::abs(value - *best_) > threshold_) ? 0 : worse_ + 1;
  if (better) best_ = value, step_ = report.step;
  return better;
}

Value BestModel::state() const {
  if (!best_ && !plateau_) return {};
  Value out = Value::map();
  if (best_) {
    out.set("metric", Value::text(metric_));
    out.set("value", Value::number(*best_));
    out.set("step", Value::integer(*step_));
    out.set("worse_evaluations", Value::integer(worse_));
  }
  if (plateau_) out.set("plateau", plateau_->state());
  return out;
}

void BestModel::restore(const Value& state) {
  const Value *metric = state.find("metric"), *value = state.find("value"), *step = state.find("step"),
              *worse = state.find("worse_evaluations");
  // Another metric has another best evaluation.
  if (metric && metric->scalar == metric_ && value && step && worse) {
    best_ = value->as_double(), step_ = step->as_int();
    worse_ = worse->as_int().value_or(0);
  }
  if (const Value* plateau = state.find("plateau"); plateau && plateau_) plateau_->restore(*plateau);
}

}  // namespace easydel::train
