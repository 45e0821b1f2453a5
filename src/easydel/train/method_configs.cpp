#include "easydel/train/method_configs.h"

#include <algorithm>
#include <array>
#include <map>

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
#include "easydel/train/online_dpo_config.h"
#include "easydel/train/orpo_config.h"
#include "easydel/train/ppo_config.h"
#include "easydel/train/prm_config.h"
#include "easydel/train/ray_config.h"
#include "easydel/train/reward_config.h"
#include "easydel/train/rloo_config.h"
#include "easydel/train/rlvr_config.h"
#include "easydel/train/sdpo_config.h"
#include "easydel/train/seq_kd_config.h"
#include "easydel/train/sft_config.h"
#include "easydel/train/sparse_distillation_config.h"
#include "easydel/train/tpo_config.h"
#include "easydel/train/xpo_config.h"

namespace easydel::train {
namespace {

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

constexpr MethodConfig simpo() {
  MethodConfig out = method_config<CpoConfig>("simpo", rate_and_length<1e-6, 1024>);
  out.make = []() -> std::shared_ptr<void> { return std::make_shared<CpoConfig>(CpoConfig{simpo_keys(), {}}); };
  return out;
}

constexpr std::array built_in{
    method_config<AgenticMoshpitConfig>("agentic_moshpit", rate<1e-6>),
    method_config<BaseTrainerConfig>("base"),
    method_config<BcoConfig>("bco", rate_and_length<1e-6, 1024>),
    method_config<CpoConfig>("cpo", rate_and_length<1e-6, 1024>),
    method_config<DistillationConfig>("distillation"),
    method_config<DpoConfig>("dpo", rate_and_length<1e-6, 512>),
    method_config<EmbeddingConfig>("embedding", rate_and_length<2e-5, 512>),
    method_config<GfpoConfig>("gfpo", rate<1e-6>),
    method_config<GkdConfig>("gkd", rate<2e-5>),
    method_config<GrpoConfig>("grpo", rate<1e-6>),
    method_config<GspoConfig>("gspo", rate<1e-6>),
    method_config<KtoConfig>("kto", rate_and_length<1e-6, 1024>),
    method_config<NashMdConfig>("nash_md", rate<1e-6>),
    method_config<OnPolicyDistillationConfig>("on_policy_distillation"),
    method_config<OnlineDpoConfig>("online_dpo", rate<5e-7>),
    method_config<OrpoConfig>("orpo", rate_and_length<1e-6, 1024>),
    method_config<PpoConfig>("ppo", rate_and_length<1e-6, 768>),
    method_config<PrmConfig>("prm", rate_and_length<1e-5, 1024>),
    method_config<RayConfig>("ray"),
    method_config<RewardConfig>("reward", length<1024>),
    method_config<RlooConfig>("rloo", rate<1e-6>),
    method_config<RlvrConfig>("rlvr", rate<1e-6>),
    method_config<SdpoConfig>("sdpo", rate<1e-6>),
    method_config<SeqKdConfig>("seq_kd"),
    method_config<SftConfig>("sft", rate<2e-5>),
    simpo(),
    method_config<SparseDistillationConfig>("sparse_distillation"),
    method_config<TpoConfig>("tpo", rate_and_length<5e-7, 1024>),
    method_config<XpoConfig>("xpo", rate<1e-6>),
};

// The plug-ins that methods are from.
std::map<std::string, std::filesystem::path>& libraries() {
  static std::map<std::string, std::filesystem::path> all;
  return all;
}

std::vector<MethodConfig>& all_methods() {
  static std::vector<MethodConfig> all(built_in.begin(), built_in.end());
  return all;
}

const config::Key* find(const config::Section& section, std::string_view word) {
  const auto key =
      std::find_if(section.keys.begin(), section.keys.end(), [&](const auto& k) { return k.answers_to(word); });
  return key == section.keys.end() ? nullptr : &*key;
}

bool knows(const config::Section& section, std::string_view word) { return find(section, word) != nullptr; }

bool some_method_knows(std::string_view word) {
  return std::ranges::any_of(all_methods(), [&](const MethodConfig& method) { return knows(method.section(), word); });
}

// The chosen method; nullptr, with a problem noted, where there is none such.
const MethodConfig* chosen(const Value& value, const std::string& path, config::Problems& problems) {
  const Value* type = value.find("trainer_type");
  const std::string word = type ? type->as_string().value_or(type->scalar) : "sft";
  const MethodConfig* const method = find_method_config(word);
  if (method) return method;
  std::vector<std::string> known;
  for (const MethodConfig& other : all_methods()) known.emplace_back(other.name);
  problems.add(config::join_path(path, "trainer_type"), type->place, "'" + word + "' is not a training method",
               did_you_mean(word, known));
  return nullptr;
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
    config::read_sections(parts, own, path, problems);
    // The problem is noted; later checks still ask for a method.
    const TrainerSection usual;
    out.common.trainer_type = usual.common.trainer_type;
    out.own = usual.own;
    return;
  }
  if (method->defaults) method->defaults(out.common);
  const std::shared_ptr<void> keys = method->make();
  config::read_sections(parts_of(out, *method, keys.get()), own, path, problems);
  // The keys that weigh the reference and those that move it are parts of a section, which do not see each other.
  const Value* const moves = own.find("sync_ref_model");
  if (method->rollouts && method->has_reference && !method->has_reference(keys.get()) && moves &&
      moves->as_bool().value_or(false))
    problems.add(config::join_path(path, "sync_ref_model"), "there is no reference model to move with beta: 0",
                 "give a beta above 0, or leave it out");
  out.common.trainer_type = method->name;
  out.own = keys;
}

Value write_trainer(const void* object) {
  const auto& section = *static_cast<const TrainerSection*>(object);
  auto& open = const_cast<TrainerSection&>(section);  // write_sections only reads
  return config::write_sections(parts_of(open, section.method(), const_cast<void*>(section.own.get())));
}

}  // namespace

