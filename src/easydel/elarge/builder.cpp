#include "easydel/elarge/builder.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/elarge/evaluation.h"
#include "easydel/elarge/merge.h"

namespace easydel::elarge {
namespace {

// What to_dict() shows of a section that was not given; the values come from the field tables.
struct Shown {
  std::string_view section;
  std::vector<std::string_view> keys;
};
const std::vector<Shown>& shown_defaults() {
  static const std::vector<Shown> all{
      {"loader", {"dtype", "param_dtype", "verbose"}},
      {"sharding",
       {"axis_dims", "axis_names", "auto_shard_model", "use_ring_of_experts", "fsdp_is_ep_bound", "sp_is_ep_bound"}},
      {"quantization", {"group_size", "linear_pattern", "linear_group_size"}},
      {"base_config.values", {"hardware_abstraction"}},
      {"esurge", {"min_input_pad", "max_num_seqs", "hbm_utilization", "page_size", "enable_prefix_caching", "verbose"}},
      {"mixture",
       {"cache_dir", "streaming", "text_target_field", "image_target_field", "shuffle_buffer_size", "use_fast_loader",
        "num_workers", "prefetch_size", "enable_caching"}}};
  return all;
}

const config::Section& section_at(std::string_view path) {
  const config::Key* const key = config::find_key(config::section_of<Config>(), path);
  check(key && key->section, path, " is not a section");
  return *key->section();
}

// The section below `document`, created if it is missing or null; nullptr if something else is in its place.
Value* made(Value& document, std::string_view path) {
  Value* at = &document;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (!at->find(name) || at->find(name)->is_null()) at->set(name, Value::map());
    at = at->find(name);
    if (!at->is_map()) return nullptr;
    begin = end + 1;
  }
  return at;
}

Value filled(Value document) {
  for (const Shown& shown : shown_defaults()) {
    Value* const section = made(document, shown.section);
    if (!section) continue;  // another kind of value: validate() reports it
    for (const config::Key& key : section_at(shown.section).keys) {
      if (std::ranges::find(shown.keys, key.name) == shown.keys.end()) continue;
      const bool given =
          std::ranges::any_of(section->entries, [&](const auto& entry) { return key.answers_to(entry.first); });
      if (!given) section->set(key.name, key.default_value);
    }
  }
  // The engine's longest sequence is the length for which masks or rotary tables are made.
  Value* const values = made(document, "base_config.values");
  Value* const esurge = made(document, "esurge");
  if (!values || !esurge) return document;
  const Value* const length = esurge->find("max_model_len");
  if (length && !length->is_null()) return document;
  for (const char* key : {"mask_max_position_embeddings", "freq_max_position_embeddings"})
    if (const Value* limit = values->find(key); limit && !limit->is_null()) {
      esurge->set("max_model_len", *limit);
      break;
    }
  return document;
}

std::string scalar_at(const Value& document, std::string_view section, std::string_view key) {
  const Value* const at = document.find(section);
  if (at && !at->is_null() && !at->is_map())
    refuse(std::string(section), to_json(*at) + " is not a section", str("write ", section, ": {", key, ": ...}"));
  const Value* const value = at ? at->find(key) : nullptr;
  return value && !value->is_null() ? value->scalar : "";
}

}  // namespace

Arguments::Arguments(Value map) {
  if (map.is_null()) return;
  if (!map.is_map()) refuse("arguments", config::shown(map) + " is not a mapping", "give keys and their values");
  map_ = std::move(map);
}

Builder::Builder() {
  Value model = Value::map();
  model.set("name_or_path", Value::text(""));
  given_.set("model", model);
}

Builder::Builder(Value document, std::string file) : file_(std::move(file)), beside_(file_) {
  if (!document.is_map() && !document.is_null())
    refuse(file_, config::shown(document) + " is not a configuration", "expected keys, at least 'model:'");
  std::optional<Value> config = config_of(document, beside_);
  if (!config) beside_.throw_if_any();
  given_ = std::move(*config);
  if (given_.is_null()) given_ = Value::map();
  const Value* const model = given_.find("model");
  if (!model || !model->is_map() || !model->find("name_or_path"))
    refuse(file_, "names no model", "give model.name_or_path: a folder or a name on the Hugging Face Hub");
}

