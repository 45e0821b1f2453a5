// Reads recorded inputs line by line and prints our answers.
#include "easydel/probe/commands.h"

#include <fstream>
#include <iostream>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/elarge/overrides.h"
#include "easydel/hub/resolve.h"
#include "easydel/probe/constrain_lines.h"
#include "easydel/probe/core.h"
#include "easydel/probe/text_lines.h"
#include "easydel/probe/tool_lines.h"
#include "easydel/text/remote/tokenize_lines.h"

namespace easydel::probe {
namespace {

// Answers every line of a JSON Lines file; empty lines are skipped.
template <class Answer>
int answer_lines(const std::string& name, const Output& print, Answer answer) {
  std::ifstream file;
  if (name != "-") {
    file.open(name);
    if (!file) refuse(name, "cannot be read", "give a file of JSON Lines, or - for standard input");
  }
  std::istream& in = name == "-" ? std::cin : file;
  std::string line, out;
  std::ios::sync_with_stdio(false);
  while (std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    out += answer(line);
    out += '\n';
    if (out.size() > size_t{1} << 16 || in.rdbuf()->in_avail() <= 0) {
      print(out);
      out.clear();
    }
  }
  print(out);
  return 0;
}

// The lines of a JSON Lines file that are not empty.
std::vector<std::string> lines_of(const std::string& name) {
  std::vector<std::string> out;
  answer_lines(
      name, [](std::string_view) {},
      [&](const std::string& line) {
        out.push_back(line);
        return std::string();
      });
  return out;
}

}  // namespace

int run_logits(const LogitsCommand& command) {
  LogitsRequest request{hub::resolve_model(command.model, "probe logits"), command.inputs, command.output, std::nullopt,
                        models::device_setting(command.device, "--device")};
  request.dtype = models::dtype_setting(command.dtype, "--dtype");
  if (!command.trace.empty()) request.trace = command.trace;
  for (const elarge::Override& given : elarge::overrides_of(command.set))
    if (!given.path.starts_with("quantization") && given.path != "base_config.values.attn_mechanism" &&
        given.path != "base_config.values.moe_method" && given.path != "base_config.values.kvdtype")
      refuse("--set " + given.path, "has no effect on probe logits",
             "attn_mechanism, kvdtype and moe_method of base_config.values, and quantization.* have");
  Value document = Value::map(), model = Value::map();
  model.set("name_or_path", Value::text(command.model));
  document.set("model", model);
  const elarge::Config config = elarge::configuration(document, command.set);
  const elarge::BaseValues& values = config.base_config.values;
  request.quantization = config.quantization;
  request.cache_format = config.quantization.cache_format(values.kvdtype);
  request.attention = values.attn_mechanism;
  request.moe_method = values.moe_method;
  const models::FoundModel found = models::find_base(request.model, "probe logits");
  request.model = found.model;
  if (!found.adapter.empty()) request.adapters.push_back(found.adapter);
  for (const std::string& given : command.adapters) {  // FOLDER, or NAME=FOLDER
    const size_t equals = files::exists(given) ? std::string::npos : given.find('=');
    request.adapters.push_back(
        hub::resolve_model(equals == std::string::npos ? given : given.substr(equals + 1), "--adapter"));
  }
  request.merged = command.merged;
  if (request.merged && request.adapters.empty())
    refuse("--merged", "there is no adapter to merge", "give --adapter FOLDER");
  core().logits(request);
  return 0;
}

int run_rollout(const RolloutCommand& command, const Output& out) {
  RolloutRequest request{hub::resolve_model(command.model, "probe rollout"), {}};
  request.temperature = command.temperature, request.top_p = command.top_p, request.top_k = command.top_k;
  request.max_new_tokens = command.max_new_tokens, request.group = command.group, request.batch = command.batch;
  request.seed = command.seed;
  request.dtype = models::dtype_setting(command.dtype, "--dtype");
  request.lines = lines_of(command.lines);
  core().rollout(request, out);
  return 0;
}

int run_engine(const EngineCommand& command, const Output& out) {
  Value document = Value::map(), model = Value::map();
  model.set("name_or_path", Value::text(command.model));
  if (!command.chat_template.empty()) model.set("chat_template", Value::text(command.chat_template));
  document.set("model", model);
  std::vector<std::string> set = command.set;
  if (!command.draft.empty()) {
    // Unless a number of drafts is given.
    set.insert(set.begin(), {"esurge.speculative_model=" + command.draft, "esurge.num_speculative_tokens=4"});
  }
  EngineRequest request{elarge::configuration(document, set), lines_of(command.lines), command.pages};
  for (const std::string& given : command.adapters) {
    const size_t equals = given.find('=');
    if (equals == 0 || equals == std::string::npos)
      refuse("--adapter", str("'", given, "' has no name"), "give --adapter NAME=FOLDER");
    request.adapters.emplace_back(given.substr(0, equals), hub::resolve_model(given.substr(equals + 1), "--adapter"));
  }
  core().engine(request, out);
  return 0;
}

int run_replay(const ReplayCommand& command) {
  ReplayRequest request{command.test_case, command.root, command.output, {}, {}};
  if (!command.params.empty()) request.parameters = command.params;
  if (!command.generations.empty()) request.generations = command.generations;
  core().replay(request);
  return 0;
}

int run_tokenize(const std::string& tokenizer, const std::string& lines, const Output& out) {
  const text::TokenizeLines probe(text::Tokenizer::load(hub::resolve_tokenizer(tokenizer)));
  return answer_lines(lines, out, [&](const std::string& line) { return probe.answer(line); });
}

int run_render(const std::string& chat_template, const std::string& lines, const Output& out) {
  RenderProbe probe(chat_template);
  return answer_lines(lines, out, [&](const std::string& line) { return probe.answer(line); });
}

int run_constrain(const ConstrainCommand& command, const Output& out) {
  const auto language = text::constrain::language_of(command.constraint, "probe constrain");
  if (!language)
    refuse("probe constrain", "there is no constraint",
           "give one of --json-schema FILE, --json-object, --regex PATTERN, --grammar FILE, --choice TEXT");
  const ConstrainProbe probe(text::Tokenizer::load(hub::resolve_tokenizer(command.tokenizer)), *language);
  return answer_lines(command.lines, out, [&](const std::string& line) { return probe.answer(line); });
}

int run_tools(const ToolsCommand& command, const Output& out) {
  const ToolsProbe probe({command.parser, command.reasoning_parser, command.chat_template, command.stream});
  return answer_lines(command.lines, out, [&](const std::string& line) { return probe.answer(line); });
}

}  // namespace easydel::probe
