// What a request asks of the engine: the fields of EasyDeL's SamplingParams by their names, with its defaults and
// errors, and some of ours. No torch.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/esurge/guided_decoding.h"
#include "easydel/generation/generation_config.h"

namespace easydel::esurge {

enum class OutputKind : uint8_t { cumulative, delta, final_only };
constexpr auto choices(OutputKind) {
  using config::Choice;
  return std::array{Choice{OutputKind::cumulative, "cumulative"}, Choice{OutputKind::delta, "delta"},
                    Choice{OutputKind::final_only, "final_only"}.also("final")};
}
enum class LogprobsMode : uint8_t { raw, processed };
constexpr auto choices(LogprobsMode) {
  using config::Choice;
  return std::array{Choice{LogprobsMode::raw, "raw"}, Choice{LogprobsMode::processed, "processed"}};
}

// Limits of one request.
constexpr int64_t max_logprobs = 20;     // of logprobs and prompt_logprobs
constexpr size_t max_stops = 1024;       // stop strings
constexpr size_t max_stop_bytes = 1024;  // of one
constexpr size_t max_bad_words = 1024;
constexpr size_t max_logit_biases = 1024;

struct SamplingParams {
  int64_t n = 1;
  std::optional<int64_t> best_of = {};
  double presence_penalty = 0, frequency_penalty = 0, repetition_penalty = 1;
  double temperature = 1, top_p = 1, min_p = 0;
  int64_t top_k = 0;
  std::optional<int64_t> seed = {};
  config::Many<std::string> stop = {};
  std::vector<int64_t> stop_token_ids = {};
  std::vector<std::string> bad_words = {};
  bool ignore_eos = false;
  std::optional<int64_t> max_tokens = 16;
  int64_t min_tokens = 0;
  std::optional<int64_t> logprobs = {}, prompt_logprobs = {};
  bool detokenize = true, skip_special_tokens = false, spaces_between_special_tokens = true;
  bool include_stop_str_in_output = false;
  OutputKind output_kind = OutputKind::cumulative;
  std::optional<int64_t> truncate_prompt_tokens = {};
  std::optional<GuidedDecoding> guided_decoding = {};
  std::map<std::string, double> logit_bias = {};
  std::optional<std::vector<int64_t>> allowed_token_ids = {};
  Value extra_args = {};
  // Ours.
  int64_t priority = 0;
  std::optional<std::string> cache_salt = {};
  std::optional<double> timeout_seconds = {};
  std::optional<std::string> adapter = {};
  bool return_token_ids = false;
  LogprobsMode logprobs_mode = LogprobsMode::raw;

  bool greedy() const { return temperature < 1e-5; }
  int64_t num_beams() const;  // of extra_args; 1: no beam search
  // How tokens are speculated for this request, of extra_args; what is not given is the engine's.
  struct Speculation {
    std::optional<int64_t> prompt_lookup_num_tokens = {}, max_matching_ngram_size = {};  // drafts that are looked up
    std::optional<int64_t> num_assistant_tokens = {};                                    // of the draft model
  };
  Speculation speculation() const;
  // Answers that are generated; of them n are returned.
  int64_t choices_drawn() const { return best_of.value_or(n); }
  // What the sampler needs of it, extra_args included. bad_words, whose tokens only a tokenizer knows, stop rules and
  // n are the engine's business.
  generation::GenerationConfig generation() const;

  static constexpr auto doc = "What a request asks of the engine.";
  template <class S>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&S::n>("Number of answers to one prompt, whose tokens are computed once."),
        field<&S::best_of>(
            "Number of answers of which the n with the best mean log-probability are returned; null: n."),
        field<&S::presence_penalty>("Subtracted from the score of each token that was already generated; -2 to 2."),
        field<&S::frequency_penalty>(
            "Subtracted from the score of a token once for each time it was already generated; -2 to 2."),
        field<&S::repetition_penalty>("Penalty for tokens of the prompt or the answer so far: positive scores are "
                                      "divided by it, negative ones multiplied; 1: off.",
                                      above(0)),
        field<&S::temperature>("Scores are divided by it before sampling; 0: take the most likely token."),
        field<&S::top_p>(
            "Sample from the smallest set of most likely tokens whose probabilities add up to this; 1: all."),
        field<&S::min_p>("Sample from tokens that are at least this share as likely as the most likely one; 0: off.",
                         between(0, 1)),
        field<&S::top_k>("Sample from this many of the most likely tokens; 0 or -1: all.", at_least(-1)),
        field<&S::seed>("Random seed; equal requests with equal seeds give equal tokens. null or -1: a new one.",
                        at_least(-1)),
        field<&S::stop>("Strings that end an answer."),
        field<&S::stop_token_ids>("Token ids that end an answer.", at_least(0)),
        field<&S::bad_words>("Texts that are never generated."),
        field<&S::ignore_eos>("Go on after the model's end token."),
        field<&S::max_tokens>("Maximum number of tokens of an answer; null: what the context leaves.", at_least(1)),
        field<&S::min_tokens>("Number of tokens before which no end token and no stop string ends an answer.",
                              at_least(0)),
        field<&S::logprobs>("Number of most likely tokens whose log-probabilities are returned for each token, in "
                            "addition to the chosen one; null: none at all.",
                            between(0, max_logprobs)),
        field<&S::prompt_logprobs>("The same for the prompt's tokens.", between(0, max_logprobs)),
        field<&S::detokenize>("Return text."),
        field<&S::skip_special_tokens>("Leave special tokens out of the text."),
        field<&S::spaces_between_special_tokens>("Put spaces between special tokens of the text.",
                                                 no_effect("the tokenizer's own decoder decides")),
        field<&S::include_stop_str_in_output>("Leave the stop string at the end of the text."),
        field<&S::output_kind>("What a streamed result has: cumulative, all text so far; delta, what is new; "
                               "final_only, one result at the end."),
        field<&S::truncate_prompt_tokens>("Keep only this many tokens of the prompt, its last ones.", at_least(1)),
        field<&S::guided_decoding>("A constraint that the answer satisfies."),
        field<&S::logit_bias>("Values added to the scores of tokens, by token id."),
        field<&S::allowed_token_ids>("Token ids of which the answer is made; null: all.", at_least(0)),
        field<&S::extra_args>("Other fields of GenerationConfig."),
        field<&S::priority>("Requests with lower numbers are served first, if the engine's policy is priority."),
        field<&S::cache_salt>("Requests share cached prefixes only with those of the same salt."),
        field<&S::timeout_seconds>("Seconds after which a request ends with what is there.", above(0)),
        field<&S::adapter>("Name of a loaded adapter with which the request is answered; null: the model alone."),
        field<&S::return_token_ids>("Return token ids in addition to text."),
        field<&S::logprobs_mode>("raw: log-probabilities of the model's own distribution; processed: of the one that "
                                 "tokens are drawn from."),
    };
  }
  void settle(config::Keys& keys);
};

// UserError: what is wrong with a request; one problem without the list's last line.
void throw_problems(const config::Problems& problems);

// Reads the fields of a request. UserError: everything that is wrong with them.
SamplingParams read_sampling_params(const Value& fields);

}  // namespace easydel::esurge