std::span<const MethodConfig> method_configs() { return all_methods(); }

const MethodConfig* find_method_config(std::string_view trainer_type) {
  const std::string word = canonical(trainer_type);
  for (const MethodConfig& method : all_methods())
    if (method.name == word) return &method;
  return nullptr;
}

std::string_view our_word(std::string_view word) {
  if (word == "pt" || word == "pretrain") return "sft";
  return word == "rm" ? "reward" : word;
}

void register_method_config(const MethodConfig& method, const std::filesystem::path& library) {
  if (find_method_config(method.name))
    refuse("trainer_type", "'" + std::string(method.name) + "' already exists", "give the method a name of its own");
  std::vector<MethodConfig>& all = all_methods();
  all.insert(std::ranges::upper_bound(all, method.name, {}, &MethodConfig::name), method);
  libraries().emplace(method.name, library);
}

std::filesystem::path library_of_method(std::string_view name) {
  const auto found = libraries().find(std::string(name));
  return found == libraries().end() ? std::filesystem::path() : found->second;
}

TrainerSection::TrainerSection() : own(std::make_shared<SftConfig>()) { find_method_config("sft")->defaults(common); }

const MethodConfig& TrainerSection::method() const {
  const MethodConfig* const found = find_method_config(common.trainer_type);
  check(found, "no method ", common.trainer_type);
  return *found;
}

DataKeys TrainerSection::data_keys() const {
  const MethodConfig& method = this->method();
  return method.data_keys ? method.data_keys(own.get()) : DataKeys{};
}

const RolloutKeys* TrainerSection::rollouts() const {
  const MethodConfig& method = this->method();
  return method.rollouts ? method.rollouts(own.get()) : nullptr;
}

bool TrainerSection::judges_itself() const {
  const MethodConfig& method = this->method();
  return method.judges_itself && method.judges_itself(own.get());
}

void TrainerSection::check_sizes(const ModelSizes& model, const ModelSizes* teacher) const {
  if (const MethodConfig& method = this->method(); method.check_sizes) method.check_sizes(own.get(), model, teacher);
}

bool TrainerSection::has_reference() const {
  const MethodConfig& method = this->method();
  if (method.facts.reference == SideModelUse::none) return false;
  return method.has_reference ? method.has_reference(own.get()) : true;
}

void TrainerSection::set_own(const config::Section& (*section)(), std::shared_ptr<const void> keys) {
  const auto found = std::ranges::find(all_methods(), section, &MethodConfig::section);
  check(found != all_methods().end(), "keys of no method");
  common.trainer_type = found->name;
  own = std::move(keys);
}

namespace {

// What the method adds: its own keys, and common ones with another default, as they are with it.
config::Section variant_of(const MethodConfig& method) {
  TrainerSection section;
  section.common = {};
  if (method.defaults) method.defaults(section.common);
  section.common.trainer_type = method.name;
  section.own = method.make();
  const Value defaults = write_trainer(&section);
  config::Section out{.doc = method.section().doc};
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

namespace {

// A common key with the default of the method that is used if none is named, and those of the other methods.
void tell_defaults(config::Key& key, std::span<const config::Section> variants) {
  const auto own = [&](size_t method) -> const Value* {
    const config::Key* const found = find(variants[method], key.name);
    return found ? &found->default_value : nullptr;
  };
  const std::span<const MethodConfig> methods = method_configs();
  const Value common = key.default_value;
  for (size_t i = 0; i < methods.size(); ++i)
    if (const Value* const value = own(i); value && methods[i].name == TrainerSection().common.trainer_type)
      key.default_value = *value;
  std::string others;
  for (size_t i = 0; i < methods.size(); ++i) {
    const Value& value = own(i) ? *own(i) : common;
    if (!(value == key.default_value))
      others += str(others.empty() ? "" : ", ", to_yaml_flow(value), " with ", methods[i].name);
  }
  if (!others.empty()) key.doc += str(" Default ", others, ".");
}

}  // namespace

config::Section TrainerSection::section() {
  static const std::vector<config::Section> variants = [] {
    std::vector<config::Section> made;
    for (const MethodConfig& method : all_methods()) made.push_back(variant_of(method));
    return made;
  }();
  const std::array tables{&config::section_of<TrainerConfig>(), &config::section_of<TrainerPythonConfig>()};
  config::Section out = config::merged(TrainerConfig::doc, tables);
  Value names = Value::list();
  for (const MethodConfig& method : all_methods()) names.items.push_back(Value::text(std::string(method.name)));
  const auto type = std::ranges::find(out.keys, "trainer_type", &config::Key::name);
  type->schema = Value::map();
  type->schema.set("enum", std::move(names));
  for (config::Key& key : out.keys)
    if (knows(config::section_of<TrainerConfig>(), key.name)) tell_defaults(key, variants);
  for (size_t i = 0; i < variants.size(); ++i)
    out.variants.push_back({std::string(all_methods()[i].name), &variants[i]});
  out.read_all = read_trainer;
  out.write_all = write_trainer;
  return out;
}

}  // namespace easydel::train