Builder Builder::from_pretrained(std::string_view name_or_path, std::optional<std::string_view> task,
                                 const Arguments& sections) {
  Builder out;
  out.update_config(sections);
  out.set_model(name_or_path);
  if (task) out.set_section("model", Arguments{{"task", task_of(*task).value_or(std::string(*task))}}.map());
  return out;
}

Builder Builder::from_yaml(const std::filesystem::path& file) {
  return Builder(parse_yaml(files::read(file), file.string()), file.string());
}

Builder Builder::from_json(const std::filesystem::path& file) {
  return Builder(parse_json(files::read(file), file.string()), file.string());
}

Builder& Builder::set_section(std::string_view name, const Value& keys) {
  Value* const there = given_.find(name);
  given_.set(name, there && there->is_map() ? deep_merge(*there, keys) : keys);
  return *this;
}

Builder& Builder::name_model(std::string_view section, std::string_view name_or_path, const Arguments& keys) {
  Value all = Value::map();
  all.set("name_or_path", Value::text(std::string(name_or_path)));
  return set_section(section, deep_merge(all, keys.map()));
}

Builder& Builder::set_model(std::string_view name, const Arguments& keys) { return name_model("model", name, keys); }
Builder& Builder::set_teacher_model(std::string_view name, const Arguments& keys) {
  return name_model("teacher_model", name, keys);
}
Builder& Builder::set_reference_model(std::string_view name, const Arguments& keys) {
  return name_model("reference_model", name, keys);
}
Builder& Builder::set_reward_model(std::string_view name, const Arguments& keys) {
  return name_model("reward_model", name, keys);
}

Builder& Builder::set_dtype(std::string_view dtype, std::optional<std::string_view> param_dtype) {
  return set_section(
      "loader",
      Arguments{{"dtype", std::string(dtype)}, {"param_dtype", std::string(param_dtype.value_or(dtype))}}.map());
}

Builder& Builder::set_sharding(const Arguments& keys) { return set_section("sharding", keys.map()); }

Builder& Builder::set_quantization(std::string_view method, const Arguments& keys) {
  set_section("quantization", Arguments{{"method", std::string(method)}}.map());
  return set_section("quantization", keys.map());
}

Builder& Builder::set_operation_configs(const Arguments& keys) {
  Value values = Value::map(), operations = Value::map(), base = Value::map();
  for (const auto& [name, value] : keys.map().entries)
    (config::find_key(config::section_of<BaseValues>(), name) ? values : operations).set(name, value);
  if (!values.entries.empty()) base.set("values", values);
  if (!operations.entries.empty()) base.set("operation_configs", operations);
  return set_section("base_config", base);
}

Builder& Builder::set_esurge(const Arguments& keys) { return set_section("esurge", keys.map()); }
Builder& Builder::set_mixture(const Arguments& keys) { return set_section("mixture", keys.map()); }

Builder& Builder::add_dataset(const Argument& data_files, const Arguments& keys) {
  Value inform = Value::map();
  if (!data_files.value().is_null()) inform.set("data_files", data_files.value());
  for (const auto& [name, value] : keys.map().entries) {
    if (name == "dataset_name" || name == "dataset_type")
      inform.set("type", value);
    else if (name == "max_length")
      set_section("mixture", Arguments{{"tokenization", Arguments{{"max_length", value}}.map()}}.map());
    else
      inform.set(name, value);
  }
  if (!inform.find("split")) inform.set("split", Value::text("train"));
  const Value* const mixture = given_.find("mixture");
  const Value* const informs = mixture ? mixture->find("informs") : nullptr;
  Value list = informs && informs->is_list() ? *informs : Value::list();
  list.items.push_back(inform);
  Value section = Value::map();
  section.set("informs", list);
  return set_section("mixture", section);
}

Builder& Builder::set_eval(const Arguments& keys) { return set_section("eval", keys.map()); }

Builder& Builder::set_trainer(std::string_view trainer_type, const Arguments& keys) {
  set_section("trainer", Arguments{{"trainer_type", std::string(trainer_type)}}.map());
  return set_section("trainer", keys.map());
}

