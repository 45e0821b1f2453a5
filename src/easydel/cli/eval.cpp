// `easydel eval`: the action eval without a file, and the comparison of two results.
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/cli/commands.h"
#include "easydel/elarge/actions.h"
#include "easydel/elarge/compare_results.h"
#include "easydel/elarge/overrides.h"

namespace easydel::cli {
namespace {

Value document_of(const EvalCommand& command) {
  Value document = Value::map(), config = Value::map(), model = Value::map(), loader = Value::map();
  Value evaluation = Value::map(), action = Value::map(), actions = Value::list(), tasks = Value::list();
  model.set("name_or_path", Value::text(command.model));
  if (!command.tokenizer.empty()) model.set("tokenizer", Value::text(command.tokenizer));
  if (!command.chat_template.empty()) model.set("chat_template", Value::text(command.chat_template));
  loader.set("dtype", Value::text(command.dtype));
  loader.set("param_dtype", Value::text(command.dtype));
  loader.set("device", Value::text(command.device));
  loader.set("verbose", Value::boolean(false));
  config.set("model", model);
  config.set("loader", loader);
  if (!command.adapter.empty()) {
    Value lora = Value::map();
    lora.set("adapter", Value::text(command.adapter));
    config.set("lora", lora);
  }
  for (const std::string& names : command.tasks)
    for (size_t begin = 0, end; begin <= names.size(); begin = end + 1) {
      end = std::min(names.find(',', begin), names.size());
      if (end > begin) tasks.items.push_back(Value::text(names.substr(begin, end - begin)));
    }
  evaluation.set("tasks", tasks);
  evaluation.set("engine", Value::text(command.engine));
  if (command.num_fewshot) evaluation.set("num_fewshot", Value::integer(*command.num_fewshot));
  if (!command.output.empty()) evaluation.set("output_path", Value::text(command.output));
  evaluation.set("print_results", Value::boolean(true));
  action.set("eval", evaluation);
  actions.items.push_back(action);
  document.set("config", config);
  document.set("actions", actions);
  return document;
}

}  // namespace

int run_eval(const EvalCommand& command) {
  if (!command.compare.empty()) {
    const std::string &before = command.compare[0], &after = command.compare[1];
    const elarge::ResultsComparison found =
        elarge::compare_results(parse_file(before), before, parse_file(after), after);
    print(found.text());
    return found.largest() > command.tolerance ? 1 : 0;
  }
  if (command.model.empty())
    refuse("easydel eval", "no model given",
           "easydel eval MODEL --tasks NAME, or easydel eval --compare A.json B.json");
  if (command.tasks.empty()) refuse("easydel eval", "no task given", "name some: --tasks hellaswag,arc_easy");
  config::Problems problems("command line");
  elarge::Run run = elarge::read_document(document_of(command), elarge::overrides_of(command.set), problems);
  run.file = "command line";
  elarge::check_built(run.config, false, problems);
  if (problems.empty()) elarge::check_needs(run, problems);
  for (const elarge::Action& action : run.actions)
    if (problems.empty()) action.entry->check(run, action, problems);
  problems.throw_if_any();
  elarge::run_actions(run, print);
  return 0;
}

}  // namespace easydel::cli
