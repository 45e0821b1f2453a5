// What a generation is asked for: the fields of transformers' GenerationConfig (5.23) by their names, with its defaults
// where they are not said to be others. A face: no torch. What the fields do to scores is processors.h.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::generation {

enum class EarlyStopping : uint8_t { no, yes, never };
constexpr auto choices(EarlyStopping) {
  using config::Choice;
  return std::array{Choice{EarlyStopping::no, "false"}, Choice{EarlyStopping::yes, "true"},
                    Choice{EarlyStopping::never, "never"}};
}

// Ours is one cache for all of them: a slot of fixed room a sequence, layers as the model has them.
enum class CacheImplementation : uint8_t { plain, offloaded, quantized, paged };
constexpr auto choices(CacheImplementation) {
  using config::Choice;
  using C = CacheImplementation;
  return std::array{
      Choice{C::plain, "dynamic"}.also("static").also("sliding_window").also("hybrid").also("hybrid_chunked"),
      Choice{C::offloaded, "offloaded"}
          .also("offloaded_static")
          .also("offloaded_hybrid")
          .also("offloaded_hybrid_chunked")
          .not_built(),
      Choice{C::quantized, "quantized"}.not_built(), Choice{C::paged, "paged"}.not_built()};
}

enum class SeedingScheme : uint8_t { lefthash, selfhash };
constexpr auto choices(SeedingScheme) {
  using config::Choice;
  return std::array{Choice{SeedingScheme::lefthash, "lefthash"}, Choice{SeedingScheme::selfhash, "selfhash"}};
}

// A share of the vocabulary, drawn by a hash of the last tokens, is made likelier (arXiv:2306.04634). The draws are
// torch's, so that transformers' detector finds the mark.
struct WatermarkingConfig {
  double greenlist_ratio = 0.25;
  double bias = 2.0;
  int64_t hashing_key = 15485863;
  SeedingScheme seeding_scheme = SeedingScheme::lefthash;
  int64_t context_width = 1;

  static constexpr auto doc = "A mark in the text that a detector finds (arXiv:2306.04634).";
  static constexpr auto fields() {
    using namespace config;
    using W = WatermarkingConfig;
    return std::tuple{
        field<&W::greenlist_ratio>("Share of the vocabulary that is made likelier, more than 0 and less than 1.",
                                   between(0, 1)),
        field<&W::bias>("What is added to their scores."),
        field<&W::hashing_key>("Key of the hash; the detector needs it."),
        field<&W::seeding_scheme>("Whether the hash is of the tokens before, or also of the token itself."),
        field<&W::context_width>("How many tokens before are hashed.", at_least(1)),
    };
  }
};

// [[ids], bias]: what is added to the score of the last id where the others came before it.
struct SequenceBias {
  std::vector<int64_t> tokens;
  double bias = 0;
};

struct GenerationConfig {
  // Length and end.
  std::optional<int64_t> max_length = {}, max_new_tokens = {};
  int64_t min_length = 0, min_new_tokens = 0;
  std::optional<double> max_time = {};
  config::Many<std::string> stop_strings = {};
  config::Many<int64_t> eos_token_id = {};
  std::optional<int64_t> pad_token_id = {}, bos_token_id = {};

  // The search.
  bool do_sample = false;
  uint64_t seed = 0;
  int64_t num_return_sequences = 1;
  int64_t num_beams = 1;
  EarlyStopping early_stopping = EarlyStopping::no;
  double length_penalty = 1.0;

