#include "easydel/esurge/sampling_params.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "easydel/base/error.h"

namespace easydel::esurge {
namespace {

// The token id that a key of logit_bias is.
std::optional<int64_t> token_id(const std::string& text) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) return std::nullopt;
  return id;
}

// Fields of GenerationConfig that have names of their own here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> own_names{{
    {"max_new_tokens", "max_tokens"},
    {"min_new_tokens", "min_tokens"},
    {"max_length", "max_tokens"},
    {"min_length", "min_tokens"},
    {"max_time", "timeout_seconds"},
    {"stop_strings", "stop"},
    {"eos_token_id", "stop_token_ids"},
    {"do_sample", "temperature"},
    {"seed", "seed"},
    {"num_return_sequences", "n"},
    {"presence_penalty", "presence_penalty"},
    {"frequency_penalty", "frequency_penalty"},
    {"repetition_penalty", "repetition_penalty"},
    {"temperature", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"min_p", "min_p"},
}};

// Fields of GenerationConfig that the engine has, and the plain loop does not.
constexpr std::array<std::string_view, 3> of_speculation{"prompt_lookup_num_tokens", "max_matching_ngram_size",
                                                         "num_assistant_tokens"};
constexpr int64_t max_speculated = 64;

Value without_speculation(const Value& extra_args) {
  Value out = Value::map();
  for (const auto& [name, value] : extra_args.entries)
    if (std::ranges::find(of_speculation, name) == of_speculation.end()) out.set(name, value);
  return out;
}

}  // namespace

void SamplingParams::settle(config::Keys& keys) {
  constexpr double most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::min();
  if (n < 1) keys.refuse("n", str("n must be at least 1, got ", n, "."));
  if (best_of && *best_of < n) keys.refuse("best_of", str("best_of (", *best_of, ") must be >= n (", n, ")."));
  if (!(presence_penalty >= -2 && presence_penalty <= 2))
    keys.refuse("presence_penalty", str("presence_penalty must be in [-2, 2], got ", presence_penalty, "."));
  if (!(frequency_penalty >= -2 && frequency_penalty <= 2))
    keys.refuse("frequency_penalty", str("frequency_penalty must be in [-2, 2], got ", frequency_penalty, "."));
  if (!(repetition_penalty >= least && repetition_penalty <= most))
    keys.refuse("repetition_penalty",
                str("repetition_penalty must be greater than zero, got ", repetition_penalty, "."));
  if (!(temperature >= 0 && temperature <= most))
    keys.refuse("temperature", str("temperature must be non-negative, got ", temperature, "."));
  if (!(top_p > 0 && top_p <= 1)) keys.refuse("top_p", str("top_p must be in (0, 1], got ", top_p, "."));
  if (max_tokens && min_tokens > *max_tokens)
    keys.refuse("min_tokens", str("min_tokens (", min_tokens, ") must be <= max_tokens (", *max_tokens, ")."));
  if (!stop.empty() && !detokenize) keys.refuse("stop", "stop strings require detokenize=True.");
  if (stop.size() > max_stops)
    keys.refuse("stop", str(stop.size(), " stop strings are more than ", max_stops), "give fewer");
  for (const std::string& text : stop) {
    if (text.empty()) keys.refuse("stop", "an empty stop string would end every answer", "take it out");
    if (text.size() > max_stop_bytes)
      keys.refuse("stop", str("a stop string of ", text.size(), " bytes is longer than ", max_stop_bytes),
                  "shorten it");
  }
  if (bad_words.size() > max_bad_words)
    keys.refuse("bad_words", str(bad_words.size(), " words are more than ", max_bad_words), "give fewer");
  for (const std::string& word : bad_words)
    if (word.empty()) keys.refuse("bad_words", "an empty word would forbid every answer", "take it out");
  if (greedy() && choices_drawn() > 1 && num_beams() == 1)
    keys.refuse(n > 1 ? "n" : "best_of",
                str(n > 1 ? "n" : "best_of", " must be 1 for greedy sampling, got ", choices_drawn(), "."),
                "raise the temperature, or ask for one answer");
  if (logit_bias.size() > max_logit_biases)
    keys.refuse("logit_bias", str(logit_bias.size(), " tokens are more than ", max_logit_biases),
                "give fewer; allowed_token_ids may have any number");
  for (const auto& [id, bias] : logit_bias) {
    if (!token_id(id)) keys.refuse("logit_bias", str("'", id, "' is not a token id"));
    if (!(std::abs(bias) <= most)) keys.refuse("logit_bias", str("the bias of token ", id, " is not a finite number"));
  }
  if (allowed_token_ids && allowed_token_ids->empty())
    keys.refuse("allowed_token_ids", "no token is allowed", "give at least one id, or null to allow all");
  if (seed == -1) seed.reset();
  if (extra_args.is_null()) return;
  if (!extra_args.is_map()) return keys.refuse("extra_args", "is not a map of fields");
  for (const auto& [theirs, ours] : own_names)
    if (extra_args.find(std::string(theirs)))
      keys.refuse("extra_args", str("has ", theirs), str("give it as ", ours, ", not in extra_args"));
  for (const std::string_view name : of_speculation) {
    const Value* const given = extra_args.find(name);
    if (!given || given->is_null()) continue;
    const std::optional<int64_t> number = given->as_int();
    if (!number || *number < 1 || *number > max_speculated)
      keys.refuse("extra_args", str("has ", name, ": ", to_json(*given), ", which is out of range"),
                  str("give an integer from 1 to ", max_speculated));
  }
  keys.problems().collect(keys.path_of("extra_args"), [&] {
    generation::check_together(generation::read_generation(without_speculation(extra_args)), keys.below("extra_args"));
  });
}