Builder& Builder::update_config(const Arguments& sections) {
  given_ = deep_merge(given_, sections.map());
  return *this;
}

Value Builder::to_dict() const { return filled(given_); }

void Builder::to_yaml(const std::filesystem::path& file) const { files::write(file, easydel::to_yaml(to_dict())); }
void Builder::to_json(const std::filesystem::path& file) const {
  files::write(file, easydel::to_json(to_dict(), 2) + "\n");
}

Config Builder::config() const {
  config::Problems problems = beside_;
  Config out = read_config(given_, problems);
  problems.throw_if_any();
  return out;
}

void Builder::validate() const { config(); }

std::string Builder::text() const {
  return "eLargeModel(model='" + model_name() + "', task=" + task() + ", dtype='" +
         scalar_at(to_dict(), "loader", "dtype") + "')";
}

std::string Builder::model_name() const { return scalar_at(given_, "model", "name_or_path"); }
std::optional<std::string> Builder::teacher_model_name() const {
  const std::string name = scalar_at(given_, "teacher_model", "name_or_path");
  return name.empty() ? std::nullopt : std::optional(name);
}
std::optional<std::string> Builder::reference_model_name() const {
  const std::string name = scalar_at(given_, "reference_model", "name_or_path");
  return name.empty() ? std::nullopt : std::optional(name);
}

// A configuration with a trainer is opened for training at once, so that its model is loaded only once.
Session& Builder::session() {
  if (!session_) session_ = core().open(config(), given_.find("trainer") && given_.find("trainer")->is_map());
  return *session_;
}

std::shared_ptr<models::Model> Builder::build_model(bool again) {
  if (again) clear_cache();
  return session().build_model();
}
std::shared_ptr<models::Model> Builder::side_model(const std::string& section) {
  return scalar_at(given_, section, "name_or_path").empty() ? nullptr : session().build_side_model(section);
}
std::shared_ptr<models::Model> Builder::build_teacher_model() { return side_model("teacher_model"); }
std::shared_ptr<models::Model> Builder::build_reference_model() { return side_model("reference_model"); }
std::shared_ptr<models::Model> Builder::build_reward_model() { return side_model("reward_model"); }
std::shared_ptr<const text::Tokenizer> Builder::build_tokenizer() { return session().build_tokenizer(); }

std::shared_ptr<data::Dataset> Builder::build_dataset() {
  return config().mixture.informs.empty() ? nullptr : session().build_dataset();
}
train::TrainerSection Builder::build_training_arguments() const { return config().trainer; }

std::shared_ptr<train::Trainer> Builder::build_trainer() {
  if (!given_.find("trainer")) set_section("trainer", Value::map()), clear_cache();
  return session().build_trainer();
}
TrainerOutput Builder::train(const Output& out) {
  if (!given_.find("trainer")) set_section("trainer", Value::map()), clear_cache();
  return session().train(out);
}

std::shared_ptr<esurge::Engine> Builder::build_esurge() { return session().build_esurge(); }
Value Builder::eval(const Arguments& keys) {
  EvaluationPlan plan;
  plan.where = "eval";
  plan.model_name = model_name();
  const Value* const given = given_.find("eval");
  Value own = Value::map(), settings = given ? *given : Value::map();
  const config::Section& action = config::section_of<EvalActionConfig>();
  for (const auto& [key, value] : keys.map().entries) {
    const bool of_action =
        std::ranges::any_of(action.keys, [&](const config::Key& known) { return known.answers_to(key); });
    (of_action ? own : settings).set(key, value);
  }
  config::Problems problems("eval");
  config::read_section(action, own, &plan.action, "eval", problems);
  config::read_section(config::section_of<EvalConfig>(), settings, &plan.settings, "eval", problems);
  problems.throw_if_any();
  Evaluation evaluation(std::move(plan));
  return evaluation.report(session(), {});
}

std::vector<Generated> Builder::generate(const GenerateRequest& request) { return session().generate(request); }

hub::Pushed Builder::push_to_hub(const std::string& repository, hub::PushOptions options) {
  options.repository = repository;
  return session().push_to_hub("push_to_hub", options);
}

void Builder::clear_cache() { session_.reset(); }

}  // namespace easydel::elarge
