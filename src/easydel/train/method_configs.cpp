#include "easydel/train/method_configs.h"

#include <algorithm>
#include <array>

#include "easydel/base/names.h"
#include "easydel/train/agentic_moshpit_config.h"
#include "easydel/train/base_config.h"
#include "easydel/train/bco_config.h"
#include "easydel/train/cpo_config.h"
#include "easydel/train/distillation_config.h"
#include "easydel/train/dpo_config.h"
#include "easydel/train/embedding_config.h"
#include "easydel/train/gfpo_config.h"
#include "easydel/train/gkd_config.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/gspo_config.h"
#include "easydel/train/kto_config.h"
#include "easydel/train/nash_md_config.h"
#include "easydel/train/on_policy_distillation_config.h"
#include "easydel/train/orpo_config.h"
#include "easydel/train/ppo_config.h"
#include "easydel/train/ray_config.h"
#include "easydel/train/reward_config.h"
#include "easydel/train/rlvr_config.h"
#include "easydel/train/sdpo_config.h"
#include "easydel/train/seq_kd_config.h"
#include "easydel/train/sft_config.h"
#include "easydel/train/sparse_distillation_config.h"
#include "easydel/train/xpo_config.h"

namespace easydel::train {
namespace {

template <class Config>
constexpr MethodConfig method(std::string_view name, void (*defaults)(TrainerConfig&) = nullptr, bool built = true) {
  return {name, config::section_of<Config>, []() -> std::shared_ptr<void> { return std::make_shared<Config>(); },
          defaults, built};
}

template <double Rate>
void rate(TrainerConfig& common) {
  common.learning_rate = Rate;
}
template <int64_t Length>
void length(TrainerConfig& common) {
  common.max_length = Length;
}
template <double Rate, int64_t Length>
void rate_and_length(TrainerConfig& common) {
  rate<Rate>(common);
  length<Length>(common);
}

constexpr std::array methods{
    method<AgenticMoshpitConfig>("agentic_moshpit", rate<1e-6>, false),
    method<BaseTrainerConfig>("base", nullptr, false),
    method<BcoConfig>("bco", rate_and_length<1e-6, 1024>, false),
    method<CpoConfig>("cpo", rate_and_length<1e-6, 1024>, false),
    method<DistillationConfig>("distillation", nullptr, false),
    method<DpoConfig>("dpo", rate_and_length<1e-6, 512>),
    method<EmbeddingConfig>("embedding", rate_and_length<2e-5, 512>, false),
    method<GfpoConfig>("gfpo", rate<1e-6>, false),
    method<GkdConfig>("gkd", rate<2e-5>, false),
    method<GrpoConfig>("grpo", rate<1e-6>, false),
    method<GspoConfig>("gspo", rate<1e-6>, false),
    method<KtoConfig>("kto", rate_and_length<1e-6, 1024>, false),
    method<NashMdConfig>("nash_md", rate<1e-6>, false),
    method<OnPolicyDistillationConfig>("on_policy_distillation", nullptr, false),
    method<OrpoConfig>("orpo", rate_and_length<1e-6, 1024>, false),
    method<PpoConfig>("ppo", rate_and_length<1e-6, 768>, false),
    method<RayConfig>("ray", nullptr, false),
    method<RewardConfig>("reward", length<1024>, false),
    method<RlvrConfig>("rlvr", rate<1e-6>, false),
    method<SdpoConfig>("sdpo", rate<1e-6>, false),
    method<SeqKdConfig>("seq_kd", nullptr, false),
    method<SftConfig>("sft", rate<2e-5>),
    method<SparseDistillationConfig>("sparse_distillation", nullptr, false),
    method<XpoConfig>("xpo", rate<1e-6>, false),
};

const config::Key* find(const config::Section& section, std::string_view word) {
  const auto key =
      std::find_if(section.keys.begin(), section.keys.end(), [&](const auto& k) { return k.answers_to(word); });
  return key == section.keys.end() ? nullptr : &*key;
}

bool knows(const config::Section& section, std::string_view word) { return find(section, word) != nullptr; }

bool some_method_knows(std::string_view word) {
  return std::ranges::any_of(methods, [&](const MethodConfig& method) { return knows(method.section(), word); });
}

// The chosen method; nullptr, with a problem noted, where there is none such.
const MethodConfig* chosen(const Value& value, const std::string& path, config::Problems& problems) {
  const Value* type = value.find("trainer_type");
  const std::string word = type ? type->as_string().value_or(type->scalar) : "sft";
  const MethodConfig* const method = find_method_config(word);
  if (method && method->built) return method;
  std::vector<std::string> built, known;
  for (const MethodConfig& other : methods) {
    if (other.built) built.emplace_back(other.name);
    known.emplace_back(other.name);
  }
  if (method)
    problems.add(config::join_path(path, "trainer_type"), type->place, "'" + word + "' is not built yet",
                 "built: " + join(built, ", "));
  else
    problems.add(config::join_path(path, "trainer_type"), type->place, "'" + word + "' is no training method",
                 did_you_mean(word, known));
  return method;
}

// Common keys, the method's own, and those that mean little here.
std::vector<config::Part> parts_of(TrainerSection& section, const MethodConfig& method, void* own) {
  std::vector<config::Part> parts{config::part(section.common)};
  if (method.section().parts)
    for (const config::Part& part : method.section().parts(own)) parts.push_back(part);
  else
    parts.push_back({&method.section(), own});
  parts.push_back(config::part(section.python));
  return parts;
}

void read_trainer(const Value& value, void* object, const std::string& path, config::Problems& problems) {
  auto& out = *static_cast<TrainerSection*>(object);
  const config::Section& common = config::section_of<TrainerConfig>();
  const config::Section& python = config::section_of<TrainerPythonConfig>();
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
    const bool known = knows(common, word) || knows(python, word) || (method && knows(method->section(), word));
    if (!known && some_method_knows(word)) {
      if (method) problems.no_effect(config::join_path(path, word), str("a key of other methods than ", method->name));
      continue;
    }
    own.entries.push_back(value.entries[i]);
    if (i < value.key_places.size()) own.key_places.push_back(value.key_places[i]);
  }
  out.common = {};
  out.python = {};
  if (!method) {
    const std::array parts{config::part(out.common), config::part(out.python)};
    return config::read_sections(parts, own, path, problems);
  }
  if (method->defaults) method->defaults(out.common);
  const std::shared_ptr<void> keys = method->make();
  config::read_sections(parts_of(out, *method, keys.get()), own, path, problems);
  out.common.trainer_type = method->name;
  out.own = keys;
}

Value write_trainer(const void* object) {
  const auto& section = *static_cast<const TrainerSection*>(object);
  const MethodConfig* method = find_method_config(section.common.trainer_type);
  check(method, "no method ", section.common.trainer_type);
  auto& open = const_cast<TrainerSection&>(section);  // write_sections only reads
  return config::write_sections(parts_of(open, *method, const_cast<void*>(section.own.get())));
}

}  // namespace

