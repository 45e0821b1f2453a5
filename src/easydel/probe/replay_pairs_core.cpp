// Recorded runs of the trainers that learn from pairs of answers: DPO, ORPO, CPO, TPO.
#include "easydel/base/error.h"
#include "easydel/probe/replay_methods.h"
#include "easydel/probe/replay_rows.h"
#include "easydel/train/cpo_config.h"
#include "easydel/train/dpo_config.h"
#include "easydel/train/orpo_config.h"
#include "easydel/train/pairs.h"
#include "easydel/train/separate_answers.h"
#include "easydel/train/tpo_config.h"

namespace easydel::probe {
namespace {

constexpr auto per_sequence = data::Column::Per::sequence;

void read_dpo(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto out = std::make_shared<train::DpoConfig>();
  // An argument of the older release alone.
  const bool old = arguments.take("reference_free") != nullptr;
  out->form = old ? train::DpoForm::trl_0_24 : train::DpoForm::trl_1;
  out->conservative = old;
  out->beta = arguments.number("beta", 0.1);
  out->label_smoothing = arguments.number("label_smoothing", 0);
  if (const Value* loss = arguments.take("loss_type")) {
    out->loss_type.clear();
    for (const Value& one : loss->is_list() ? loss->items : std::vector<Value>{*loss}) {
      out->loss_type.push_back(choice<train::DpoLoss>(arguments, "loss_type", one));
      if (old && out->loss_type.back() == train::DpoLoss::exo_pair && out->label_smoothing == 0)
        out->label_smoothing = 1e-3;
    }
  }
  if (const Value* weights = arguments.take("loss_weights"))
    for (const Value& weight : weights->items) out->loss_weights.push_back(weight.as_double().value_or(1));
  take_choice(arguments, "f_divergence_type", out->f_divergence_type);
  out->f_alpha_divergence_coef = arguments.number("f_alpha_divergence_coef", old ? 1.0 : 0.5);
  // (1 - u^-a) / a there is (t^(b - 1) - 1) / (b - 1) here.
  if (old) out->f_alpha_divergence_coef = 1 - out->f_alpha_divergence_coef;
  out->discopop_tau = arguments.number("discopop_tau", 0.05);
  if (const Value* alpha = arguments.take("ld_alpha")) out->ld_alpha = alpha->as_double();
  if (const Value* alpha = arguments.take("rpo_alpha")) out->rpo_alpha = alpha->as_double();
  out->use_weighting = arguments.flag("use_weighting");
  out->sync_ref_model = arguments.flag("sync_ref_model");
  out->ref_model_mixup_alpha = arguments.number("ref_model_mixup_alpha", 0.6);
  out->ref_model_sync_steps = arguments.integer("ref_model_sync_steps", 512);
  out->disable_dropout = arguments.flag("disable_dropout");
  refuse_smoothing(arguments);
  arguments.ignore({"precompute_ref_log_probs", "precompute_ref_batch_size", "model_adapter_name", "ref_adapter_name",
                    "force_use_ref_model", "use_logits_to_keep", "label_pad_token_id", "max_prompt_length",
                    "max_completion_length", "tools", "use_liger_loss", "base_model_attribute_name", "padding_value",
                    "generate_during_eval"});
  // The reference of an adapter is the model without it.
  if (to.adapter.empty() || document.find("reference_model"))
    out->reference_free = !read_reference(document, to, arguments.where());
  to.trainer.use<train::DpoConfig>(out);
}

void ignore_row_shapes(Arguments& arguments) {
  arguments.ignore({"max_completion_length", "max_prompt_length", "padding_value", "generate_during_eval",
                    "is_encoder_decoder", "label_pad_token_id"});
}

void read_orpo(Arguments& arguments, const Value&, ReplayCase& to) {
  auto out = std::make_shared<train::OrpoConfig>();
  out->own.beta = arguments.number("beta", 0.1);
  out->pairs.disable_dropout = arguments.flag("disable_dropout");
  refuse_smoothing(arguments);
  ignore_row_shapes(arguments);
  to.trainer.use<train::OrpoConfig>(out);
}

void read_cpo(Arguments& arguments, const Value&, ReplayCase& to) {
  auto out = std::make_shared<train::CpoConfig>();
  out->own.beta = arguments.number("beta", 0.1);
  out->own.label_smoothing = arguments.number("label_smoothing", 0);
  take_choice(arguments, "loss_type", out->own.loss_type);
  out->own.cpo_alpha = arguments.number("cpo_alpha", 1);
  out->own.simpo_gamma = arguments.number("simpo_gamma", 0.5);
  out->own.alpha = arguments.number("alpha", 0);
  out->pairs.disable_dropout = arguments.flag("disable_dropout");
  refuse_smoothing(arguments);
  ignore_row_shapes(arguments);
  to.trainer.use<train::CpoConfig>(out);
}

void read_tpo(Arguments& arguments, const Value&, ReplayCase& to) {
  auto out = std::make_shared<train::TpoConfig>();
  out->beta = arguments.number("beta", 0.01);
  out->label_smoothing = arguments.number("label_smoothing", 0);
  take_choice(arguments, "loss_type", out->loss_type);
  out->tpo_alpha = arguments.number("tpo_alpha", 1);
  out->tpo_l_gamma = arguments.number("tpo_l_gamma", 0.5);
  out->disable_dropout = arguments.flag("disable_dropout");
  refuse_smoothing(arguments);
  to.trainer.use<train::TpoConfig>(out);
}

// Answers of each example stand one block of rows after the other.
std::vector<data::Example> stacked_answers(const Value& line, const std::string& where, size_t answers) {
  const RecordedRows ids = required_rows(line, "input_ids", where), mask = rows_of(line, "attention_mask", where);
  const RecordedRows completion = rows_of(line, "completion_mask", where);
  if (ids.size() % answers || mask.size() != ids.size() || completion.size() != ids.size())
    refuse(where, str("needs input_ids, attention_mask and completion_mask of ", answers, " answers to each prompt"));
  const size_t count = ids.size() / answers;
  std::vector<data::Example> out(count);
  std::vector<std::vector<float>> tokens(count);
  for (size_t i = 0; i < ids.size(); ++i) {
    append(out[i % count], example_of(ids[i], &mask[i], masked_labels(ids[i], completion[i])));
    float answer = 0;
    for (const int64_t one : completion[i]) answer += float(one);
    tokens[i % count].push_back(answer);
  }
  for (size_t i = 0; i < count; ++i) out[i].set({train::answer_tokens, per_sequence, tokens[i]});
  return out;
}

// TRL 0.24's rows: the prompts apart from both answers.
std::vector<data::Example> apart(const Value& line, const std::string& where) {
  const RecordedRows prompts = required_rows(line, "prompt_input_ids", where);
  const RecordedRows prompt_mask = required_rows(line, "prompt_attention_mask", where);
  std::vector<data::Example> out(prompts.size());
  std::vector<std::vector<float>> tokens(prompts.size());
  for (const std::string answer : {"chosen", "rejected"}) {
    const RecordedRows ids = required_rows(line, answer + "_input_ids", where);
    const RecordedRows mask = required_rows(line, answer + "_attention_mask", where);
    if (ids.size() != prompts.size()) refuse(where, "has more or fewer answers than prompts");
    for (size_t i = 0; i < ids.size(); ++i) {
      std::vector<int64_t> all = prompts[i], attended = prompt_mask[i], learned(all.size(), 0);
      all.insert(all.end(), ids[i].begin(), ids[i].end());
      attended.insert(attended.end(), mask[i].begin(), mask[i].end());
      learned.insert(learned.end(), mask[i].begin(), mask[i].end());
      append(out[i], example_of(all, &attended, masked_labels(all, learned)));
      float count = 0;
      for (const int64_t one : mask[i]) count += float(one);
      tokens[i].push_back(count);
    }
  }
  for (size_t i = 0; i < out.size(); ++i) out[i].set({train::answer_tokens, per_sequence, tokens[i]});
  return out;
}

std::vector<data::Example> dpo_rows(const Value& line, const std::string& where) {
  std::vector<data::Example> out = line.find("prompt_input_ids") ? apart(line, where) : stacked_answers(line, where, 2);
  const auto chosen = floats_of(line, "ref_chosen_logps"), rejected = floats_of(line, "ref_rejected_logps");
  for (size_t i = 0; i < std::min(out.size(), chosen.size()); ++i)
    out[i].set({"reference_logps", per_sequence, std::vector<float>{chosen[i], rejected.at(i)}});
  return out;
}

std::vector<data::Example> tpo_rows(const Value& line, const std::string& where) {
  // Runs without the gold answers' likelihood have no rows of them.
  const RecordedRows ids = required_rows(line, "input_ids", where);
  return stacked_answers(line, where, ids.size() % 3 == 0 ? 3 : 2);
}

// Of ORPO and CPO: whole rows with labels of the answers. ORPO also learns the chosen answers' prompts.
std::vector<data::Example> labelled_pairs(const Value& line, const std::string& where, bool chosen_prompts) {
  std::vector<data::Example> out;
  std::vector<std::vector<int64_t>> answers;
  for (const std::string answer : {"chosen", "rejected"}) {
    const RecordedRows ids = required_rows(line, answer + "_input_ids", where);
    const RecordedRows mask = required_rows(line, answer + "_attention_mask", where);
    const RecordedRows labels = required_rows(line, answer + "_labels", where);
    out.resize(ids.size());
    answers.resize(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      const data::Example learned = example_of(ids[i], &mask[i], labels[i]);
      for (const int32_t label : learned.labels) answers[i].push_back(label != data::no_label);
      append(out[i], chosen_prompts && answer == "chosen" ? example_of(ids[i], &mask[i], ids[i]) : learned);
    }
  }
  for (size_t i = 0; i < out.size(); ++i)
    out[i].set({train::in_answer, data::Column::Per::token, std::move(answers[i])});
  return out;
}

std::vector<data::Example> orpo_rows(const Value& line, const std::string& where) {
  return labelled_pairs(line, where, true);
}
std::vector<data::Example> cpo_rows(const Value& line, const std::string& where) {
  return labelled_pairs(line, where, false);
}

}  // namespace

std::vector<ReplayMethod> replayed_pairs() {
  return {{"CPOTrainer", read_cpo, cpo_rows},
          {"DPOTrainer", read_dpo, dpo_rows},
          {"ORPOTrainer", read_orpo, orpo_rows},
          {"TPOTrainer", read_tpo, tpo_rows}};
}

}  // namespace easydel::probe