  // The scores, in the order in which they are changed.
  double guidance_scale = 1.0;
  std::vector<SequenceBias> sequence_bias = {};
  double encoder_repetition_penalty = 1.0;
  double presence_penalty = 0.0, frequency_penalty = 0.0;
  double repetition_penalty = 1.0;
  int64_t no_repeat_ngram_size = 0;
  int64_t encoder_no_repeat_ngram_size = 0;
  std::vector<std::vector<int64_t>> bad_words_ids = {};
  std::optional<int64_t> forced_bos_token_id = {};
  config::Many<int64_t> forced_eos_token_id = {};
  bool remove_invalid_values = false;
  std::optional<std::array<double, 2>> exponential_decay_length_penalty = {};
  std::vector<int64_t> suppress_tokens = {};
  std::vector<int64_t> begin_suppress_tokens = {};
  double temperature = 1.0;
  std::optional<double> top_h = {};
  int64_t top_k = 50;
  double top_p = 1.0;
  double min_p = 0.0;
  double typical_p = 1.0;
  double epsilon_cutoff = 0.0;
  double eta_cutoff = 0.0;
  std::optional<WatermarkingConfig> watermarking_config = {};
  bool renormalize_logits = false;

  // What is given back, and the cache.
  bool output_scores = false, output_logits = false;
  bool output_attentions = false, output_hidden_states = false, return_dict_in_generate = false;
  bool use_cache = true;
  CacheImplementation cache_implementation = CacheImplementation::plain;
  Value cache_config = {};
  std::optional<int64_t> max_cache_len = {}, prefill_chunk_size = {};

  // Searches that are not built.
  bool token_healing = false;
  std::optional<double> penalty_alpha = {};
  Value dola_layers = {};
  int64_t num_beam_groups = 1;
  double diversity_penalty = 0.0;
  Value constraints = {}, force_words_ids = {};
  bool use_mtp = false;
  std::optional<int64_t> prompt_lookup_num_tokens = {}, assistant_early_exit = {};
  std::optional<std::string> speculation_type = {};

  // What only matters to them, to encoder-decoders, or to torch.compile.
  bool is_assistant = false;
  int64_t num_assistant_tokens = 20;
  std::string num_assistant_tokens_schedule = "constant";
  double assistant_confidence_threshold = 0.4;
  std::optional<double> assistant_ensemble_weight = {};
  std::optional<int64_t> max_matching_ngram_size = {};
  int64_t assistant_lookbehind = 10, target_lookbehind = 10;
  config::Many<int64_t> decoder_start_token_id = {};
  Value compile_config = {};
  bool disable_compile = false, low_memory = false;

  // The keys that were asked for. The others give way to the model's own settings: generation_config() below.
  std::set<std::string, std::less<>> given = {};
  static constexpr auto given_keys = &GenerationConfig::given;

  bool greedy() const { return !do_sample || temperature == 0; }

