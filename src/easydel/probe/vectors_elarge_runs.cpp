// Recorded runs of eLargeModel: the actions that a document requests with their parameters, and what a command line
// does.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/elarge/actions.h"
#include "easydel/probe/case_folder.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

namespace fs = std::filesystem;

Value member(const Value& map, std::string_view key) {
  const Value* const value = map.find(key);
  return value ? *value : Value{};
}

Value call(std::string_view name, Value parameters = Value::map()) {
  Value out = Value::list();
  out.items = {Value::text(std::string(name)), std::move(parameters)};
  return out;
}

Value some(const Value& parameters, std::initializer_list<const char*> keys) {
  Value out = Value::map();
  for (const char* key : keys) out.set(key, member(parameters, key));
  return out;
}

// Records an action as EasyDeL's recorder does.
void record(const elarge::Action& action, const config::Problems& problems, Value& calls) {
  const Value parameters =
      action.parameters ? config::write_section(*action.entry->parameters(), action.parameters.get()) : Value::map();
  const std::string_view name = action.entry->name;
  if (name == "validate" || name == "train") calls.items.push_back(call(name));
  if (name == "to_json" || name == "to_yaml") calls.items.push_back(call(name, parameters));
  if (name == "eval") {
    Value given = some(parameters, {"tasks", "engine", "num_fewshot", "output_path"});
    if (Value* tasks = given.find("tasks"); !tasks->is_list()) {
      Value list = Value::list();
      list.items.push_back(*tasks);
      *tasks = list;
    }
    calls.items.push_back(call("eval", given));
  }
  if (name != "serve") return;
  Value server = some(parameters, {"oai_like_processor", "enable_function_calling", "tool_parser_name",
                                   "require_api_key", "admin_key"});
  server.set("positional", Value::integer(1));
  for (const char* key : {"enable_cors", "cors_origins"})
    if (problems.given(action.path + "." + key)) server.set(key, member(parameters, key));
  Value run = some(parameters, {"host", "port", "workers", "log_level", "ssl_keyfile", "ssl_certfile"});
  run.set("reload", Value::boolean(false));
  for (const Value& one : {call("validate"), call("build_esurge"), call("eSurgeApiServer", server), call("run", run)})
    calls.items.push_back(one);
}

Value run_document(const VectorCase& vector, const VectorFile&) {
  config::Problems problems(vector.id);
  const elarge::Run run =
      elarge::read_document(parse_yaml(member(vector.body, "yaml").scalar, vector.id), {}, problems);
  for (const config::Problem& problem : problems.sorted())
    if (problem.what.find("not built yet") == std::string::npos) refuse(vector.id, problems.text());
  Value calls = Value::list();
  for (const elarge::Action& action : run.actions) record(action, problems, calls);
  return calls;
}

Value run_expectation(const VectorCase& vector, const VectorFile&) {
  const Value recorded = member(vector.body, "expect");
  if (recorded.find("error")) return recorded;
  Value out = Value::map(), calls = member(vector.body, "calls");
  for (Value& one : calls.items)  // one task is a list of one
    if (Value* tasks = one.items.at(1).find("tasks"); tasks && !tasks->is_list()) {
      Value list = Value::list();
      list.items.push_back(*tasks);
      *tasks = list;
    }
  out.set("ok", calls);
  return out;
}

// Actions have the keys of both versions of EasyDeL; a recording has those of its own.
std::string run_difference(const Value& expected, const Value& got) {
  Value ours = got;
  for (size_t i = 0; i < std::min(expected.items.size(), ours.items.size()); ++i) {
    const Value& want = expected.items[i].items.at(1);
    std::erase_if(ours.items[i].items.at(1).entries, [&](const auto& entry) { return !want.find(entry.first); });
  }
  return difference_of(expected, ours, 0, 0);
}

// Runs the program with these arguments, in a folder with the documents that the file's note describes.
Value run_command(const VectorCase& vector, const VectorFile&) {
  const CaseFolder folder;
  const fs::path& root = folder.path();
  files::make_directories(root / "tiny-llama");
  files::write(root / "tiny-llama/config.json",
               "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"]}\n");
  files::write(root / "tiny-llama/tokenizer.json",  // a run without a tokenizer is refused here
               R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"}})"
               "\n");
  files::write(root / "doc.yaml", "model: {name_or_path: tiny-llama}\nactions: [validate]\n");
  files::write(root / "other.yaml", "model: {name_or_path: nowhere}\nactions: [validate]\n");
  files::write(root / "list.yaml", "[1, 2]\n");
  files::write(root / "empty.yaml", "");
  files::write(root / "bad.yaml", "a: [1, 2\n");
  std::string line =
      "cd '" + root.string() + "' && '" + files::canonical("/proc/self/exe").string() + "' --quiet elarge";
  for (const Value& word : member(vector.body, "argv").items) line += " '" + word.scalar + "'";
  FILE* const pipe = popen((line + " 2>&1").c_str(), "r");
  check(pipe, "a shell could not be started");
  std::string text;
  std::array<char, 4096> buffer;
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), got);
  const int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) refuse(vector.id, text);
  Value calls = Value::list();
  if (text.find("is valid") != std::string::npos) calls.items.push_back(call("validate"));
  return calls;
}

}  // namespace

VectorKind elarge_runner_vectors() {
  return {.name = "elarge_runner", .answer = run_document, .expected = run_expectation, .compare = run_difference};
}
VectorKind elarge_cli_vectors() { return {.name = "elarge_cli", .answer = run_command, .expected = run_expectation}; }

}  // namespace easydel::probe
