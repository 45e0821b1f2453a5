// The fields of requests, by OpenAI's names and those that other servers have added. A field that is absent has no
// value here: the model's generation_config.json and OpenAI's defaults are applied by those who know the model.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/esurge/sampling_params.h"
#include "easydel/server/json_body.h"

namespace easydel::server {

struct StreamOptions {
  bool include_usage = false, continuous_usage_stats = false, include_obfuscation = false;

  static constexpr auto doc = "What a stream has besides the answer.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::include_usage>("A last chunk has the usage."),
        field<&C::continuous_usage_stats>("Every chunk has the usage so far."),
        field<&C::include_obfuscation>("Accepted; chunks are never padded."),
    };
  }
};

// What requests that generate have in common.
struct GenerationFields {
  std::optional<std::string> model = {};
  bool stream = false;
  std::optional<StreamOptions> stream_options = {};
  std::optional<int64_t> n = {}, best_of = {}, seed = {}, max_tokens = {}, min_tokens = {}, top_k = {};
  std::optional<double> temperature = {}, top_p = {}, min_p = {}, typical_p = {};
  std::optional<double> presence_penalty = {}, frequency_penalty = {}, repetition_penalty = {};
  std::optional<config::Many<std::string>> stop = {};
  std::vector<int64_t> stop_token_ids = {}, suppress_tokens = {};
  std::vector<std::string> bad_words = {};
  std::optional<std::map<std::string, double>> logit_bias = {};
  std::optional<bool> ignore_eos = {}, skip_special_tokens = {}, include_stop_str_in_output = {};
  bool return_token_ids = false;
  std::optional<int64_t> prompt_logprobs = {}, priority = {}, truncate_prompt_tokens = {};
  std::optional<std::string> cache_salt = {}, user = {}, guided_regex = {}, guided_grammar = {};
  std::optional<esurge::GuidedDecoding> structured_outputs = {};
  Value guided_json = {}, metadata = {};
  std::optional<std::vector<std::string>> guided_choice = {};
  std::optional<std::string> service_tier = {};
  bool timings = false;
  // By the names of generation_config.json; passed on to the sampler, which has their rules.
  std::optional<bool> do_sample = {};
  Value encoder_repetition_penalty = {}, no_repeat_ngram_size = {}, encoder_no_repeat_ngram_size = {};
  Value bad_words_ids = {}, forced_bos_token_id = {}, forced_eos_token_id = {}, remove_invalid_values = {};
  Value exponential_decay_length_penalty = {}, begin_suppress_tokens = {}, sequence_bias = {}, top_h = {};
  Value epsilon_cutoff = {}, eta_cutoff = {}, renormalize_logits = {};

  static constexpr auto doc = "How an answer is generated.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::model>("Name of the model or adapter; null: the only model."),
        field<&C::stream>("Send the answer as events while it is generated."),
        field<&C::stream_options>("What a stream has besides the answer."),
        field<&C::n>("Number of answers.", between(1, 128), alias("num_return_sequences")),
        field<&C::best_of>("Number of answers of which the n best are returned.", between(1, 128)),
        field<&C::seed>("Random seed; equal requests with equal seeds have equal answers."),
        field<&C::max_tokens>("Maximum number of tokens of an answer.", at_least(0), alias("max_new_tokens")),
        field<&C::min_tokens>("Number of tokens before which nothing ends an answer.", at_least(0),
                              alias("min_new_tokens")),
        field<&C::top_k>("Sample from this many of the most likely tokens; 0 or -1: all.", at_least(-1)),
        field<&C::temperature>("Scores are divided by it; 0: take the most likely token.", between(0, 2)),
        field<&C::top_p>("Sample from the most likely tokens whose probabilities add up to this.", between(0, 1)),
        field<&C::min_p>("Sample from tokens at least this share as likely as the most likely one.", between(0, 1)),
        field<&C::typical_p>("Sample from tokens whose information is typical, of this probability.", between(0, 1)),
        field<&C::presence_penalty>("Subtracted from the score of each token that is there already.", between(-2, 2)),
        field<&C::frequency_penalty>("Subtracted once for each time that a token is there already.", between(-2, 2)),
        field<&C::repetition_penalty>("Scores of tokens that are there already are divided by it.", above(0)),
        field<&C::stop>("Strings that end an answer; at most 64 of at most 1024 bytes.", alias("stop_strings")),
        field<&C::stop_token_ids>("Token ids that end an answer.", at_least(0)),
        field<&C::suppress_tokens>("Token ids that are never generated.", at_least(0)),
        field<&C::bad_words>("Texts that are never generated."),
        field<&C::logit_bias>("Values from -100 to 100 that are added to the scores of tokens, by token id; at most "
                              "4096."),
        field<&C::ignore_eos>("Go on after the model's end token."),
        field<&C::skip_special_tokens>("Leave special tokens out of the text."),
        field<&C::include_stop_str_in_output>("Leave the stop string at the end of the text."),
        field<&C::return_token_ids>("Return token ids in addition to text."),
        field<&C::prompt_logprobs>("Number of log-probabilities of each token of the prompt.", between(0, 20)),
        field<&C::priority>("Requests with lower numbers are served first."),
        field<&C::truncate_prompt_tokens>("Keep only this many tokens of the prompt, its last ones.", at_least(1)),
        field<&C::cache_salt>("Prefixes are shared only with requests of the same salt."),
        field<&C::user>("A name for the client's own user."),
        field<&C::guided_regex>("Regular expression that the answer matches."),
        field<&C::guided_grammar>("Grammar of the answer, in GBNF."),
        field<&C::guided_json>("JSON schema of the answer."),
        field<&C::structured_outputs>("One kind of constraint: json, regex, choice, grammar or json_object."),
        field<&C::metadata>("The client's own notes."),
        field<&C::guided_choice>("Texts of which the answer is one."),
        field<&C::service_tier>("Accepted; there is one tier."),
        field<&C::timings>("Return how long prompt and answer took, as llama.cpp's server does; in a stream with the "
                           "finish reason.",
                           alias("timings_per_token")),
        field<&C::do_sample>("false: take the most likely token, whatever the temperature."),
        field<&C::encoder_repetition_penalty>("Scores of the prompt's tokens are multiplied by it."),
        field<&C::no_repeat_ngram_size>("No sequence of this many tokens appears twice; 0: off."),
        field<&C::encoder_no_repeat_ngram_size>("No sequence of this many tokens of the prompt appears again; 0: off."),
        field<&C::bad_words_ids>("Token sequences that are never generated."),
        field<&C::forced_bos_token_id>("Token id forced after a prompt of one token."),
        field<&C::forced_eos_token_id>("Token id forced as the last token if max_tokens ends the text."),
        field<&C::remove_invalid_values>("Replace NaN and infinite scores by finite ones."),
        field<&C::exponential_decay_length_penalty>("[start, factor]: the end becomes likelier after start tokens."),
        field<&C::begin_suppress_tokens>("Token ids that are never generated first."),
        field<&C::sequence_bias>("Values added to the scores of token sequences: a list of [[ids], bias]."),
        field<&C::top_h>("Sample from the most likely tokens that hold this share of the entropy."),
        field<&C::epsilon_cutoff>("Sample from tokens with at least this probability; 0: off."),
        field<&C::eta_cutoff>("Like epsilon_cutoff, with a bound that falls with the entropy; 0: off."),
        field<&C::renormalize_logits>("Turn the scores into log-probabilities again after all changes."),
    };
  }
  void settle(config::Keys& keys);
  std::string_view constraint_field() const;  // the first of guided_* and structured_outputs that is given; empty: none
};

