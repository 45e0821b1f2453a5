#include "easydel/server/sampling.h"

#include <array>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/esurge/context.h"
#include "easydel/server/api_error.h"

namespace easydel::server {
namespace {

using esurge::GuidedDecoding;
using esurge::SamplingParams;

// Keys of generation_config.json that change how tokens are chosen and have no name of their own in a request.
constexpr std::array passed_on = {"encoder_repetition_penalty",
                                  "no_repeat_ngram_size",
                                  "encoder_no_repeat_ngram_size",
                                  "bad_words_ids",
                                  "forced_bos_token_id",
                                  "forced_eos_token_id",
                                  "remove_invalid_values",
                                  "exponential_decay_length_penalty",
                                  "suppress_tokens",
                                  "begin_suppress_tokens",
                                  "sequence_bias",
                                  "top_h",
                                  "typical_p",
                                  "epsilon_cutoff",
                                  "eta_cutoff",
                                  "watermarking_config",
                                  "renormalize_logits"};

void apply_defaults(const generation::GenerationConfig& defaults, SamplingParams& out, Value& extra) {
  const auto asked = generation::asked_keys(defaults);
  const auto take = [&](const char* key, auto& to, const auto& from) {
    if (asked.contains(key)) to = from;
  };
  take("temperature", out.temperature, defaults.temperature);
  take("top_k", out.top_k, defaults.top_k);
  take("top_p", out.top_p, defaults.top_p);
  take("min_p", out.min_p, defaults.min_p);
  take("repetition_penalty", out.repetition_penalty, defaults.repetition_penalty);
  take("presence_penalty", out.presence_penalty, defaults.presence_penalty);
  take("frequency_penalty", out.frequency_penalty, defaults.frequency_penalty);
  take("stop_strings", out.stop, defaults.stop_strings);
  const Value document = config::write(defaults);
  for (const char* key : passed_on)
    if (const Value* const value = document.find(key); value && asked.contains(key)) extra.set(key, *value);
}

std::optional<GuidedDecoding> constraint_of(const GenerationFields& fields) {
  if (fields.structured_outputs) return fields.structured_outputs;
  GuidedDecoding out;
  out.json = fields.guided_json;
  out.regex = fields.guided_regex;
  out.grammar = fields.guided_grammar;
  out.choice = fields.guided_choice;
  const bool any = !out.json.is_null() || out.regex || out.grammar || out.choice;
  return any ? std::optional(out) : std::nullopt;
}

}  // namespace

SamplingParams sampling_of(const GenerationFields& fields, std::optional<int64_t> max_tokens,
                           const ServedModel& model) {
  SamplingParams out;
  Value extra = Value::map();
  apply_defaults(model.defaults, out, extra);
  const auto take = [](auto& to, const auto& from) {
    if (from) to = *from;
  };
  take(out.n, fields.n);
  take(out.temperature, fields.temperature);
  take(out.top_p, fields.top_p);
  take(out.top_k, fields.top_k);
  take(out.min_p, fields.min_p);
  take(out.presence_penalty, fields.presence_penalty);
  take(out.frequency_penalty, fields.frequency_penalty);
  take(out.repetition_penalty, fields.repetition_penalty);
  take(out.stop, fields.stop);
  take(out.logit_bias, fields.logit_bias);
  take(out.ignore_eos, fields.ignore_eos);
  take(out.min_tokens, fields.min_tokens);
  take(out.priority, fields.priority);
  take(out.include_stop_str_in_output, fields.include_stop_str_in_output);
  out.skip_special_tokens = fields.skip_special_tokens.value_or(true);
  out.best_of = fields.best_of;
  out.seed = fields.seed;
  out.prompt_logprobs = fields.prompt_logprobs;
  out.stop_token_ids = fields.stop_token_ids;
  out.bad_words = fields.bad_words;
  out.cache_salt = fields.cache_salt;
  out.truncate_prompt_tokens = fields.truncate_prompt_tokens;
  out.max_tokens = max_tokens;
  out.guided_decoding = constraint_of(fields);
  if (!model.adapter.empty()) out.adapter = model.adapter;
  if (fields.do_sample == false) out.temperature = 0;
  out.stop.insert(out.stop.end(), model.extra_stops.begin(), model.extra_stops.end());
  for (auto& [name, value] : sampler_fields(fields).entries) extra.set(name, value);
  if (fields.typical_p) extra.set("typical_p", Value::number(*fields.typical_p));
  if (!fields.suppress_tokens.empty()) {
    Value list = Value::list();
    for (const int64_t id : fields.suppress_tokens) list.items.push_back(Value::integer(id));
    extra.set("suppress_tokens", std::move(list));
  }
  if (!extra.entries.empty()) out.extra_args = std::move(extra);
  return out;
}

int64_t take_equal_answers(SamplingParams& sampling) {
  if (!sampling.greedy()) return 1;
  sampling.best_of = std::nullopt;  // the best of equal answers is any of them
  return std::exchange(sampling.n, 1);
}

std::optional<int64_t> default_max_tokens(const ServedModel& model) { return model.defaults.max_new_tokens; }

FittedRequest fit_request(std::vector<text::TokenId> prompt, const SamplingParams& sampling, const ServedModel& model) {
  FittedRequest out;
  const auto given = int64_t(prompt.size());
  if (sampling.truncate_prompt_tokens && given > *sampling.truncate_prompt_tokens)
    prompt.erase(prompt.begin(), prompt.begin() + (given - *sampling.truncate_prompt_tokens));
  try {
    esurge::FittedPrompt fitted =
        esurge::fit_context(std::move(prompt), sampling.max_tokens, model.max_model_len, model.config);
    out.prompt = std::move(fitted.tokens);
    out.max_tokens = fitted.max_tokens;
  } catch (const UserError& error) {
    ApiError refusal = error_of(error);
    refusal.code = "context_length_exceeded";
    throw Refusal(std::move(refusal));
  }
  out.truncated_tokens = given - int64_t(out.prompt.size());
  return out;
}

}  // namespace easydel::server
