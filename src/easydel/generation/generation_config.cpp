#include "easydel/generation/generation_config.h"

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/parts_config.h"
#include "easydel/weights/folder.h"

namespace easydel::generation {
namespace {

// Copies the relevant keys of one file into `out`, except keys that were asked for. Nulls and other tools' keys are
// ignored.
void take(const Value& document, const std::string& where, auto counts, GenerationConfig& out) {
  if (!document.is_map()) return;
  const auto& section = config::section_of<GenerationConfig>();
  Value kept = Value::map();
  for (const auto& [name, value] : document.entries) {
    const auto key =
        std::ranges::find_if(section.keys, [&, &name = name](const config::Key& k) { return k.name == name; });
    if (key != section.keys.end() && counts(name) && !value.is_null() && !out.given.contains(name))
      kept.set(name, value);
  }
  const auto given = out.given;
  config::read(kept, out, where).throw_if_any();
  out.given = given;
}

}  // namespace

GenerationConfig read_generation(const Value& keys) {
  GenerationConfig out;
  config::Problems problems("generation");
  config::read_section(config::section_of<GenerationConfig>(), keys, &out, "", problems);
  problems.throw_if_any();
  return out;
}

std::set<std::string, std::less<>> asked_keys(const GenerationConfig& config) {
  static const Value defaults = config::write(GenerationConfig());
  std::set<std::string, std::less<>> out = config.given;
  for (const auto& [key, value] : config::differences(config::write(config), defaults).entries) out.insert(key);
  return out;
}

GenerationConfig generation_config(const std::filesystem::path& model_folder, const GenerationConfig& asked) {
  GenerationConfig out = asked;
  out.given = asked_keys(asked);
  const auto special = [](std::string_view name) {
    return name == "eos_token_id" || name == "bos_token_id" || name == "pad_token_id";
  };
  const std::filesystem::path settings = model_folder / "generation_config.json";
  if (files::exists(settings)) {
    take(
        parse_file(settings), settings.string(), [](std::string_view) { return true; }, out);
  } else if (weights::has_config(model_folder)) {
    const weights::ConfigFile config = weights::read_config(model_folder);
    take(models::part_config(config.document, config.where, models::PartRole::text), config.where.text(), special, out);
  }
  if (!out.given.contains("do_sample"))
    for (const char* key :
         {"temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff"})
      if (out.given.contains(key)) out.do_sample = out.temperature > 0;
  return out;
}

void check_together(const GenerationConfig& c, config::Keys keys) {
  const char* const several = "num_return_sequences";
  if (c.num_return_sequences > 1 && c.num_beams == 1 && c.greedy())
    keys.refuse(several, str(c.num_return_sequences, " continuations of the likeliest tokens would all be equal"),
                "set do_sample, or raise num_beams to at least this number");
  if (c.num_beams > 1 && c.num_return_sequences > c.num_beams)
    keys.refuse(several, str(c.num_return_sequences, " is more than num_beams ", c.num_beams),
                "raise num_beams or lower num_return_sequences");
  const auto forced_and_forbidden = [&](const char* key, const std::vector<int64_t>& forced) {
    if (!forced.empty() && std::ranges::all_of(forced, [&](int64_t id) {
          return std::ranges::find(c.suppress_tokens, id) != c.suppress_tokens.end();
        }))
      keys.refuse(key, str("token ", forced[0], " is forced, and suppress_tokens forbids it"),
                  "take it out of one of them; to put off the end, use min_new_tokens");
  };
  if (c.forced_bos_token_id) forced_and_forbidden("forced_bos_token_id", {*c.forced_bos_token_id});
  forced_and_forbidden("forced_eos_token_id", c.forced_eos_token_id);
  if (c.typical_p == 0) keys.refuse("typical_p", "0 leaves no token", "give more than 0; 1 switches it off");
  if (c.top_h && *c.top_h == 0)
    keys.refuse("top_h", "0 leaves no entropy", "give more than 0, or null to switch it off");
  if (c.exponential_decay_length_penalty) {
    const auto [start, factor] = *c.exponential_decay_length_penalty;
    if (start < 0 || start != std::floor(start) || factor <= 0)
      keys.refuse("exponential_decay_length_penalty",
                  str("[", start, ", ", factor, "] is not a number of tokens with a factor above 0"),
                  "give such as [100, 1.01]");
  }
  if (std::ranges::any_of(c.sequence_bias, [](const SequenceBias& entry) { return entry.tokens.empty(); }))
    keys.refuse("sequence_bias", "an entry has no tokens", "give such as [[[12, 7], -2.5]]");
  if (std::ranges::any_of(c.bad_words_ids, [](const auto& word) { return word.empty(); }))
    keys.refuse("bad_words_ids", "an entry has no tokens", "give such as [[12, 7], [9]]");
  if (c.watermarking_config &&
      (c.watermarking_config->greenlist_ratio <= 0 || c.watermarking_config->greenlist_ratio >= 1))
    keys.refuse(
        "watermarking_config",
        str("a greenlist_ratio of ", c.watermarking_config->greenlist_ratio, " selects either no tokens or all tokens"),
        "give more than 0 and less than 1");
}

void check_together(const GenerationConfig& config) {
  config::Problems problems("generation");
  check_together(config, config::Keys(problems, ""));
  problems.throw_if_any();
}

}  // namespace easydel::generation