  static constexpr auto doc = "How a text is continued: transformers' generation parameters.";
  static constexpr auto fields() {
    using namespace config;
    using G = GenerationConfig;
    constexpr std::string_view kNoAssistant = "there is no assistant model";
    constexpr std::string_view kCompiled = "nothing is compiled while it runs";
    constexpr std::string_view kInCode = "whole rows of scores come from C++ alone";
    return std::tuple{
        field<&G::max_length>("At most this many tokens, the prompt counted; max_new_tokens goes before it.",
                              at_least(1)),
        field<&G::max_new_tokens>("At most this many new tokens; null: as max_length says, else 256.", at_least(1)),
        field<&G::min_length>("No end before this many tokens, the prompt counted.", at_least(0)),
        field<&G::min_new_tokens>("No end before this many new tokens; goes before min_length.", at_least(0)),
        field<&G::max_time>("No new token after this many seconds.", at_least(0)),
        field<&G::stop_strings>("Texts that end the generation; they are not part of it.", alias("stop")),
        field<&G::eos_token_id>("Tokens that end the text."),
        field<&G::pad_token_id>("What fills rows of unequal length where they are laid side by side."),
        field<&G::bos_token_id>("The token that begins a text; an empty prompt is this token."),
        field<&G::do_sample>("Draw the next token instead of taking the likeliest."),
        field<&G::seed>("Of the draws: equal seeds and prompts draw equal tokens, whatever runs beside them."),
        field<&G::num_return_sequences>("Continuations of each prompt: draws, or the best of num_beams.", at_least(1)),
        field<&G::num_beams>("Continuations that are followed at once; 1: no beam search.", at_least(1)),
        field<&G::early_stopping>("Beams: end with num_beams complete ones (true), when a better one is unlikely "
                                  "(false), or impossible (never)."),
        field<&G::length_penalty>("Beams: a sequence's score is divided by its length to this power."),
        field<&G::guidance_scale>("Scores go so far away from those of the negative prompt (arXiv:2306.17806); 1: off.",
                                  at_least(0)),
        field<&G::sequence_bias>("What is added to the scores of token sequences: a list of [[ids], bias]."),
        field<&G::encoder_repetition_penalty>("Multiplies positive and divides negative scores of the prompt's tokens.",
                                              above(0)),
        field<&G::presence_penalty>("Taken from the score of every token that was generated before."),
        field<&G::frequency_penalty>("Taken from a token's score once for each time that it was generated before."),
        field<&G::repetition_penalty>("Divides positive and multiplies negative scores of tokens seen before.",
                                      above(0)),
        field<&G::no_repeat_ngram_size>("No run of this many tokens comes twice; 0: off.", at_least(0)),
        field<&G::encoder_no_repeat_ngram_size>("No run of this many tokens of the prompt comes again; 0: off.",
                                                at_least(0)),
        field<&G::bad_words_ids>("Token sequences that never come."),
        field<&G::forced_bos_token_id>("The first token after a prompt of one token.", at_least(0)),
        field<&G::forced_eos_token_id>("The last token where the length ends the text.", at_least(0)),
        field<&G::remove_invalid_values>("Scores that are no numbers, or infinite, become finite."),
        field<&G::exponential_decay_length_penalty>(
            "[start, factor]: after so many new tokens the end grows likelier by this factor a token."),
        field<&G::suppress_tokens>("Tokens that never come."),
        field<&G::begin_suppress_tokens>("Tokens that do not come first."),
        field<&G::temperature>("Scores are divided by it before a draw; 0: take the likeliest.", at_least(0)),
        field<&G::top_h>("Draw among the likeliest tokens that hold this share of the entropy (arXiv:2509.02510).",
                         between(0, 1)),
        field<&G::top_k>("Draw among this many of the likeliest tokens; 0: all.", at_least(0)),
        field<&G::top_p>("Draw among the likeliest tokens that together have this probability.", between(0, 1)),
        field<&G::min_p>("Draw among tokens at least this share as likely as the likeliest.", between(0, 1)),
        field<&G::typical_p>("Draw among the most typical tokens of this probability (arXiv:2202.00666).",
                             between(0, 1)),
        field<&G::epsilon_cutoff>("Draw among tokens of at least this probability (arXiv:2210.15191); 0: off.",
                                  between(0, 1)),
        field<&G::eta_cutoff>("The same with a bound that falls with the entropy (arXiv:2210.15191); 0: off.",
                              between(0, 1)),
        field<&G::watermarking_config>("A mark in the text that a detector finds; null: none."),
        field<&G::renormalize_logits>("Scores become log-probabilities again after all changes."),
        field<&G::output_scores>("Give back the changed scores of every step.", no_effect(kInCode)),
        field<&G::output_logits>("Give back the model's scores of every step.", no_effect(kInCode)),
        field<&G::output_attentions>("Give back attention weights.", not_built("giving back attention weights")),
        field<&G::output_hidden_states>("Give back hidden states.", not_built("giving back hidden states")),
        field<&G::return_dict_in_generate>("A record instead of the sequences alone.",
                                           no_effect("a result is always a record")),
        field<&G::use_cache>("Keep keys, values and states of tokens; false: compute them anew for every token."),
        field<&G::cache_implementation>("Which cache."),
        field<&G::cache_config>("Arguments of the cache.", not_built("a cache with arguments")),
        field<&G::max_cache_len>("Room of a static cache.", no_effect("the cache has the room that the call needs")),
        field<&G::prefill_chunk_size>("Tokens of prompts in one pass.", at_least(1)),
        field<&G::token_healing>("Choose a prompt's last token anew.", not_built("token healing")),
        field<&G::penalty_alpha>("Contrastive search.", not_built("contrastive search")),
        field<&G::dola_layers>("Contrast with earlier layers.", not_built("DoLa")),
        field<&G::num_beam_groups>("Groups of diverse beams.", not_built("group beam search")),
        field<&G::diversity_penalty>("How much groups of beams differ.", not_built("group beam search")),
        field<&G::constraints>("Beams that must hold something.", not_built("constrained beam search")),
        field<&G::force_words_ids>("Token sequences that must come.", not_built("constrained beam search")),
        field<&G::use_mtp>("Speculate with the model's further heads.", not_built("speculation")),
        field<&G::prompt_lookup_num_tokens>("Speculate by looking into the prompt.", not_built("speculation")),
        field<&G::assistant_early_exit>("Speculate with the first layers.", not_built("speculation")),
        field<&G::speculation_type>("How to speculate.", not_built("speculation")),
        field<&G::is_assistant>("The model speculates for another.", no_effect(kNoAssistant)),
        field<&G::num_assistant_tokens>("Tokens that an assistant speculates.", no_effect(kNoAssistant)),
        field<&G::num_assistant_tokens_schedule>("How their number changes.", no_effect(kNoAssistant)),
        field<&G::assistant_confidence_threshold>("When an assistant gives up.", no_effect(kNoAssistant)),
        field<&G::assistant_ensemble_weight>("Share of the assistant's probabilities.", no_effect(kNoAssistant)),
        field<&G::max_matching_ngram_size>("Tokens that are looked for in the prompt.", no_effect(kNoAssistant)),
        field<&G::assistant_lookbehind>("Tokens that an assistant with another tokenizer reads again.",
                                        no_effect(kNoAssistant)),
        field<&G::target_lookbehind>("The same of the model's tokens.", no_effect(kNoAssistant)),
        field<&G::decoder_start_token_id>("The first token of an encoder-decoder's answer.",
                                          no_effect("there is no encoder")),
        field<&G::compile_config>("How the forward is compiled.", no_effect(kCompiled)),
        field<&G::disable_compile>("Do not compile.", no_effect(kCompiled)),
        field<&G::low_memory>("Follow beams one after the other.", no_effect("beams always run together")),
    };
  }
};

