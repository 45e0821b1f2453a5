// The settings of a generation: the fields of transformers' GenerationConfig (5.23) under their names, with its
// defaults unless stated otherwise. A face: no torch. processors.h implements what the fields do to scores.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
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

// Here all of them are one paged cache, with the layers that the model has.
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

// Makes a part of the vocabulary, selected by a hash of the last tokens, more likely (arXiv:2306.04634). The selection
// uses torch's random numbers, so that transformers' detector finds the mark.
struct WatermarkingConfig {
  double greenlist_ratio = 0.25;
  double bias = 2.0;
  int64_t hashing_key = 15485863;
  SeedingScheme seeding_scheme = SeedingScheme::lefthash;
  int64_t context_width = 1;

  static constexpr auto doc = "A watermark that a detector finds in the text (arXiv:2306.04634).";
  template <class W>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&W::greenlist_ratio>("Share of the vocabulary that is made more likely, more than 0 and less than 1.",
                                   between(0, 1)),
        field<&W::bias>(
            "Value added to the scores of these tokens. A larger bias is easier to detect and changes the text more."),
        field<&W::hashing_key>("Key of the hash; the detector needs the same one."),
        field<&W::seeding_scheme>("What is hashed: lefthash, the preceding tokens; selfhash, also the token itself."),
        field<&W::context_width>("Number of preceding tokens that are hashed.", at_least(1)),
    };
  }
};

