#include "easydel/models/registry_config.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/models/family_configs.h"

namespace easydel::models {
namespace {

// What families have heads for, the usual one first.
constexpr std::array heads{std::pair{TaskType::causal_lm, Task::causal_lm},
                           std::pair{TaskType::sequence_classification, Task::sequence_classification},
                           std::pair{TaskType::base_module, Task::base}};

// Words of the key model.task that the registry lacks.
constexpr std::array more_heads{std::pair{TaskType::masked_lm, Task::masked_lm},
                                std::pair{TaskType::token_classification, Task::token_classification},
                                std::pair{TaskType::question_answering, Task::question_answering}};

// Every family has classification heads; families that name a language head have one.
bool has_head(const FamilyConfig& family, Task task) {
  return task != Task::causal_lm || std::ranges::any_of(family.architectures, [&](std::string_view architecture) {
           return task_of(family, architecture) == task;
         });
}

struct Registry {
  std::mutex guard;
  std::map<std::string, std::string, std::less<>> configs;  // by model type
  std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>>
      modules;  // by task, by model type

  Registry() {
    for (const FamilyConfig& family : family_configs()) add(family);
  }
  void add(const FamilyConfig& family) {
    const std::string type(family.model_type);
    configs.try_emplace(type, class_stem(family) + "Config");
    for (const auto& [task, head] : heads)
      if (has_head(family, head))
        modules[std::string(config::word_of(task))].try_emplace(type, architecture_of(family, head));
  }
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

const std::vector<std::string>& task_types() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> words;
    for (const auto& choice : choices(TaskType{}))
      if (std::ranges::find(more_heads, choice.value, &std::pair<TaskType, Task>::first) == more_heads.end())
        words.emplace_back(choice.name);
    std::ranges::rotate(words, words.begin() + 1);  // auto-bind comes last
    return words;
  }();
  return all;
}

std::string registered_config(std::string_view model_type) {
  Registry& all = registry();
  const std::lock_guard lock(all.guard);
  const auto found = all.configs.find(model_type);
  std::vector<std::string> known;
  for (const auto& [type, config] : all.configs) known.push_back(type);
  if (found == all.configs.end())
    refuse("model_type", "'" + std::string(model_type) + "' is not registered", did_you_mean(model_type, known));
  return found->second;
}

std::string registered_module(std::string_view task, std::string_view model_type) {
  const auto& tasks = task_types();
  if (std::ranges::find(tasks, task) == tasks.end())
    refuse("task", "'" + std::string(task) + "' is not defined", did_you_mean(task, tasks));
  Registry& all = registry();
  const std::lock_guard lock(all.guard);
  const auto types = all.modules.find(task);
  std::vector<std::string> known;
  if (types != all.modules.end())
    for (const auto& [type, module] : types->second) {
      if (type == model_type) return module;
      known.push_back(type);
    }
  refuse("model_type", "'" + std::string(model_type) + "' is not defined for the task " + std::string(task),
         known.empty() ? "no model has this task yet" : did_you_mean(model_type, known));
}

std::string bound_task(std::string_view model_type, const std::vector<std::string>& architectures) {
  Registry& all = registry();
  const std::lock_guard lock(all.guard);
  for (const std::string& architecture : architectures)
    for (const auto& [task, types] : all.modules)
      if (const auto found = types.find(model_type); found != types.end() && found->second == architecture) return task;
  for (const auto& [type, head] : heads) {
    const std::string task(config::word_of(type));
    if (const auto types = all.modules.find(task); types != all.modules.end() && types->second.contains(model_type))
      return task;
  }
  return "";
}

std::optional<Task> head_of(TaskType task) {
  if (task == TaskType::embedding) return Task::base;
  for (const auto& list : {std::span<const std::pair<TaskType, Task>>(heads), {more_heads}})
    for (const auto& [word, head] : list)
      if (word == task) return head;
  return std::nullopt;
}

void register_family_config(const FamilyConfig& config) {
  Registry& all = registry();
  const std::lock_guard lock(all.guard);
  add_family_config(config);
  all.add(config);
}

void register_config(const std::string& model_type, const std::string& config_class) {
  Registry& all = registry();
  const std::lock_guard lock(all.guard);
  all.configs[model_type] = config_class;
}

void register_module(const std::string& task, const std::string& model_type, const std::string& module_class) {
  if (std::ranges::find(task_types(), task) == task_types().end())
    refuse("task", "'" + task + "' is not defined", did_you_mean(task, task_types()));
  Registry& all = registry();
  const std::lock_guard lock(all.guard);
  all.modules[task][model_type] = module_class;
}

}  // namespace easydel::models
