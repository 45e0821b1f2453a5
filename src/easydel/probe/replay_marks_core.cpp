// Recorded runs of the trainers that learn from marked answers: KTO, BCO.
#include "easydel/base/error.h"
#include "easydel/probe/replay_methods.h"
#include "easydel/probe/replay_rows.h"
#include "easydel/train/bco_config.h"
#include "easydel/train/kto_config.h"
#include "easydel/train/marked_answers.h"

namespace easydel::probe {
namespace {

void read_kto(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto out = std::make_shared<train::KtoConfig>();
  train::KtoKeys& keys = out->own;
  keys.beta = arguments.number("beta", 0.1);
  keys.desirable_weight = arguments.number("desirable_weight", 1);
  keys.undesirable_weight = arguments.number("undesirable_weight", 1);
  take_choice(arguments, "loss_type", keys.loss_type);
  keys.sync_ref_model = arguments.flag("sync_ref_model");
  keys.ref_model_mixup_alpha = arguments.number("ref_model_mixup_alpha", 0.6);
  keys.ref_model_sync_steps = arguments.integer("ref_model_sync_steps", 512);
  out->pairs.disable_dropout = arguments.flag("disable_dropout");
  arguments.ignore({"precompute_ref_log_probs", "precompute_ref_batch_size", "label_smoothing_factor"});
  if (to.adapter.empty() || document.find("reference_model")) read_reference(document, to, arguments.where());
  to.trainer.use<train::KtoConfig>(out);
}

void read_bco(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto out = std::make_shared<train::BcoConfig>();
  out->own.beta = arguments.number("beta", 0.1);
  out->pairs.disable_dropout = arguments.flag("disable_dropout");
  // The density ratio needs an embedding function, which no recorded run has.
  arguments.ignore({"precompute_ref_log_probs", "label_smoothing_factor", "prompt_sample_size", "min_density_ratio",
                    "max_density_ratio", "max_prompt_length", "max_completion_length", "label_pad_token_id",
                    "padding_value", "generate_during_eval", "is_encoder_decoder"});
  if (to.adapter.empty() || document.find("reference_model")) read_reference(document, to, arguments.where());
  to.trainer.use<train::BcoConfig>(out);
}

void set_marks(std::vector<data::Example>& examples, const Value& line, const std::string& where) {
  const std::vector<int64_t> labels = integers_of(line, "label", where);
  if (labels.size() != examples.size()) refuse(where, "needs one label for each row");
  for (size_t i = 0; i < labels.size(); ++i)
    examples[i].set({train::answer_is_good, data::Column::Per::example, std::vector<int64_t>{labels[i]}});
}

std::vector<data::Example> kto_rows(const Value& line, const std::string& where) {
  std::vector<data::Example> out;
  for (const std::string prefix : {"", "KL_"}) {
    if (!line.find(prefix + "input_ids")) continue;
    const RecordedRows ids = required_rows(line, prefix + "input_ids", where);
    const RecordedRows mask = required_rows(line, prefix + "attention_mask", where);
    const RecordedRows completion = required_rows(line, prefix + "completion_mask", where);
    out.resize(ids.size());
    for (size_t i = 0; i < ids.size(); ++i)
      append(out[i], example_of(ids[i], &mask[i], masked_labels(ids[i], completion[i])));
  }
  set_marks(out, line, where);
  return out;
}

std::vector<data::Example> bco_rows(const Value& line, const std::string& where) {
  const RecordedRows ids = required_rows(line, "completion_input_ids", where);
  const RecordedRows mask = required_rows(line, "completion_attention_mask", where);
  const RecordedRows labels = required_rows(line, "completion_labels", where);
  std::vector<data::Example> out;
  for (size_t i = 0; i < ids.size(); ++i) out.push_back(example_of(ids[i], &mask[i], labels[i]));
  set_marks(out, line, where);
  return out;
}

}  // namespace

std::vector<ReplayMethod> replayed_marks() {
  return {{"BCOTrainer", read_bco, bco_rows}, {"KTOTrainer", read_kto, kto_rows}};
}

}  // namespace easydel::probe