// Fields by the names of generation_config.json that are passed on to the sampler, with their values.
Value sampler_fields(const GenerationFields& fields);

// Refuses strings that end an answer, given under `name`, if they are too many, empty or too long.
void check_stops(std::string_view name, const std::vector<std::string>& stops, config::Keys& keys);

// The section with a rule over several of its parts, which runs after these were read; fields with a problem then have
// their defaults (see is_wrong).
config::Section with_rule(config::Section section,
                          std::function<void(const void* object, const std::string& path, config::Problems&)> rule);

// For routes whose answer is one: n and best_of other than 1 are problems.
void refuse_several_answers(const GenerationFields& generation, const std::string& path, config::Problems& problems);

// A field that this server does not take; null and empty lists pass.
struct RefusedField {
  std::string name, problem, remedy;
};

struct RequestRules {
  bool strict = false;  // refuse fields that are not known, instead of passing over them
  std::vector<RefusedField> refused = {};
  std::vector<config::Problem> found = {};    // of parts of the body that were read before
  std::vector<config::Problem> missing = {};  // such parts that are not there
};

// What is wrong with a body, with the code of the first problem.
struct WrongBody : config::ConfigError {
  WrongBody(const config::Problems& problems, std::string code) : ConfigError(problems), code(std::move(code)) {}
  const std::string code;
};

// One body on its way into a struct: what is wrong with it is collected, whichever rule finds it.
class RequestReading {
 public:
  RequestReading(Value body, const config::Section& section, const RequestRules& rules);

  // Reads the fields without problems into `object`, which has its defaults. True: there were new problems, so that
  // the same has to be done again: rules over several fields are only checked once these fields are valid.
  bool read(void* object);
  void throw_if_any() const;  // problems in the order of the body
  std::vector<std::string> passed_over() { return std::move(passed_over_); }

 private:
  void refuse(const config::Problem& problem);  // with a code that follows from the body
  void refuse(const config::Problem& problem, std::string_view code);
  std::string_view code_of(const config::Problem& problem) const;
  bool take(const config::Problems& pass);

  const config::Section& section_;
  Value body_;  // without what has no effect
  config::Problems problems_{""};
  std::set<std::string, std::less<>> refused_;                  // fields with problems
  std::map<std::string, std::string_view, std::less<>> codes_;  // of the first problem at each path
  std::vector<std::string> names_, passed_over_;                // names_: of the body's fields, in their order
};

// Whether a problem was found with a field, so that rules over it and others mean nothing.
inline bool is_wrong(const config::Keys& keys, std::string_view name) {
  return keys.problems().any_at(keys.path_of(name));
}

// Reads a request. `passed_over`: the names of fields that had no effect. UserErrors have paths of the body.
template <config::Sectioned T>
T read_request(Value body, const RequestRules& rules, std::vector<std::string>& passed_over) {
  RequestReading reading(std::move(body), config::section_of<T>(), rules);
  T out;
  while (reading.read(&out)) out = T();
  reading.throw_if_any();
  passed_over = reading.passed_over();
  return out;
}

}  // namespace easydel::server
