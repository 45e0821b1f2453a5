// eLargeModel of the guide: a configuration that is assembled by calls, read and written as YAML, JSON or a document,
// checked, and built into models and trainers. It does not need torch until build_* or train() is called.
//
//   auto elm = elarge::Builder::from_pretrained("my-model")
//                  .set_dtype("bf16")
//                  .set_sharding({{"axis_dims", {1, -1, 1, 1, 1}}})
//                  .add_dataset("train/*.json", {{"content_field", "text"}})
//                  .set_trainer("sft", {{"learning_rate", 2e-5}});
//   elm.train();
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/elarge.h"

namespace easydel::elarge {

// An argument of a call: any YAML value, written in C++.
class Argument {
 public:
  Argument(std::nullptr_t) {}
  Argument(bool value) : value_(Value::boolean(value)) {}
  Argument(int value) : value_(Value::integer(value)) {}
  Argument(int64_t value) : value_(Value::integer(value)) {}
  Argument(double value) : value_(Value::number(value)) {}
  Argument(const char* value) : value_(Value::text(value)) {}
  Argument(std::string value) : value_(Value::text(std::move(value))) {}
  Argument(Value value) : value_(std::move(value)) {}
  Argument(std::initializer_list<Argument> list) : value_(Value::list()) {
    for (const Argument& item : list) value_.items.push_back(item.value_);
  }
  const Value& value() const { return value_; }

 private:
  Value value_;
};

// Keys of a section: {{"max_model_len", 4096}, {"enable_prefix_caching", true}}.
class Arguments {
 public:
  Arguments() = default;
  Arguments(std::initializer_list<std::pair<std::string_view, Argument>> list) {
    for (const auto& [key, argument] : list) map_.set(key, argument.value());
  }
  Arguments(Value map);  // null: no keys; UserError if it is not a map
  const Value& map() const { return map_; }

 private:
  Value map_ = Value::map();
};

enum class Prefer { base, sections };  // which wins if base_config.values and a section contradict

// A value type: a copy is independent. One thread at a time.
class Builder {
 public:
  Builder();  // without a model
  // A configuration, at the top or below `config:`, `elarge_model:` or `elm:`; `actions` is ignored. UserError if it is
  // not a map or names no model; validate() reports everything else.
  explicit Builder(Value document, std::string file = "config");
  static Builder from_pretrained(std::string_view name_or_path, std::optional<std::string_view> task = {},
                                 const Arguments& sections = {});
  static Builder from_yaml(const std::filesystem::path& file);
  static Builder from_json(const std::filesystem::path& file);

  Builder& set_model(std::string_view name_or_path, const Arguments& keys = {});
  Builder& set_teacher_model(std::string_view name_or_path, const Arguments& keys = {});
  Builder& set_reference_model(std::string_view name_or_path, const Arguments& keys = {});
  Builder& set_reward_model(std::string_view name_or_path, const Arguments& keys = {});
  Builder& set_dtype(std::string_view dtype, std::optional<std::string_view> param_dtype = {});  // default: dtype
  Builder& set_sharding(const Arguments& keys);
  Builder& set_quantization(std::string_view method, const Arguments& keys = {});
  // Settings of operations by name. Settings of the model ("attn_mechanism") go to base_config.values.
  Builder& set_operation_configs(const Arguments& keys);
  Builder& set_esurge(const Arguments& keys);
  Builder& set_mixture(const Arguments& keys);
  // Adds a data source. In `keys`, dataset_name names a Hugging Face dataset, max_length goes to mixture.tokenization.
  Builder& add_dataset(const Argument& data_files, const Arguments& keys = {});
  Builder& set_eval(const Arguments& keys = {});
  Builder& set_trainer(std::string_view trainer_type, const Arguments& keys = {});
  Builder& update_config(const Arguments& sections);  // deep_merge

  // The given keys over the defaults of the sections: what to_yaml writes and from_yaml reads.
  Value to_dict() const;
  void to_yaml(const std::filesystem::path& file) const;
  void to_json(const std::filesystem::path& file) const;
  // UserError with every problem of the configuration: keys, types, rules over several keys. Does not look at files.
  void validate() const;
  std::string text() const;  // "eLargeModel(model='x', task=..., dtype='bf16')"

  std::string model_name() const;
  std::optional<std::string> teacher_model_name() const, reference_model_name() const;
  std::string task() const;  // model.task, else that of the model's config.json, else causal-language-model

  // The arguments that the parts are built with, as documents.
  Value get_base_config(Prefer prefer = Prefer::base) const;
  Value get_from_pretrained_kwargs() const;
  Value get_esurge_kwargs() const;
  Value get_mixture_kwargs() const;
  Value get_trainer_config() const;

  // Results are cached until clear_cache() or `again`, and shared with train() and generate(). UserError if a feature
  // is not built yet. To use a model or a trainer, include models/model.h or train/trainer.h, which need torch.
  std::shared_ptr<models::Model> build_model(bool again = false);
  std::shared_ptr<models::Model> build_teacher_model(), build_reference_model(),
      build_reward_model();  // null: no such section
  std::shared_ptr<const text::Tokenizer> build_tokenizer();
  std::shared_ptr<data::Dataset> build_dataset();  // the training examples; null: no informs
  train::TrainerSection build_training_arguments() const;
  std::shared_ptr<train::Trainer> build_trainer();
  std::shared_ptr<esurge::Engine> build_esurge();  // over the same model; each call makes a new one
  TrainerOutput train(const Output& out = {});
  // Evaluates tasks with lm-evaluation-harness; `keys` are those of the action (tasks, num_fewshot, output_path, ...)
  // and of the section eval. Returns its document of results (elarge/evaluation.h: metric_of).
  Value eval(const Arguments& keys);
  std::vector<Generated> generate(const GenerateRequest& request);
  // Pushes the current model to "owner/name" on the Hugging Face Hub.
  hub::Pushed push_to_hub(const std::string& repository, hub::PushOptions options = {});
  void clear_cache();
  // The typed configuration; UserError as validate().
  Config config() const;

 private:
  Builder& set_section(std::string_view name, const Value& keys);
  Builder& name_model(std::string_view section, std::string_view name_or_path, const Arguments& keys);
  std::shared_ptr<models::Model> side_model(const std::string& section);
  Session& session();

  Value given_ = Value::map();
  std::string file_ = "config";
  config::Problems beside_;  // problems of the document outside its configuration
  std::shared_ptr<Session> session_;
};

// The configuration inside a document: below the first wrapper that is not null, else every key but `actions`. Adds
// what is wrong around it to `problems`; nullopt: there is no configuration.
std::optional<Value> config_of(const Value& document, config::Problems& problems);

}  // namespace easydel::elarge
