#include "easydel/probe/replay.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>

#include <functional>
#include <utility>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"
#include "easydel/models/adapter.h"
#include "easydel/models/adapter_names.h"
#include "easydel/probe/replay_case.h"
#include "easydel/train/trainer.h"

namespace easydel::probe {
namespace {

class Recorder : public train::Watcher {
 public:
  void stepped(const train::StepReport& report) override {
    Value line = Value::map(), metrics = Value::map();
    line.set("step", Value::integer(report.step));
    line.set("loss", Value::number(report.loss));
    line.set("grad_norm", Value::number(report.gradient_norm.value_or(0)));
    line.set("lr", Value::number(report.learning_rate));
    for (const train::Metric& metric : std::exchange(of_generation, {}))
      metrics.set(metric.name, Value::number(metric.value()));
    for (const auto& [name, value] : report.metrics) metrics.set(name, Value::number(value));
    metrics.set("num_tokens", Value::integer(report.tokens_seen));
    line.set("metrics", metrics);
    lines += to_json(line) + "\n";
    if (at_step) at_step(report.step + 1);
  }
  std::string lines;
  std::function<void(int64_t)> at_step;      // before each step (from 1) but the first
  std::vector<train::Metric> of_generation;  // that the next step begins with
};

std::string parameters_of(models::Model& model) {
  Value out = Value::map();
  for (const nn::Entry& entry : model.parameters().entries()) {
    const Tensor values = entry.shard.detach().to(at::kCPU, at::kDouble).flatten();
    Value one = Value::map(), shape = Value::list(), first = Value::list();
    for (const int64_t size : entry.shape) shape.items.push_back(Value::integer(size));
    for (int64_t i = 0; i < std::min<int64_t>(8, values.size(0)); ++i)
      first.items.push_back(Value::number(values[i].item<double>()));
    one.set("shape", shape);
    one.set("sum", Value::number(values.sum().item<double>()));
    one.set("abs_sum", Value::number(values.abs().sum().item<double>()));
    one.set("l2", Value::number(at::linalg_vector_norm(values).item<double>()));
    one.set("first", first);
    // As PEFT names the parameters of a model that it wraps.
    out.set(entry.adapter ? models::peft_name(entry) : entry.path, one);
  }
  return to_json(out, 1) + "\n";
}

std::shared_ptr<models::Model> scaled_model(const ReplayCase& replayed, const ReplayCase::Scaled& scaled,
                                            const models::LoadOptions& load) {
  if (scaled.paths.empty()) return nullptr;
  const auto start = models::load_model(replayed.model, load);
  auto out = models::copy_model(*start);
  const c10::AutoGradMode no_grad(false);
  const RegularExpression pattern(scaled.paths);
  for (nn::Entry& entry : out->parameters().entries())
    if (pattern.matches(entry.path)) {
      entry.shard.mul_(scaled.factor);
      entry.written();
    }
  return out;
}

// Writes the recorded start values of the class head or the value head.
void set_head(models::Model& model, const std::vector<float>& values, const char* ending, const std::string& where) {
  if (values.empty()) return;
  const c10::AutoGradMode no_grad(false);
  for (nn::Entry& entry : model.parameters().entries()) {
    if (!entry.head || !entry.path.ends_with(ending)) continue;
    if (entry.shard.numel() != int64_t(values.size()))
      refuse(where, str("the head's ", entry.path, " has ", entry.shard.numel(), " numbers, and ", values.size(),
                        " are recorded"));
    entry.shard.copy_(at::tensor(at::ArrayRef<float>(values)).view(entry.shard.sizes()));
    entry.written();
  }
}

}  // namespace

Replay replay(const std::filesystem::path& case_file, const std::filesystem::path& root) {
  ReplayCase replayed = read_replay_case(case_file, root);
  Recorder recorder;
  train::TrainerParts parts;
  parts.load.dtype = parts.load.param_dtype = models::DTypeSetting::fp32;
  parts.load.training = true;
  parts.load.overrides = replayed.overrides;
  if (const train::MethodFacts& facts = replayed.trainer.facts(); facts.task != models::Task::causal_lm) {
    parts.load.task = facts.task;
    parts.load.labels = facts.labels;
    // Recorded runs pad with token 0, and rows end before their padding.
    parts.load.overrides.set("pad_token_id", Value::integer(0));
  }
  if (!replayed.adapter.empty()) parts.load.adapters.push_back(models::adapter_in(replayed.adapter));
  parts.model = models::load_model(replayed.model, parts.load);
  parts.side.reference.model = scaled_model(replayed, replayed.reference, parts.load);
  parts.side.teacher.model = scaled_model(replayed, replayed.teacher, parts.load);
  if (replayed.generations && !parts.side.reference.model)
    parts.side.reference.model = models::copy_model(*parts.model);
  parts.trainer = replayed.trainer;
  parts.watcher = &recorder;
  Replay out;
  recorder.at_step = [&out, &recorder, &replayed, model = parts.model,
                      reference = parts.side.reference.model](int64_t step) {
    if (!replayed.generations) return;
    for (const RecordedGenerations::One& one : replayed.generations->all)
      if (one.step == step) {
        JudgedGeneration made = judged(one, replayed.trainer, *model, reference.get());
        out.generations += made.line;
        recorder.of_generation = std::move(made.metrics);
      }
  };
  recorder.at_step(1);
  train::Trainer trainer(std::move(parts), std::move(replayed.source), std::move(replayed.tx));
  // After the trainer, whose method may add the head.
  set_head(trainer.model(), replayed.head_weight, ".weight", case_file.string());
  set_head(trainer.model(), replayed.head_bias, ".bias", case_file.string());
  trainer.run();
  out.lines = recorder.lines;
  out.parameters = parameters_of(trainer.model());
  return out;
}

}  // namespace easydel::probe
