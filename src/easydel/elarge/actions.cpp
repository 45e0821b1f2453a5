#include "easydel/elarge/actions.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/elarge/evaluation.h"
#include "easydel/elarge/overridden_key.h"
#include "easydel/elarge/push.h"
#include "easydel/server/serve_config.h"

namespace easydel::elarge {
namespace {

template <class T>
const config::Section* section_for() {
  return &config::section_of<T>();
}
template <class T>
std::shared_ptr<void> make() {
  return std::make_shared<T>();
}
template <class T>
const T& typed(const Action& action) {
  check(action.entry->parameters == section_for<T>, action.path, ": parameters of another kind");
  return *static_cast<const T*>(action.parameters.get());
}

// All checks were done before the first action started.
void run_validate(Running& running, const Action&) { running.print(valid_text(running.run)); }

void run_print(Running& running, const Action&) { running.print(summary(running.run.config)); }

void run_dump(Running& running, const Action&) { running.print(to_yaml(normalised(running.run.config))); }

void run_to_yaml(Running& running, const Action& action) {
  const auto& parameters = typed<PathConfig>(action);
  if (!running.leads()) return;
  files::write(parameters.path, to_yaml(normalised(running.run.config)));
  log::info("wrote ", parameters.path);
}

void run_to_json(Running& running, const Action& action) {
  const auto& parameters = typed<PathConfig>(action);
  if (!running.leads()) return;
  files::write(parameters.path, to_json(normalised(running.run.config), 2) + "\n");
  log::info("wrote ", parameters.path);
}

void run_push(Running& running, const Action& action) {
  const auto& parameters = typed<PushConfig>(action);
  const hub::Pushed pushed = running.session().push_to_hub(action.path, push_options(parameters));
  running.print(pushed_text(parameters.repo_id, pushed));
}

void run_train(Running& running, const Action&) { running.session().train(running.out()); }

void run_eval(Running& running, const Action& action) {
  refuse_without_weights(running.run, action, true);
  running.evaluation(action).report(running.session(), running.out());
}

void run_generate(Running& running, const Action& action) {
  const auto& parameters = typed<GenerateAction>(action);
  if (!parameters.generate.random_weights) refuse_without_weights(running.run, action, true);
  GenerateRequest request;
  request.engine = parameters.generate.engine == GenerateEngine::esurge;
  request.generation = parameters.generation;
  request.negative_prompt = parameters.generate.negative_prompt;
  request.adapters.assign(parameters.generate.adapter.begin(), parameters.generate.adapter.end());
  for (const std::string& prompt : parameters.generate.prompts) {
    if (!parameters.generate.apply_chat_template) {
      request.prompts.push_back(prompt);
      continue;
    }
    Value message = Value::map(), conversation = Value::list();
    message.set("role", Value::text("user"));
    message.set("content", Value::text(prompt));
    conversation.items.push_back(message);
    request.conversations.push_back(conversation);
  }
  const std::vector<Generated> replies = running.session().generate(request);
  if (!running.leads()) return;
  std::string lines, shown;
  for (const Generated& reply : replies) {
    const std::string& prompt = parameters.generate.prompts[reply.prompt];
    Value line = Value::map();
    line.set("prompt", Value::text(prompt));
    line.set("text", Value::text(reply.text));
    line.set("new_tokens", Value::integer(reply.new_tokens));
    line.set("finish_reason", Value::text(reply.finish_reason));
    if (reply.score) line.set("score", Value::number(*reply.score));
    lines += to_json(line) + "\n";
    shown += (parameters.generate.apply_chat_template ? "> " + prompt + "\n" : prompt) + reply.text + "\n";
  }
  if (parameters.generate.output_path) {
    files::write(*parameters.generate.output_path, lines);
    log::info("wrote ", *parameters.generate.output_path);
  } else {
    running.print(shown);
  }
}

}  // namespace

// Alphabetical.
std::span<const ActionEntry> action_entries() {
  static const std::vector<ActionEntry> entries = {
      {.name = "dump_config",
       .doc = "Print the whole configuration with all defaults, as YAML.",
       .aliases = {"config", "print_config"},
       .run = run_dump},
      {.name = "eval",
       .doc = "Evaluate the model on benchmark tasks.",
       .parameters = section_for<EvalActionConfig>,
       .make_parameters = make<EvalActionConfig>,
       .needs = {.model = true, .tokenizer = true, .computing = true, .harness = true},
       .check = check_eval,
       .run = run_eval},
      {.name = "generate",
       .doc = "Continue prompts with the model.",
       .parameters = section_for<GenerateAction>,
       .make_parameters = make<GenerateAction>,
       .needs = {.model = true, .tokenizer = true, .computing = true},
       .check = check_generate,
       .run = run_generate},
      {.name = "print", .doc = "Print a summary of the run.", .aliases = {"show"}, .run = run_print},
      {.name = "push_to_hub",
       .doc = "Push the current model to the Hugging Face Hub. Only files that changed are sent.",
       .parameters = section_for<PushConfig>,
       .make_parameters = make<PushConfig>,
       .alone = "repo_id",
       .needs = {.model = true, .computing = true},
       .check = check_push,
       .run = run_push},
      {.name = "serve",
       .doc = "Serve the model over an OpenAI-compatible HTTP API.",
       .aliases = {"server"},
       .parameters = section_for<server::ServeConfig>,
       .make_parameters = make<server::ServeConfig>,
       .needs = {.model = true, .computing = true},
       .check = check_serve,
       .run = run_serve},
      {.name = "to_json",
       .doc = "Write the configuration, with every default filled in, as JSON.",
       .aliases = {"save_json", "write_json"},
       .parameters = section_for<PathConfig>,
       .make_parameters = make<PathConfig>,
       .alone = "path",
       .check = check_writable,
       .run = run_to_json},
      {.name = "to_yaml",
       .doc = "Write the configuration, with every default filled in, as YAML.",
       .aliases = {"save_yaml", "write_yaml"},
       .parameters = section_for<PathConfig>,
       .make_parameters = make<PathConfig>,
       .alone = "path",
       .check = check_writable,
       .run = run_to_yaml},
      {.name = "train",
       .doc = "Train the model.",
       .needs = {.model = true, .tokenizer = true, .data = true, .computing = true, .training = true},
       .run = run_train},
      {.name = "validate",
       .doc = "Check everything that can be checked before the run.",
       .needs = {.model = true, .tokenizer = true, .data = true},
       .run = run_validate},
  };
  return entries;
}

const ActionEntry* find_action(std::string_view name) {
  const std::string wanted = canonical(name);
  for (const ActionEntry& entry : action_entries())
    if (entry.name == wanted || std::ranges::find(entry.aliases, wanted) != entry.aliases.end()) return &entry;
  return nullptr;
}

namespace {

std::string known_actions_hint(std::string_view name) {
  std::vector<std::string> names, all;
  for (const ActionEntry& entry : action_entries()) {
    if (entry.built) names.emplace_back(entry.name);
    all.emplace_back(entry.name);
    all.insert(all.end(), entry.aliases.begin(), entry.aliases.end());
  }
  const std::string near = nearest(name, all);
  return near.empty() ? "known actions: " + join(names, ", ") : "did you mean '" + near + "'?";
}

// Splits `- serve:` into the action's name and its parameters, which are below the name or, indented too little, next
// to it.
bool split_action(const Value& item, std::string& name, Value& parameters, const std::string& path,
                  config::Problems& problems) {
  if (const auto word = item.as_string()) return name = *word, true;
  if (item.is_map() && item.entries.size() == 1)
    return name = item.entries[0].first, parameters = item.entries[0].second, true;
  if (item.is_map()) {
    const auto is_null = [](const auto& entry) { return entry.second.is_null(); };
    if (std::ranges::count_if(item.entries, is_null) == 1) {
      parameters = Value{.kind = Value::Kind::map, .place = item.place};
      for (size_t i = 0; i < item.entries.size(); ++i) {
        if (is_null(item.entries[i])) {
          name = item.entries[i].first;
          continue;
        }
        parameters.entries.push_back(item.entries[i]);
        if (i < item.key_places.size()) parameters.key_places.push_back(item.key_places[i]);
      }
      return true;
    }
  }
  const std::string what = item.is_map() ? "has " + std::to_string(item.entries.size()) +
                                               " keys, and none of them is an action without a value"
                                         : config::shown(item) + " is not an action";
  problems.add(path, item.place, what, "write '- train', or '- generate:' with its parameters indented below");
  return false;
}

void read_action(const Value& item, const std::string& place, config::Problems& problems,
                 std::vector<Action>& actions) {
  std::string name;
  Value parameters;
  if (!split_action(item, name, parameters, place, problems)) return;
  const std::string path = place + "." + canonical(name);
  const ActionEntry* const entry = find_action(name);
  if (!entry) return problems.add(place, item.place, "unknown action '" + name + "'", known_actions_hint(name));
  if (!entry->alone.empty() && parameters.as_string()) {
    Value map{.kind = Value::Kind::map, .place = parameters.place};
    map.entries.emplace_back(std::string(entry->alone), parameters);
    parameters = map;
  }
  Action action{.entry = entry, .path = path, .parameters = nullptr};
  if (entry->parameters) {
    const std::shared_ptr<void> made = entry->make_parameters();
    if (parameters.is_null()) parameters.place = item.place;
    problems.saw(path, parameters.place);
    config::read_section(*entry->parameters(), parameters, made.get(), path, problems);
    action.parameters = made;
  } else if (!parameters.is_null() && !(parameters.is_map() && parameters.entries.empty())) {
    return problems.add(path, parameters.place, "takes no parameters",
                        "write it as '- " + std::string(entry->name) + "'");
  }
  if (!entry->built) problems.add(path, item.place, "this action is not built yet", known_actions_hint(""));
  actions.push_back(std::move(action));
}

}  // namespace

std::vector<Action> read_actions(const Value* given, config::Problems& problems) {
  std::vector<Action> actions;
  if (!given || given->is_null()) {
    problems.add("actions", "is missing", "list what to do, for example 'actions: [validate, train]'");
    return actions;
  }
  problems.saw("actions", given->place);
  if (given->as_string() || given->is_map()) {
    read_action(*given, "actions", problems, actions);
  } else if (given->is_list()) {
    if (given->items.empty()) problems.note("actions", "is empty, so a run does nothing");
    for (size_t i = 0; i < given->items.size(); ++i)
      read_action(given->items[i], "actions[" + std::to_string(i) + "]", problems, actions);
  } else {
    problems.add("actions", given->place, config::shown(*given) + " is not a list of actions",
                 "for example 'actions: [validate, train]'");
  }
  return actions;
}

Value normalised(std::span<const Action> actions) {
  Value list = Value::list();
  for (const Action& action : actions) {
    const Value name = Value::text(std::string(action.entry->name));
    if (!action.parameters) {
      list.items.push_back(name);
      continue;
    }
    Value item = Value::map();
    item.set(name.scalar, config::write_section(*action.entry->parameters(), action.parameters.get()));
    list.items.push_back(item);
  }
  return list;
}

std::string valid_text(const Run& run) {
  return str(run.file, " is valid: ", run.actions.size(), run.actions.size() == 1 ? " action\n" : " actions\n");
}

Needs needs_of(const Run& run) {
  Needs all;
  for (const Action& action : run.actions) {
    const Needs& needs = action.entry->needs;
    all.model |= needs.model, all.tokenizer |= needs.tokenizer, all.data |= needs.data;
    all.computing |= needs.computing, all.training |= needs.training, all.harness |= needs.harness;
  }
  return all;
}

Running::Running(const Run& run, Output out) : run(run), out_(std::move(out)) {}
Running::~Running() = default;

Evaluation& Running::evaluation(const Action& action) {
  std::unique_ptr<Evaluation>& made = evaluations_[&action];
  if (!made)
    made = std::make_unique<Evaluation>(
        EvaluationPlan{action.path, run.config.eval, typed<EvalActionConfig>(action), run.config.model.name_or_path},
        nullptr, leads());
  return *made;
}

Session& Running::session() {
  if (!session_) session_ = core().open(run.config, needs_of(run).training);
  return *session_;
}

namespace {

// Rethrows an error of the core with the place in the run's file that caused it.
[[noreturn]] void refuse_at_place(const Run& run, const UserError& error) {
  const auto at = [&](Place place) { return FilePlace{run.file, place.line, place.column}; };
  if (const auto key = overridden_key(error, run.config.base_config.values.config_json))
    refuse({at(key->place), key->path}, error.problem, error.remedy);
  const auto& rules = run.config.sharding.partition_rules.items;
  for (size_t i = 0; i < rules.size(); ++i)
    if (error.where == str("sharding.partition_rules[", i, "]"))
      refuse({at(rules[i].place), error.where}, error.problem, error.remedy);
  throw error;
}

}  // namespace

void check_with_torch(const Run& run) {
  const Needs needs = needs_of(run);
  if (!needs.model || !(needs.computing || core_is_there())) return;
  try {
    core().check(run.config, run.ranks, {.trains = needs.training, .reads_data = needs.data});
  } catch (const UserError& error) {
    refuse_at_place(run, error);
  }
}

void run_actions(const Run& run, const Output& out) {
  check_with_torch(run);
  Running running(run, out);
  for (const Action& action : run.actions)
    if (action.entry->needs.harness) running.evaluation(action);
  if (needs_of(run).training) running.session().prepare_benchmarks();
  for (const Action& action : run.actions) action.entry->run(running, action);
}

}  // namespace easydel::elarge
