#include "easydel/train/store_settings.h"

#include <algorithm>
#include <array>
#include <set>

#include "easydel/base/files.h"
#include "easydel/config/fields.h"
#include "easydel/data/example_stream.h"
#include "easydel/data/token_store.h"

namespace easydel::train {
namespace {

// Of the keys that all methods have, those that decide examples. A method's own keys all count.
constexpr std::array shaping_keys{"trainer_type", "max_length", "truncation_mode", "train_on_inputs", "loss_config"};

Value trainer_keys(const TrainerSection& trainer) {
  std::set<std::string> common;
  for (const Value& section : {config::write(trainer.common), config::write(trainer.python)})
    for (const auto& [name, value] : section.entries) common.insert(name);
  Value out = Value::map();
  for (auto& [name, value] : config::write(trainer).entries)
    if (!common.contains(name) || std::ranges::find(shaping_keys, name) != shaping_keys.end())
      out.set(name, std::move(value));
  return out;
}

Value settings_of(const TrainerSection& trainer, const data::MixtureConfig& mixture, const text::Tokenizer& tokenizer,
                  int64_t vocabulary) {
  Value settings = Value::map();
  settings.set("trainer", trainer_keys(trainer));
  settings.set("tokenization", config::write(mixture.tokenization));
  settings.set("packed", Value::boolean(mixture.pack_tokens || mixture.pack_on_the_fly));
  settings.set("pack_seq_length", Value::integer(mixture.pack_seq_length.value_or(0)));
  settings.set("pack_eos_token_id", Value::integer(mixture.pack_eos_token_id.value_or(-1)));
  settings.set("vocabulary", Value::integer(vocabulary));
  settings.set("chat_template", Value::text(tokenizer.chat_template().value_or("")));
  Value& files = settings.set("tokenizer", Value::list());
  for (const auto& file : tokenizer.files()) files.items.push_back(Value::text(files::sha256_of_file(file)));
  return settings;
}

}  // namespace

std::optional<data::StoreOptions> store_options(const TrainerSection& trainer, const data::MixtureConfig& mixture,
                                                const text::Tokenizer& tokenizer, int64_t vocabulary) {
  std::optional<data::StoreOptions> out = data::store_options(mixture);
  if (out) out->settings = settings_of(trainer, mixture, tokenizer, vocabulary);
  return out;
}

std::optional<data::StreamOptions> stream_options(const TrainerSection& trainer, const data::MixtureConfig& mixture,
                                                  const text::Tokenizer& tokenizer, int64_t vocabulary) {
  std::optional<data::StreamOptions> out = data::stream_options(mixture);
  if (out) out->settings = settings_of(trainer, mixture, tokenizer, vocabulary);
  return out;
}

}  // namespace easydel::train
