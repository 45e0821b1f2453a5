#include "easydel/train/store_settings.h"

#include <algorithm>
#include <array>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/config/fields.h"
#include "easydel/data/example_stream.h"
#include "easydel/data/token_store.h"

namespace easydel::train {
namespace {

// Of the keys that all methods have, those that decide examples; and loss_config has two.
constexpr std::array shaping_keys{"trainer_type", "max_length", "truncation_mode", "train_on_inputs"};

bool has_an_effect(const MethodConfig& method, const std::string& name) {
  const auto& keys = method.section().keys;
  const auto key = std::ranges::find(keys, name, &config::Key::name);
  return key == keys.end() || (key->no_effect.empty() && key->not_built.empty());
}

Value trainer_keys(const TrainerSection& trainer) {
  const MethodConfig& method = trainer.method();
  std::set<std::string, std::less<>> others;
  for (const Value& section : {config::write(trainer.common), config::write(trainer.python)})
    for (const auto& [name, value] : section.entries)
      if (std::ranges::find(shaping_keys, name) == shaping_keys.end()) others.insert(name);
  if (method.keys_after_examples)
    for (const std::string_view name : method.keys_after_examples()) others.emplace(name);
  Value out = Value::map();
  for (auto& [name, value] : config::write(trainer).entries)
    if (!others.contains(name) && has_an_effect(method, name)) out.set(name, std::move(value));
  if (method.facts.token_loss) {
    const LossConfig loss = trainer.common.loss();
    out.set("shift_tokens", Value::boolean(loss.shift_tokens));
    out.set("ignore_index", Value::integer(loss.ignore_index));
  }
  if (const auto library = library_of_method(method.name); !library.empty())
    out.set("plugin", Value::text(files::sha256_of_file(library)));
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

std::string why_not_stored(const TrainerSection& trainer, models::Task task, const models::Model* model) {
  const MethodFacts& facts = trainer.facts();
  if (facts.columns)
    return str("trainer_type ", trainer.common.trainer_type, " reads the rows' fields besides their tokens");
  if (facts.rows.has(data::RowKind::labelled) && task != models::Task::causal_lm && !model)
    return str("what the rows become depends on the classes of the model, which is for ", models::name_of(task));
  return "";
}

std::optional<data::StoreOptions> store_options(const TrainerSection& trainer, const data::MixtureConfig& mixture,
                                                const text::Tokenizer& tokenizer, int64_t vocabulary, models::Task task,
                                                const models::Model* model) {
  if (!why_not_stored(trainer, task, model).empty()) return std::nullopt;
  std::optional<data::StoreOptions> out = data::store_options(mixture);
  if (!out) return out;
  out->settings = settings_of(trainer, mixture, tokenizer, vocabulary);
  if (trainer.facts().rows.has(data::RowKind::labelled) && task != models::Task::causal_lm) {
    Value& classes = out->settings.set("model", Value::map());
    classes.set("task", Value::text(std::string(models::name_of(task))));
    for (const char* key : {"id2label", "num_labels", "problem_type"})
      if (const Value* const value = model->config().find(key)) classes.set(key, *value);
  }
  return out;
}

std::optional<data::StreamOptions> stream_options(const TrainerSection& trainer, const data::MixtureConfig& mixture,
                                                  const text::Tokenizer& tokenizer, int64_t vocabulary) {
  std::optional<data::StreamOptions> out = data::stream_options(mixture);
  if (out) out->settings = settings_of(trainer, mixture, tokenizer, vocabulary);
  return out;
}

}  // namespace easydel::train