std::span<const MethodConfig> method_configs() { return methods; }

const MethodConfig* find_method_config(std::string_view trainer_type) {
  const std::string word = canonical(trainer_type);
  for (const MethodConfig& method : methods)
    if (method.name == word) return &method;
  return nullptr;
}

TrainerSection::TrainerSection() : own(std::make_shared<SftConfig>()) { find_method_config("sft")->defaults(common); }

namespace {

// What the method adds: its own keys, and common ones with another default, as they are with it.
config::Section variant_of(const MethodConfig& method) {
  TrainerSection section;
  section.common = {};
  if (method.defaults) method.defaults(section.common);
  section.common.trainer_type = method.name;
  section.own = method.make();
  const Value defaults = write_trainer(&section);
  config::Section out{.doc = method.section().doc + (method.built ? "" : " *Not built yet.*")};
  const auto add = [&](config::Key key, bool always) {
    const Value* const value = defaults.find(key.name);
    if (!always && (!value || *value == key.default_value)) return;
    if (value) key.default_value = *value;
    if (key.name != "trainer_type") out.keys.push_back(std::move(key));
  };
  for (const config::Key& key : method.section().keys) add(key, true);
  for (const config::Key& key : config::section_of<TrainerConfig>().keys)
    if (!knows(method.section(), key.name)) add(key, false);
  return out;
}

}  // namespace

config::Section TrainerSection::section() {
  static const std::vector<config::Section> variants = [] {
    std::vector<config::Section> made;
    for (const MethodConfig& method : methods) made.push_back(variant_of(method));
    return made;
  }();
  const std::array tables{&config::section_of<TrainerConfig>(), &config::section_of<TrainerPythonConfig>()};
  config::Section out = config::merged(TrainerConfig::doc, tables);
  for (size_t i = 0; i < methods.size(); ++i) out.variants.push_back({std::string(methods[i].name), &variants[i]});
  out.read_all = read_trainer;
  out.write_all = write_trainer;
  return out;
}

}  // namespace easydel::train