int64_t SamplingParams::num_beams() const {
  const Value* const given = extra_args.is_map() ? extra_args.find("num_beams") : nullptr;
  return given ? given->as_int().value_or(1) : 1;
}

SamplingParams::Speculation SamplingParams::speculation() const {
  const auto number = [&](std::string_view name) {
    const Value* const given = extra_args.is_map() ? extra_args.find(name) : nullptr;
    return given ? given->as_int() : std::nullopt;
  };
  return {number("prompt_lookup_num_tokens"), number("max_matching_ngram_size"), number("num_assistant_tokens")};
}

generation::GenerationConfig SamplingParams::generation() const {
  Value keys = extra_args.is_map() ? without_speculation(extra_args) : Value::map();
  keys.set("do_sample", Value::boolean(!greedy()));
  keys.set("temperature", Value::number(greedy() ? 1 : temperature));
  keys.set("top_p", Value::number(greedy() ? 1 : top_p));
  keys.set("top_k", Value::integer(greedy() || top_k < 0 ? 0 : top_k));
  keys.set("min_p", Value::number(greedy() ? 0 : min_p));
  keys.set("presence_penalty", Value::number(presence_penalty));
  keys.set("frequency_penalty", Value::number(frequency_penalty));
  keys.set("repetition_penalty", Value::number(repetition_penalty));
  keys.set("min_new_tokens", Value::integer(min_tokens));
  if (max_tokens) keys.set("max_new_tokens", Value::integer(*max_tokens));
  if (seed) keys.set("seed", Value::integer(*seed));
  generation::GenerationConfig out = generation::read_generation(keys);
  for (const auto& [id, bias] : logit_bias) out.sequence_bias.push_back({{*token_id(id)}, bias});
  return out;
}

SamplingParams read_sampling_params(const Value& fields) {
  SamplingParams out;
  config::Problems problems("sampling_params");
  config::read_section(config::section_of<SamplingParams>(), fields, &out, "", problems);
  throw_problems(problems);
  return out;
}

void throw_problems(const config::Problems& problems) {
  if (problems.size() == 1) throw problems.error_of(problems.sorted()[0]);
  problems.throw_if_any();
}

}  // namespace easydel::esurge