// [[ids], bias]: added to the score of the last id if the others precede it.
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

  // What is returned, and the cache.
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

  // The keys that a document or set() gave, even if to a default. See asked_keys().
  std::set<std::string, std::less<>> given = {};
  static constexpr auto given_keys = &GenerationConfig::given;

  // Sets a member as if a document gave its key: config.set<&GenerationConfig::do_sample>(false).
  template <auto member, class T>
  GenerationConfig& set(T value) {
    this->*member = std::move(value);
    given.emplace(config::name_of<member>());
    return *this;
  }

  bool greedy() const { return !do_sample || temperature == 0; }

  static constexpr auto doc = "Generation parameters, as in transformers.";
  template <class G>
  static constexpr auto fields() {
    using namespace config;
    constexpr std::string_view no_assistant = "there is no assistant model";
    constexpr std::string_view compiled = "nothing is compiled";
    constexpr std::string_view in_code = "scores are only available in C++";
    return std::array{
        field<&G::max_length>("Maximum number of tokens, prompt included; max_new_tokens takes precedence.",
                              at_least(1)),
        field<&G::max_new_tokens>("Maximum number of new tokens; null: max_length applies, else 256.", at_least(1)),
        field<&G::min_length>("Minimum number of tokens before the text may end, prompt included.", at_least(0)),
        field<&G::min_new_tokens>(
            "Minimum number of new tokens before the text may end; takes precedence over min_length.", at_least(0)),
        field<&G::max_time>("Seconds after which no new token is started.", at_least(0)),
        field<&G::stop_strings>("Strings that end the text; they are not part of the result.", alias("stop")),
        field<&G::eos_token_id>("Token ids that end the text."),
        field<&G::pad_token_id>("Token id that pads rows of unequal length."),
        field<&G::bos_token_id>("Token id that begins a text; an empty prompt is replaced by it."),
        field<&G::do_sample>("Sample the next token instead of taking the most likely one."),
        field<&G::seed>(
            "Random seed of sampling. Equal seeds and prompts give equal tokens, whatever else is in the batch."),
        field<&G::num_return_sequences>("Number of results for each prompt: samples, or the best of num_beams.",
                                        between(1, 4096)),
        field<&G::num_beams>("Number of beams; 1: no beam search. Time and memory grow with it.", between(1, 1024)),
        field<&G::early_stopping>("When beam search ends: true, as soon as num_beams sequences are complete; false, "
                                  "when a better one is unlikely; never, when a better one is impossible."),
        field<&G::length_penalty>(
            "Beam search divides the score of a sequence by its length to this power; above 0 favors long sequences."),
        field<&G::guidance_scale>("Classifier-free guidance: how far scores are moved away from those of the negative "
                                  "prompt (arXiv:2306.17806); 1: off. Costs a second forward pass per token.",
                                  at_least(0)),
        field<&G::sequence_bias>("Values added to the scores of token sequences: a list of [[ids], bias]."),
        field<&G::encoder_repetition_penalty>(
            "Penalty for tokens that are not in the prompt: above 1 favors tokens of the prompt; 1: off.", above(0)),
        field<&G::presence_penalty>("Subtracted from the score of each token that was already generated."),
        field<&G::frequency_penalty>(
            "Subtracted from the score of a token once for each time it was already generated."),
        field<&G::repetition_penalty>("Penalty for tokens of the prompt or the text so far: positive scores are "
                                      "divided by it, negative ones multiplied; 1: off.",
                                      above(0)),
        field<&G::no_repeat_ngram_size>("No sequence of this many tokens appears twice; 0: off.", at_least(0)),
        field<&G::encoder_no_repeat_ngram_size>("No sequence of this many tokens of the prompt appears again; 0: off.",
                                                at_least(0)),
        field<&G::bad_words_ids>("Token sequences that are never generated."),
        field<&G::forced_bos_token_id>("Token id forced after a prompt of one token.", at_least(0)),
        field<&G::forced_eos_token_id>("Token id forced as the last token if the maximum length ends the text.",
                                       at_least(0)),
        field<&G::remove_invalid_values>("Replace NaN and infinite scores by finite ones."),
        field<&G::exponential_decay_length_penalty>(
            "[start, factor]: after `start` new tokens the end becomes more likely by this factor with each token."),
        field<&G::suppress_tokens>("Token ids that are never generated."),
        field<&G::begin_suppress_tokens>("Token ids that are never generated first."),
        field<&G::temperature>("Scores are divided by it before sampling: below 1 is more predictable, above 1 more "
                               "varied; 0: take the most likely token.",
                               at_least(0)),
        field<&G::top_h>("Sample from the most likely tokens that hold this share of the entropy (arXiv:2509.02510).",
                         between(0, 1)),
        field<&G::top_k>("Sample from this many of the most likely tokens; 0: all.", at_least(0)),
        field<&G::top_p>(
            "Sample from the smallest set of most likely tokens whose probabilities add up to this; 1: all.",
            between(0, 1)),
        field<&G::min_p>("Sample from tokens that are at least this share as likely as the most likely one; 0: off.",
                         between(0, 1)),
        field<&G::typical_p>(
            "Sample from the most typical tokens whose probabilities add up to this (arXiv:2202.00666); 1: off.",
            between(0, 1)),
        field<&G::epsilon_cutoff>("Sample from tokens with at least this probability (arXiv:2210.15191); 0: off.",
                                  between(0, 1)),
        field<&G::eta_cutoff>(
            "Like epsilon_cutoff, with a bound that falls with the entropy (arXiv:2210.15191); 0: off.", between(0, 1)),
        field<&G::watermarking_config>("Watermark that a detector finds in the text; null: none."),
        field<&G::renormalize_logits>("Turn the scores into log-probabilities again after all changes."),
        field<&G::output_scores>("Return the changed scores of every step.", no_effect(in_code)),
        field<&G::output_logits>("Return the model's scores of every step.", no_effect(in_code)),
        field<&G::output_attentions>("Return attention weights.", not_built("returning attention weights")),
        field<&G::output_hidden_states>("Return hidden states.", not_built("returning hidden states")),
        field<&G::return_dict_in_generate>("Return a record instead of only the sequences.",
                                           no_effect("a result is always a record")),
        field<&G::use_cache>("Keep the keys, values and states of earlier tokens. false recomputes them for every "
                             "token, which is much slower."),
        field<&G::cache_implementation>("Kind of KV cache."),
        field<&G::cache_config>("Arguments of the cache.", not_built("a cache with arguments")),
        field<&G::max_cache_len>("Size of a static cache.", no_effect("the cache has the size that the call needs")),
        field<&G::prefill_chunk_size>(
            "Maximum number of prompt tokens in one forward pass; smaller chunks need less memory.", at_least(1)),
        field<&G::token_healing>("Choose the last token of the prompt again.", not_built("token healing")),
        field<&G::penalty_alpha>("Contrastive search.", not_built("contrastive search")),
        field<&G::dola_layers>("Contrast with earlier layers (DoLa).", not_built("DoLa")),
        field<&G::num_beam_groups>("Number of groups of diverse beams.", not_built("group beam search")),
        field<&G::diversity_penalty>("How much groups of beams differ.", not_built("group beam search")),
        field<&G::constraints>("Constraints that beams must satisfy.", not_built("constrained beam search")),
        field<&G::force_words_ids>("Token sequences that beams must contain.", not_built("constrained beam search")),
        field<&G::use_mtp>("Speculate with the model's multi-token prediction heads.", not_built("speculation")),
        field<&G::prompt_lookup_num_tokens>("Speculate with token sequences found in the prompt.",
                                            not_built("speculation")),
        field<&G::assistant_early_exit>("Speculate with the first layers of the model.", not_built("speculation")),
        field<&G::speculation_type>("Method of speculation.", not_built("speculation")),
        field<&G::is_assistant>("The model speculates for another model.", no_effect(no_assistant)),
        field<&G::num_assistant_tokens>("Number of tokens that an assistant model speculates.",
                                        no_effect(no_assistant)),
        field<&G::num_assistant_tokens_schedule>("How num_assistant_tokens changes.", no_effect(no_assistant)),
        field<&G::assistant_confidence_threshold>("Confidence below which an assistant model stops.",
                                                  no_effect(no_assistant)),
        field<&G::assistant_ensemble_weight>("Weight of the assistant model's probabilities.", no_effect(no_assistant)),
        field<&G::max_matching_ngram_size>("Number of tokens that are searched for in the prompt.",
                                           no_effect(no_assistant)),
        field<&G::assistant_lookbehind>("Number of tokens that an assistant with another tokenizer reads again.",
                                        no_effect(no_assistant)),
        field<&G::target_lookbehind>("Number of the model's tokens that are read again for such an assistant.",
                                     no_effect(no_assistant)),
        field<&G::decoder_start_token_id>("Token id that begins the answer of an encoder-decoder.",
                                          no_effect("there is no encoder")),
        field<&G::compile_config>("Settings of torch.compile.", no_effect(compiled)),
        field<&G::disable_compile>("Do not compile.", no_effect(compiled)),
        field<&G::low_memory>("Process beams one after the other.", no_effect("beams are always processed together")),
    };
  }
};

// The given keys of a GenerationConfig. Throws UserError for a wrong value.
GenerationConfig read_generation(const Value& keys);

// The keys that count as given: those in `given`, and those of members that differ from their default, so that a member
// that C++ code assigns is never lost. All others yield to the model's own settings.
std::set<std::string, std::less<>> asked_keys(const GenerationConfig& config);

// `asked`, completed from the model folder's generation_config.json (without that file: from config.json for the EOS,
// BOS and padding tokens). Unknown keys of the files are ignored; a folder without the files gives the defaults. Giving
// a temperature or another sampling limit without do_sample turns sampling on. Throws UserError for a wrong value in a
// file.
GenerationConfig generation_config(const std::filesystem::path& model_folder, const GenerationConfig& asked = {});

// Refuses keys that do not fit together; the second overload throws a UserError.
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
