// From a document to a run: finds the configuration, applies the command line, reads the actions.
#include <algorithm>
#include <charconv>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/elarge/actions.h"
#include "easydel/elarge/builder.h"
#include "easydel/elarge/elarge.h"
#include "easydel/elarge/foreign_keys.h"

namespace easydel::elarge {
namespace {

const std::vector<std::string> kWrappers = {"config", "elarge_model", "elm"};  // the first one that is present counts

Place key_place(const Value& map, size_t index) {
  return index < map.key_places.size() ? map.key_places[index] : map.entries[index].second.place;
}

// mixture.batch_size is another key for trainer.total_batch_size.
void share_batch_size(Value& config) {
  const Value* const mixture = config.find("mixture");
  const Value* const size = mixture && mixture->is_map() ? mixture->find("batch_size") : nullptr;
  if (!size || size->is_null()) return;
  Value* trainer = config.find("trainer");
  if (!trainer) {
    if (!config.key_places.empty()) config.key_places.push_back(size->place);
    trainer = &config.entries.emplace_back("trainer", Value{}).second;
  }
  if (trainer->is_null()) *trainer = Value{.kind = Value::Kind::map, .place = trainer->place};
  if (!trainer->is_map() || trainer->find("total_batch_size")) return;
  if (!trainer->key_places.empty()) trainer->key_places.push_back(size->place);
  trainer->entries.emplace_back("total_batch_size", *size);
}

struct Step {
  std::string key;
  int64_t index = -1;  // index in a list; -1: a key
};

std::vector<Step> steps_of(std::string_view path) {
  std::vector<Step> steps;
  while (!path.empty()) {
    if (path[0] == '[') {
      const size_t end = path.find(']');
      int64_t index = -1;
      if (end == std::string_view::npos) return {};
      const auto [stop, error] = std::from_chars(path.data() + 1, path.data() + end, index);
      if (error != std::errc{} || stop != path.data() + end || index < 0) return {};
      steps.push_back({"", index});
      path.remove_prefix(end + 1);
    } else {
      const size_t end = std::min(path.find_first_of(".["), path.size());
      if (end == 0) return {};
      steps.push_back({std::string(path.substr(0, end))});
      path.remove_prefix(end);
    }
    if (path == ".") return {};
    if (path.starts_with('.')) path.remove_prefix(1);
  }
  return steps;
}

// The index that `step` says for a list: [0], or 0 between dots; -1: it is a key.
int64_t index_in(const Step& step) {
  if (step.index >= 0) return step.index;
  int64_t index = -1;
  const auto [stop, error] = std::from_chars(step.key.data(), step.key.data() + step.key.size(), index);
  return error == std::errc{} && stop == step.key.data() + step.key.size() ? index : -1;
}

// Applies a flag by its whole path, with the table's own names: --set trainer.lr=1 sets the only slot of
// trainer.learning_rate.
void apply(const Override& given, Value& config, config::Problems& problems) {
  const std::string flag = "--set " + given.path + "=" + given.value;
  const std::vector<Step> steps = steps_of(given.path);
  if (steps.empty()) {
    problems.comes_from(given.path, flag);
    return problems.add(given.path, Place{}, "is not the path of a key",
                        "for example --set trainer.learning_rate=1e-4");
  }
  Value* at = &config;
  std::string path;  // in its usual form: items[0]
  const Value* above = at;
  for (const Step& step : steps) {
    const bool item = step.index >= 0 || (above && above->is_list() && index_in(step) >= 0);
    path += item ? str("[", index_in(step), "]") : (path.empty() ? "" : ".") + step.key;
    above = !above                                          ? nullptr
            : !item                                         ? above->find(step.key)
            : !above->is_list()                             ? nullptr
            : index_in(step) < int64_t(above->items.size()) ? &above->items[size_t(index_in(step))]
                                                            : nullptr;
  }
  problems.comes_from(path, flag);
  for (const Step& given_step : steps) {
    Step step = given_step;
    if (at->is_list()) step.index = index_in(step);
    if (step.index >= 0) {
      if (!at->is_list() || size_t(step.index) >= at->items.size())
        return problems.add(path, Place{}, str("there is no item ", step.index),
                            "items are counted from 0; new items can only be added in the file");
      at = &at->items[size_t(step.index)];
      continue;
    }
    if (at->is_null()) *at = Value::map();
    if (!at->is_map())
      return problems.add(path, Place{},
                          "the value above '" + step.key + "' is not a section, so it cannot contain keys");
    Value* const next = at->find(step.key);
    if (next) {
      at = next;
      continue;
    }
    if (!at->entries.empty() && at->key_places.empty()) at->key_places.resize(at->entries.size());
    at->key_places.push_back({});
    at = &at->entries.emplace_back(step.key, Value{}).second;
  }
  Value value = parse_yaml(given.value, flag);
  const auto forget_places = [](const auto& self, Value& v) -> void {
    v.place = {};
    v.key_places.clear();
    for (Value& item : v.items) self(self, item);
    for (auto& [name, item] : v.entries) self(self, item);
  };
  forget_places(forget_places, value);
  *at = std::move(value);
}

}  // namespace

std::optional<Value> config_of(const Value& document, config::Problems& problems) {
  std::string used;
  const auto is_there = [&](const std::string& name) { return document.find(name) && !document.find(name)->is_null(); };
  for (const std::string& name : kWrappers)
    if (used.empty() && is_there(name)) used = name;
  Value config{.kind = Value::Kind::map, .place = document.place};
  for (size_t i = 0; i < document.entries.size(); ++i) {
    const auto& [name, value] = document.entries[i];
    const bool wrapper = std::ranges::find(kWrappers, name) != kWrappers.end();
    if (name == "actions" || (!used.empty() && name == used) || (wrapper && value.is_null())) continue;
    if (used.empty()) {
      config.entries.emplace_back(name, value);
      config.key_places.push_back(key_place(document, i));
    } else if (wrapper) {
      problems.saw(name, key_place(document, i));
      problems.note(name, "is ignored because '" + used + "' is given");
    } else {
      problems.add(name, key_place(document, i), "is outside '" + used + ":', which holds the configuration",
                   "move it below '" + used + ":'");
    }
  }
  if (used.empty()) return config;
  const Value& inside = *document.find(used);
  if (inside.is_map() || inside.is_null()) return inside;
  problems.add(used, inside.place, "is not a section", "expected keys below it, for example 'model:' and 'trainer:'");
  return std::nullopt;
}

Config read_config(Value config, config::Problems& problems, std::span<const Override> overrides) {
  for (const Override& given : overrides) apply(given, config, problems);
  share_batch_size(config);
  const config::Section& section = config::section_of<Config>();
  config::Problems found = problems;
  Config out;
  config::read_section(section, config, &out, "", found);
  bool foreign = false;
  for (const config::Problem& problem : found.sorted()) {
    if (problem.what != "no such key") continue;
    std::string remedy = remedy_of_foreign_key(config, problem.path);
    // Files of other tools have no sections.
    const Value* const given = config.is_map() ? config.find(problem.path) : nullptr;
    if (const std::string below = "trainer." + problem.path;
        remedy.empty() && given && config::find_key(section, below))
      remedy = str("write ", below, ": ", to_yaml_flow(*given));
    foreign = foreign || !remedy.empty();
    if (!remedy.empty()) problems.add(problem.path, problem.place, problem.what, remedy);
  }
  if (!foreign) {
    problems = std::move(found);
    return out;
  }
  // Read again: a problem that is there already keeps its remedy.
  Config again;
  config::read_section(section, config, &again, "", problems);
  return again;
}

Run read_document(const Value& document, std::span<const Override> overrides, config::Problems& problems) {
  Run run;
  run.file = problems.file();
  if (!document.is_map()) {
    const std::string what = document.is_null() ? "is empty" : config::shown(document) + " is not a run";
    problems.add("", document.place, what, "a run is a map of keys: at least 'model:' and 'actions:'");
    return run;
  }
  const auto of_actions = [](const Override& given) {
    const std::vector<Step> steps = steps_of(given.path);
    return !steps.empty() && steps[0].key == "actions";
  };
  std::vector<Override> of_config(overrides.begin(), overrides.end());
  std::erase_if(of_config, of_actions);
  if (std::optional<Value> config = config_of(document, problems))
    run.config = read_config(std::move(*config), problems, of_config);
  Value actions = Value::map();
  if (const Value* const given = document.find("actions")) actions.set("actions", *given);
  for (const Override& given : overrides)
    if (of_actions(given)) apply(given, actions, problems);
  run.actions = read_actions(actions.find("actions"), problems);
  return run;
}

Run checked_run(const Value& document, const std::string& name, std::span<const Override> overrides, int64_t ranks,
                std::span<const std::pair<std::string, std::string>> sources) {
  config::Problems problems(name);
  for (const auto& [path, source] : sources) problems.comes_from(path, source);
  Run run = read_document(document, overrides, problems);
  run.ranks = ranks;
  check_needs(run, problems);
  for (const Action& action : run.actions)
    if (action.entry->check) action.entry->check(run, action, problems);
  problems.throw_if_any();
  run.notes = problems.notes();
  return run;
}

Run read_run(const std::filesystem::path& file, std::span<const Override> overrides, int64_t ranks) {
  if (file == "-")
    return checked_run(parse_yaml(files::read("/dev/stdin"), "standard input"), "standard input", overrides, ranks);
  return checked_run(parse_file(file), file.string(), overrides, ranks);
}

}  // namespace easydel::elarge