// Keys of GenerationConfig as they were asked for. UserError: a wrong value.
GenerationConfig read_generation(const Value& keys);

// What is asked for, and the rest as the model folder's generation_config.json says it (without that file, config.json
// for the tokens that end, begin and pad a text). Keys of the files that are not ours are passed over; folders without
// the files give the defaults. Asking for a temperature or another limit of the draw without do_sample asks for draws.
// UserError: a wrong value in a file.
GenerationConfig generation_config(const std::filesystem::path& model_folder, const GenerationConfig& asked = {});

// Refuses keys that do not fit together; the second as a UserError.
void check_together(const GenerationConfig& config, config::Keys keys);
void check_together(const GenerationConfig& config);

}  // namespace easydel::generation

template <>
struct easydel::config::Codec<easydel::generation::SequenceBias> {
  using Bias = easydel::generation::SequenceBias;
  static std::string expects() { return "[[token ids], a number]"; }
  static Value schema() { return detail::schema_list(Value::map(), 2); }
  static bool read(const Value& value, Bias& out, const At& at) {
    if (!value.is_list() || value.items.size() != 2)
      return at.wrong(value, shown(value) + " is not [[token ids], a number]");
    return Codec<std::vector<int64_t>>::read(value.items[0], out.tokens, at) &&
           Codec<double>::read(value.items[1], out.bias, at);
  }
  static Value write(const Bias& value) {
    Value out = Value::list();
    out.items = {Codec<std::vector<int64_t>>::write(value.tokens), Codec<double>::write(value.bias)};
    return out;
  }
};
