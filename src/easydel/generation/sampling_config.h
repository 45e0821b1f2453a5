// How the next token is chosen: Hugging Face's generation parameters by their names. A face: no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::generation {

struct SamplingConfig {
  bool do_sample = false;
  double temperature = 1.0;
  int64_t top_k = 50;
  double top_p = 1.0;
  double min_p = 0.0;
  double typical_p = 1.0;
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  int64_t no_repeat_ngram_size = 0;
  int64_t min_length = 0;
  int64_t min_new_tokens = 0;
  int64_t max_new_tokens = 256;
  config::Many<int64_t> eos_token_id = {};
  std::vector<int64_t> suppress_tokens = {};
  std::vector<int64_t> begin_suppress_tokens = {};
  std::vector<std::vector<int64_t>> bad_words_ids = {};
  config::Many<std::string> stop = {};
  uint64_t seed = 0;

  bool greedy() const { return !do_sample || temperature == 0; }

  static constexpr auto doc = "How the next token is chosen.";
  static constexpr auto fields() {
    using namespace config;
    using S = SamplingConfig;
    return std::tuple{
        field<&S::do_sample>("Draw the next token instead of taking the likeliest."),
        field<&S::temperature>("Scores are divided by it before a draw; 0: take the likeliest.", at_least(0)),
        field<&S::top_k>("Draw among this many of the likeliest tokens; 0: all.", at_least(0)),
        field<&S::top_p>("Draw among the likeliest tokens that together have this probability.", between(0, 1)),
        field<&S::min_p>("Draw among tokens at least this share as likely as the likeliest.", between(0, 1)),
        field<&S::typical_p>("Draw among the most typical tokens of this probability (arXiv:2202.00666).", between(0, 1)),
        field<&S::repetition_penalty>("Divides positive and multiplies negative scores of tokens seen before.", above(0)),
        field<&S::presence_penalty>("Taken from the score of every token that was generated before."),
        field<&S::frequency_penalty>("Taken from a token's score once for each time that it was generated before."),
        field<&S::no_repeat_ngram_size>("No run of this many tokens comes twice; 0: off.", at_least(0)),
        field<&S::min_length>("No end before this many tokens, the prompt counted.", at_least(0)),
        field<&S::min_new_tokens>("No end before this many new tokens.", at_least(0)),
        field<&S::max_new_tokens>("At most this many new tokens.", at_least(1)),
        field<&S::eos_token_id>("Tokens that end the text."),
        field<&S::suppress_tokens>("Tokens that never come."),
        field<&S::begin_suppress_tokens>("Tokens that do not come first."),
        field<&S::bad_words_ids>("Token sequences that never come."),
        field<&S::stop>("Texts that end the generation; they are not part of it."),
        field<&S::seed>("Of the draws: equal seeds and prompts draw equal tokens, whatever runs beside them."),
    };
  }
};

// What a model folder's generation_config.json and config.json say; what we do not know in them is passed over, and
// what asks for a search that is not built yet (beams) is warned of. Folders without the files give the defaults.
SamplingConfig sampling_defaults(const std::filesystem::path& model_folder);

}  // namespace easydel::generation
