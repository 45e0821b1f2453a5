// Which evaluation of a run was the best so far, and whether the run should stop because none has been better for long:
// transformers' metric_for_best_model and EarlyStoppingCallback. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "easydel/base/document.h"
#include "easydel/train/plateau.h"
#include "easydel/train/report.h"
#include "easydel/train/trainer_config.h"

namespace easydel::train {

class BestModel {
 public:
  explicit BestModel(const TrainerConfig& config);

  // True: the evaluation is the best so far. UserError "trainer.metric_for_best_model..." if it does not report the
  // metric. Does nothing if no key asks for it.
  bool evaluated(const EvaluationReport& report);

  bool is_kept() const { return keeps_; }  // load_best_model_at_end
  bool stops() const { return patience_ && worse_ >= *patience_; }
  std::optional<int64_t> step() const { return step_; }  // of the best evaluation
  double rate_scale() const { return plateau_ ? plateau_->scale() : 1; }

  Value state() const;  // null: nothing to keep
  void restore(const Value& state);

 private:
  double metric_of(const EvaluationReport& report) const;

  std::string metric_;
  bool greater_ = false, keeps_ = false;
  std::optional<int64_t> patience_;
  double threshold_ = 0;
  std::optional<Plateau> plateau_;
  std::optional<double> best_;
  std::optional<int64_t> step_;
  int64_t worse_ = 0;
};

}  // namespace easydel::train
