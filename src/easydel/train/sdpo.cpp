// trainer_type: sdpo. Self-distillation policy optimisation (arXiv:2601.20802), as EasyDeL has it: the teacher of a
// completion's tokens is the trained model itself, which sees feedback before the completion.
#include "easydel/train/sdpo.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/logaddexp.h>

#include <algorithm>
#include <numbers>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/train/group_policy.h"
#include "easydel/train/sdpo_config.h"

namespace easydel::train {

std::string feedback_on(bool is_good, const std::string& solution, const std::string& said) {
  const std::string heard = said.empty() ? "" : "Feedback on your previous attempt:\n" + said + "\n";
  if (is_good) return "Your previous attempt was correct.\n" + heard;
  return (solution.empty() ? "" : "Correct solution:\n" + solution + "\n\n") + heard + (heard.empty() ? "" : "\n") +
         "Correctly solve the original question.\n";
}

namespace {

// The first sequences of a batch's examples, or the second ones.
Batch sequences_of(const Batch& batch, bool second) {
  const auto sequences = int64_t(batch.cu_seqlens.size()) - 1;
  check(sequences == 2 * batch.examples, "completions without feedback");
  const int64_t first = second ? batch.examples : 0, last = first + batch.examples;
  const int64_t begin = batch.cu_seqlens[size_t(first)], end = batch.cu_seqlens[size_t(last)];
  Batch out;
  out.tokens = batch.tokens.slice(0, begin, end);
  out.labels = batch.labels.slice(0, begin, end);
  for (int64_t s = first; s <= last; ++s) out.cu_seqlens.push_back(batch.cu_seqlens[size_t(s)] - begin);
  out.examples = batch.examples;
  out.labelled = out.labels.ne(data::no_label).sum().item<int64_t>();
  out.weight = batch.weight;
  for (const auto& [name, column] : batch.columns)
    out.columns.emplace(name, column.size(0) == sequences ? column.slice(0, first, last) : column.slice(0, begin, end));
  return out;
}

class Sdpo final : public GroupPolicy {
 public:
  Sdpo(const Setting& setting, const SdpoConfig& config)
      : GroupPolicy(setting, {config.own.beta, config.rollouts, config.window, config.reference}), own_(config.own) {
    if (!setting.model) return;
    positions_ = setting.model->max_positions();
    const int64_t most = config.rollouts.max_prompt_length + config.rollouts.max_completion_length;
    if (positions_ > 0 && most + own_.max_feedback_length > positions_)
      log::warning("trainer.max_feedback_length: feedback is cut where prompt and completion leave less than ",
                   own_.max_feedback_length, " of the model's ", positions_, " positions");
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& how) const override {
    const SequenceScores teacher = [&] {
      const c10::AutoGradMode no_grad(false);
      Forwarding quiet = how;
      quiet.training = quiet.metrics = false;
      quiet.routers = nullptr;
      return score_sequences(model, sequences_of(batch, true), quiet, scoring(false));
    }();
    const Batch student = sequences_of(batch, false);
    const SequenceScores own = score_sequences(model, student, how, scoring(how.metrics));
    const auto device = own.logps.device();
    const Tensor now = own.logps.detach();
    const Tensor target = own_.distillation_type == SelfDistillation::kl
                              ? teacher.logps
                              : at::logaddexp(now, teacher.logps) - std::numbers::ln2;
    Tensor losses = (now - target) * own.logps, divergence;
    if (const Tensor reference = of_learned(student, reference_logps_column); reference.defined()) {
      const Tensor ratio = reference.to(device) - own.logps;
      divergence = ratio.exp() - ratio - 1;
      losses = losses + own_.beta * divergence;
    }
    const Tensor mean_items = student.column(mean_items_column).to(device).index_select(0, own.sequence);
    Loss out{(losses / mean_items).sum(), {}};
    add_sampling_difference(out.metrics, now, student, how);
    if (how.metrics) {
      const auto count = double(now.size(0));
      const auto add = [&](const char* name, const Tensor& values) {
        out.metrics.push_back({name, values.detach().sum().item<double>(), count, Metric::Over::everything});
      };
      const Tensor advantage = teacher.logps - now;
      add("sdpo/advantage_mean", advantage);
      add("sdpo/advantage_pos_frac", advantage.gt(0));
      add("sdpo/student_logps", now);
      add("sdpo/teacher_logps", teacher.logps);
      add("entropy", own.details.entropy);
      if (divergence.defined()) add("kl", divergence);
    }
    add_generation_metrics(out.metrics, how);
    return out;
  }

 private:
  // Feedback also teaches where all rewards are equal.
  bool only_rewards_count() const override { return false; }
  // Of rewards: the tokens have their own, from the teacher.
  Advantages advantages(const RewardTable& rewards, const std::vector<data::Example>&) const override {
    return group_advantages(rewards, RewardScale::group, RewardAggregation::sum_then_normalize);
  }

  // The completion again, as the example's second sequence, with feedback before it.
  void add_context(data::Example& example, const Rollouts& rollouts, size_t place) const override {
    const Tensor worth = weighted_rewards(rollouts.rewards).nan_to_num(0).to(at::kDouble).contiguous();
    const double* const reward = worth.const_data_ptr<double>();
    const auto group = size_t(rollouts.rewards.group);
    const size_t begin = place / group * group;
    const auto best = size_t(std::max_element(reward + begin, reward + begin + group) - reward);
    const std::string solution = reward[best] > 0 ? tokenizer()->decode(rollouts.samples[best].ids, true) : "";
    const std::string said = rollouts.feedback.empty() ? "" : rollouts.feedback[place];
    std::vector<int32_t> feedback =
        tokenizer()->encode(feedback_on(reward[place] > 0, solution, said), {.add_special_tokens = false});
    int64_t most = own_.max_feedback_length;
    if (positions_ > 0) most = std::clamp<int64_t>(positions_ - int64_t(example.tokens.size()), 0, most);
    if (int64_t(feedback.size()) > most) feedback.resize(size_t(most));

    std::vector<int32_t> prompt = rollouts.prompts[place / group]->tokens;
    prompt.insert(prompt.end(), feedback.begin(), feedback.end());
    data::Example seen = learned_example(prompt, rollouts.samples[place].ids);
    if (example.labelled() == 0) std::ranges::fill(seen.labels, data::no_label);  // it is masked
    example.tokens.insert(example.tokens.end(), seen.tokens.begin(), seen.tokens.end());
    example.labels.insert(example.labels.end(), seen.labels.begin(), seen.labels.end());
    example.lengths.push_back(int32_t(seen.tokens.size()));
    for (data::Column& column : example.columns)
      std::visit(
          [&](auto& values) {
            if (column.per == data::Column::Per::token) values.resize(example.tokens.size(), 0);
            if (column.per == data::Column::Per::sequence) values.push_back(values.back());
          },
          column.values);
  }

  SdpoKeys own_;
  int64_t positions_ = 0;  // of the model; 0: no limit
};

}  // namespace

MethodEntry sdpo() {
  return {"sdpo", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<Sdpo>(setting, setting.trainer.own_as<SdpoConfig>());
          }};
}

}  // namespace easydel::train
