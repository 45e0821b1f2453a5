#include "easydel/train/method_configs.h"

#include <algorithm>
#include <array>

#include "easydel/base/names.h"
#include "easydel/train/dpo_config.h"
#include "easydel/train/sft_config.h"

namespace easydel::train {
namespace {

template <class Config>
std::shared_ptr<void> make() {
  return std::make_shared<Config>();
}

void dpo_defaults(TrainerConfig& common) {
  common.learning_rate = 1e-6;
  common.max_length = 512;
}

constexpr std::array methods{
    MethodConfig{"dpo", config::section_of<DpoConfig>, make<DpoConfig>, dpo_defaults},
    MethodConfig{"sft", config::section_of<SftConfig>, make<SftConfig>},
};

// Methods of upstream that come later, and the keys by which the guide shows them: known words, so that a file with
// them is told what is missing instead of being called misspelled.
constexpr std::array<std::string_view, 23> later_methods{"agentic_moshpit",
                                                         "base",
                                                         "bco",
                                                         "cpo",
                                                         "distillation",
                                                         "embedding",
                                                         "gfpo",
                                                         "gkd",
                                                         "grpo",
                                                         "gspo",
                                                         "kto",
                                                         "nash_md",
                                                         "on_policy_distillation",
                                                         "orpo",
                                                         "ppo",
                                                         "ray",
                                                         "reward",
                                                         "rlvr",
                                                         "sdpo",
                                                         "seq_kd",
                                                         "sparse_distillation",
                                                         "tpo",
                                                         "xpo"};
constexpr std::array<std::string_view, 12> later_keys{"alpha",
                                                      "beta",
                                                      "epsilon",
                                                      "group_size",
                                                      "kl_coef",
                                                      "lambda_orpo",
                                                      "max_completion_length",
                                                      "max_prompt_length",
                                                      "num_generations",
                                                      "num_return_sequences",
                                                      "temperature",
                                                      "top_p"};

const config::Key* find(const config::Section& section, std::string_view word) {
  const auto key =
      std::find_if(section.keys.begin(), section.keys.end(), [&](const auto& k) { return k.answers_to(word); });
  return key == section.keys.end() ? nullptr : &*key;
}

bool knows(const config::Section& section, std::string_view word) { return find(section, word) != nullptr; }

// The method whose key this is, for a note; empty: nobody's.
std::string_view owner_of(std::string_view word) {
  for (const MethodConfig& method : methods)
    if (knows(method.section(), word)) return method.name;
  return std::find(later_keys.begin(), later_keys.end(), word) != later_keys.end() ? "other methods" : "";
}

std::vector<std::string> known_types() {
  std::vector<std::string> names;
  for (const MethodConfig& method : methods) names.emplace_back(method.name);
  return names;
}

// The chosen method; nullptr, with a problem noted, where it cannot be had.
const MethodConfig* chosen(const Value& value, const std::string& path, config::Problems& problems) {
  const Value* type = value.find("trainer_type");
  const std::string word = type ? type->as_string().value_or(type->scalar) : "sft";
  if (const MethodConfig* method = find_method_config(word)) return method;
  const bool later = std::find(later_methods.begin(), later_methods.end(), canonical(word)) != later_methods.end();
  auto known = known_types();
  if (later) {
    problems.add(config::join_path(path, "trainer_type"), type->place, "'" + word + "' is not built yet",
                 "built: " + join(known, ", "));
  } else {
    known.insert(known.end(), later_methods.begin(), later_methods.end());
    problems.add(config::join_path(path, "trainer_type"), type->place, "'" + word + "' is no training method",
                 did_you_mean(word, known));
  }
  return nullptr;
}

void read_trainer(const Value& value, void* object, const std::string& path, config::Problems& problems) {
  auto& out = *static_cast<TrainerSection*>(object);
  const config::Section& common = config::section_of<TrainerConfig>();
  if (!value.is_map() && !value.is_null()) {
    const config::Part part{&common, &out.common};
    return config::read_sections({&part, 1}, value, path, problems);
  }
  const MethodConfig* method = chosen(value, path, problems);
  Value own = value;
  own.entries.clear();
  own.key_places.clear();
  for (size_t i = 0; i < value.entries.size(); ++i) {
    const std::string& word = value.entries[i].first;
    const std::string_view owner = owner_of(word);
    if (!knows(common, word) && !(method && knows(method->section(), word)) && !owner.empty()) {
      // An unbuilt method has been refused already; its keys need no second word.
      if (method)
        problems.no_effect(config::join_path(path, word),
                           str("with trainer_type ", method->name, " (a key of ", owner, ")"));
      continue;
    }
    own.entries.push_back(value.entries[i]);
    if (i < value.key_places.size()) own.key_places.push_back(value.key_places[i]);
  }
  out.common = {};
  if (!method) {
    const config::Part part{&common, &out.common};
    return config::read_sections({&part, 1}, own, path, problems);
  }
  if (method->defaults) method->defaults(out.common);
  const std::shared_ptr<void> keys = method->make();
  const std::array parts{config::Part{&common, &out.common}, config::Part{&method->section(), keys.get()}};
  config::read_sections(parts, own, path, problems);
  out.common.trainer_type = method->name;
  out.own = keys;
}

Value write_trainer(const void* object) {
  const auto& section = *static_cast<const TrainerSection*>(object);
  const MethodConfig* method = find_method_config(section.common.trainer_type);
  check(method, "no method ", section.common.trainer_type);
  const std::array parts{
      config::Part{&config::section_of<TrainerConfig>(), const_cast<TrainerConfig*>(&section.common)},
      config::Part{&method->section(), const_cast<void*>(section.own.get())}};
  return config::write_sections(parts);
}

}  // namespace

std::span<const MethodConfig> method_configs() { return methods; }

const MethodConfig* find_method_config(std::string_view trainer_type) {
  const std::string word = canonical(trainer_type);
  for (const MethodConfig& method : methods)
    if (method.name == word) return &method;
  return nullptr;
}

TrainerSection::TrainerSection() : own(std::make_shared<SftConfig>()) {}

config::Section TrainerSection::section() {
  std::vector<const config::Section*> all{&config::section_of<TrainerConfig>()};
  for (const MethodConfig& method : methods) all.push_back(&method.section());
  config::Section out = config::merged(TrainerConfig::doc, all);
  out.read_all = read_trainer;
  out.write_all = write_trainer;
  return out;
}

}  // namespace easydel::train
