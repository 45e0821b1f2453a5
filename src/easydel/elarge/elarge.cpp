#include "easydel/elarge/elarge.h"

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/config/paths.h"
#include "easydel/generation/generation_config.h"
#include "easydel/nn/checkpointing_config.h"
#include "easydel/text/chat_template.h"

namespace easydel::elarge {

void BaseValues::settle(config::Keys& keys) {
  const std::string key = "gradient_checkpointing_targets";
  const std::string_view policy = config::word_of(gradient_checkpointing);
  if (!nn::takes_names(gradient_checkpointing)) {
    if (gradient_checkpointing_targets)
      keys.no_effect(key, str("gradient_checkpointing is ", policy, ", which takes no names"));
    return;
  }
  if (!gradient_checkpointing_targets || gradient_checkpointing_targets->empty())
    return keys.refuse(key, str(policy, " needs names"), "for example: [attn_output, mlp_down]");
  const auto known = nn::checkpoint_names();
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& name : *gradient_checkpointing_targets)
    if (std::ranges::find(names, name) == names.end())
      keys.refuse(key, str("there is no tensor '", name, "'"), did_you_mean(name, names));
}

void BaseConfig::settle(config::Keys& keys) {
  std::vector<std::string> names;
  for (const auto& choice : choices(AttentionMechanism{})) names.emplace_back(choice.name);
  for (const auto& [name, settings] : operation_configs)
    if (std::ranges::find(names, name) == names.end())
      keys.refuse("operation_configs." + name, "no such operation", did_you_mean(name, names));
}

namespace {

// {linear: {name: weight}} or {cat: {name: weight}} of adapters that have folders.
void check_sum(const Value& adapters, const Value& sum, const std::string& path, config::Problems& problems) {
  const bool is_sum = sum.entries.size() == 1 && (sum.entries[0].first == "linear" || sum.entries[0].first == "cat");
  const Value* const shares = is_sum ? &sum.entries[0].second : nullptr;
  if (!shares || !shares->is_map() || shares->entries.empty())
    return problems.add(path, sum.place, "is neither a folder nor a sum",
                        "for example {linear: {a: 0.7, b: 0.3}}, or cat");
  for (const auto& [name, weight] : shares->entries) {
    const Value* const part = adapters.find(name);
    if (!part || part->is_map())
      problems.add(path, weight.place, str("no adapter with a folder is called '", name, "'"),
                   "name its folder in the section adapters");
    if (!weight.as_double() || !std::isfinite(*weight.as_double()))
      problems.add(path, weight.place, str("the weight of '", name, "' is not a number"), "for example 0.5");
  }
}

void settle_adapters(Value& adapters, config::Keys keys) {
  config::Problems& problems = keys.problems();
  if (adapters.is_null()) return;
  if (!adapters.is_map()) return problems.add("adapters", adapters.place, "is not a mapping", "write {name: folder}");
  for (auto& [name, value] : adapters.entries) {
    if (value.is_map()) {
      check_sum(adapters, value, keys.path_of(name), problems);
    } else if (!value.as_string() || value.as_string()->empty()) {
      problems.add(keys.path_of(name), value.place, "is not the folder of an adapter", "write name: folder");
    } else {
      std::string path = *value.as_string();
      config::expand_path(path, keys, name);
      value.scalar = path;
    }
  }
}

}  // namespace

void Config::settle(config::Keys& keys) {
  const auto expand = [&](ModelConfig& one, std::string_view section) {
    config::Keys own = keys.below(section);
    if (!one.name_or_path.empty()) config::expand_path(one.name_or_path, own, "name_or_path");
    config::expand_path(one.tokenizer, own, "tokenizer");
    if (one.chat_template_is_file()) config::expand_path(one.chat_template, own, "chat_template");
  };
  expand(model, "model");
  if (std::optional<std::string>& tokenizer = mixture.tokenization.tokenizer) {
    config::Keys own = keys.below("mixture").below("tokenization");
    config::expand_path(tokenizer, own, "tokenizer");
    if (model.tokenizer && *model.tokenizer != *tokenizer)
      own.refuse("tokenizer", str("is '", *tokenizer, "', but model.tokenizer is '", *model.tokenizer, "'"),
                 "they are the same thing; give one of them");
    model.tokenizer = tokenizer;
  }
  settle_adapters(adapters, keys.below("adapters"));
  if (teacher_model) expand(*teacher_model, "teacher_model");
  if (reference_model) {
    expand(*reference_model, "reference_model");
    if (reference_model->chat_template)
      keys.below("reference_model").no_effect("chat_template", "a reference reads the tokens of the trained model");
  }
  if (reward_model) expand(*reward_model, "reward_model");
  if (platform.backend && loader.device != DeviceSetting::automatic) {
    const bool cpu = *platform.backend == Backend::cpu;
    if (cpu != (loader.device == DeviceSetting::cpu))
      keys.below("loader").refuse(
          "device", "contradicts platform.backend, which is " + std::string(cpu ? "cpu" : "gpu"), "give one of them");
  }
  if (loader.dtype == DTypeSetting::fp16 && loader.param_dtype == DTypeSetting::bf16 &&
      !keys.below("loader").given("param_dtype"))
    loader.param_dtype = DTypeSetting::fp16;
  if (base_config.values.lmhead_chunksize && !trainer.common.lmhead_chunksize)
    trainer.common.lmhead_chunksize = base_config.values.lmhead_chunksize;
  // If only one of them is given, it was copied to the trainer's before (document.cpp).
  if (mixture.batch_size && trainer.common.total_batch_size != *mixture.batch_size)
    keys.below("mixture").refuse(
        "batch_size",
        str("is ", *mixture.batch_size, ", but trainer.total_batch_size is ", trainer.common.total_batch_size),
        "they are the same thing; give one of them");
}

std::optional<std::string> read_chat_template(const ModelConfig& model, const std::string& section) {
  if (!model.chat_template) return std::nullopt;
  const std::string where = section + ".chat_template";
  if (model.chat_template_is_file() && !files::is_file(*model.chat_template))
    refuse(where, "'" + *model.chat_template + "' is neither a file nor a template",
           "give the path of a Jinja file, or the template's text");
  const std::string source = model.chat_template_is_file() ? files::read(*model.chat_template) : *model.chat_template;
  text::ChatTemplate(source, model.chat_template_is_file() ? *model.chat_template : where);
  return source;
}

config::Section GenerateAction::section() {
  const std::array tables{&config::section_of<GenerateConfig>(), &config::section_of<generation::GenerationConfig>()};
  config::Section out = config::merged(
      "Continue prompts with the model. Generation keys that are not given come from its generation_config.json.",
      tables);
  out.read_all = [](const Value& value, void* object, const std::string& path, config::Problems& problems) {
    auto& action = *static_cast<GenerateAction*>(object);
    const std::array parts{config::part(action.generate), config::part(action.generation)};
    config::read_sections(parts, value, path, problems);
  };
  out.write_all = [](const void* object) {
    const auto& action = *static_cast<const GenerateAction*>(object);
    Value document = config::write(action.generate);
    const auto asked = generation::asked_keys(action.generation);
    const Value generation = config::write(action.generation);
    for (const auto& [key, value] : generation.entries)
      if (asked.contains(key)) document.set(key, value);
    return document;
  };
  return out;
}

Value normalised(const Config& config) { return config::write(config); }

}  // namespace easydel::elarge
