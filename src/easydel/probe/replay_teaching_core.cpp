// Recorded runs of the trainers that learn from a teacher: DistillationTrainer, GKDTrainer.
#include "easydel/base/error.h"
#include "easydel/probe/replay_methods.h"
#include "easydel/probe/replay_rows.h"
#include "easydel/train/distillation_config.h"
#include "easydel/train/gkd_config.h"

namespace easydel::probe {
namespace {

// The notes say what the teacher is.
void read_teacher(const Value& document, ReplayCase& out, const std::string& where) {
  const Value* notes = document.find("notes");
  const std::string text = notes ? notes->scalar : "";
  const size_t teacher = text.find("teacher: ");
  const auto scaled = teacher == std::string::npos ? std::nullopt : scaled_weights(text.substr(teacher));
  if (!scaled) refuse(where, "its notes do not say what the teacher is: '" + text + "'");
  out.teacher = *scaled;
}

void read_gkd(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto out = std::make_shared<train::GkdConfig>();
  out->own.beta = arguments.number("beta", 0.5);
  out->own.disable_dropout = arguments.flag("disable_dropout");
  out->own.lmbda = 0;  // the batches are what was learned, whoever wrote it
  if (arguments.word("loss_type", "nll") != "nll") arguments.not_built("loss_type", arguments.word("loss_type", ""));
  arguments.ignore({"temperature", "lmbda", "seq_kd", "max_new_tokens"});
  ignore_rows(arguments);
  refuse_smoothing(arguments);
  read_teacher(document, to, arguments.where());
  to.trainer.use<train::GkdConfig>(out);
}

void read_distillation(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto out = std::make_shared<train::DistillationConfig>();
  out->beta = arguments.number("beta", 1.0);
  out->temperature = arguments.number("temperature", 1.0);
  out->disable_dropout = arguments.flag("disable_dropout");
  refuse_smoothing(arguments);
  // How the recorded completions were sampled.
  arguments.ignore({"teacher_model_revision", "max_completion_length", "top_p", "top_k", "min_p", "generation_kwargs",
                    "chat_template_kwargs", "repetition_penalty", "max_tool_calling_iterations"});
  read_teacher(document, to, arguments.where());
  to.trainer.use<train::DistillationConfig>(out);
}

// Prompts, padded on the left, and what was sampled after them, padded on the right.
std::vector<data::Example> completions(const Value& line, const std::string& where) {
  const RecordedRows prompts = required_rows(line, "prompt_ids", where);
  const RecordedRows prompt_masks = required_rows(line, "prompt_mask", where);
  const RecordedRows answers = required_rows(line, "completion_ids", where);
  const RecordedRows masks = required_rows(line, "completion_mask", where);
  if (prompt_masks.size() != prompts.size() || answers.size() != prompts.size() || masks.size() != prompts.size())
    refuse(where, "needs prompt_ids, prompt_mask, completion_ids and completion_mask of equal size");
  std::vector<data::Example> out;
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::vector<int64_t> ids = prompts[i], mask = prompt_masks[i];
    std::vector<int64_t> labels(ids.size(), data::no_label);
    ids.insert(ids.end(), answers[i].begin(), answers[i].end());
    labels.insert(labels.end(), answers[i].begin(), answers[i].end());
    mask.insert(mask.end(), masks[i].begin(), masks[i].end());
    out.push_back(example_of(ids, &mask, labels));
  }
  return out;
}

}  // namespace

std::vector<ReplayMethod> replayed_teaching() {
  return {{"DistillationTrainer", read_distillation, completions}, {"GKDTrainer", read_gkd, language_rows}};
}

}  // namespace easydel::probe
