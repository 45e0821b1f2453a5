#include "easydel/models/heads.h"

#include "easydel/base/error.h"
#include "easydel/models/family_configs.h"

namespace easydel::models {
namespace {

double classifier_dropout(const ConfigReader& config) {
  return config.number("classifier_dropout", config.number("hidden_dropout", 0.1));
}

}  // namespace

int64_t read_labels(const ConfigReader& config) {
  const Value* const names = config.find("id2label");
  if (names && !names->is_map()) config.refuse_key("id2label", to_json(*names) + " is not a map of numbers to names");
  const auto given = config.integer("num_labels");
  const int64_t labels = names ? int64_t(names->entries.size()) : given.value_or(2);
  config.positive(names ? "id2label" : "num_labels", labels);
  return labels;
}

void set_labels(Value& config, int64_t labels) {
  std::erase_if(config.entries, [](const auto& entry) { return entry.first == "num_labels"; });
  Value names = Value::map(), numbers = Value::map();
  for (int64_t i = 0; i < labels; ++i) {
    names.set(str(i), Value::text(str("LABEL_", i)));
    numbers.set(str("LABEL_", i), Value::integer(i));
  }
  config.set("id2label", std::move(names));
  config.set("label2id", std::move(numbers));
}

Task task_of(const ConfigReader& config) {
  return task_of(config.document(), family_config_of(config.document(), config.where()));
}

nn::HeadPlan head_plan(const ConfigReader& config, const Family& family) {
  const HeadNames& names = family_config_of(config.document(), config.where()).names;
  nn::HeadPlan plan;
  plan.family_stack = plan.stack = std::string(family.base_prefix);
  nn::ClassHeadSpec classes;
  classes.labels = read_labels(config);
  classes.output_deviation = config.number("initializer_range", 0.02);
  switch (task_of(config)) {
    case Task::causal_lm:
    case Task::masked_lm:
      return plan;
    case Task::base:
      plan.language = false;
      plan.stack.clear();
      return plan;
    case Task::sequence_classification:
      classes.pooling = nn::Pooling::last;
      classes.padding = config.integer("pad_token_id");
      classes.output = "score";
      classes.output_bias = false;
      break;
    case Task::token_classification:
      classes.output = std::string(names.token_classes);
      // Classes with a fixed value do not read a key.
      classes.output_bias =
          classes.output != HeadNames().token_classes || config.boolean("token_classification_bias", true);
      classes.dropout = classifier_dropout(config);
      break;
    case Task::question_answering:
      if (!names.question_stack.empty()) plan.stack = std::string(names.question_stack);
      classes.output = "qa_outputs";
      classes.labels = 2;
      break;
  }
  plan.language = false;
  plan.classes = std::move(classes);
  return plan;
}

std::unique_ptr<Model> build_model(const Family& family, const ConfigReader& config, nn::Building& building) {
  building.head = head_plan(config, family);
  building.both_sides = !config.boolean("is_causal", true);
  return family.build(config, building);
}

}  // namespace easydel::models
