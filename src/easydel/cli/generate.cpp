// `easydel generate` and `easydel chat`: text out of a model, as it comes.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "easydel/base/error.h"
#include "easydel/cli/commands.h"
#include "easydel/elarge/core.h"
#include "easydel/generation/sampling_config.h"

namespace easydel::cli {
namespace {

std::unique_ptr<elarge::Session> open(const ModelOptions& options) {
  Value document = Value::map(), model = Value::map(), loader = Value::map();
  model.set("name_or_path", Value::text(options.model));
  if (!options.tokenizer.empty()) model.set("tokenizer", Value::text(options.tokenizer));
  loader.set("dtype", Value::text(options.dtype));
  loader.set("param_dtype", Value::text(options.dtype));
  loader.set("device", Value::text(options.device));
  loader.set("verbose", Value::boolean(false));
  document.set("model", model);
  document.set("loader", loader);
  elarge::Config config;
  config::Problems problems("command line");
  config::read_section(config::section_of<elarge::Config>(), document, &config, "", problems);
  problems.throw_if_any();
  return elarge::core().open(config, false);
}

// The sampling flags as the YAML's keys, by their limits.
Value read_sampling(const ModelOptions& options) {
  generation::SamplingConfig checked;
  config::Problems problems("command line");
  Value given = Value::map();
  for (const auto& [key, text] : options.sampling) {
    std::string flag = "--" + key;
    std::ranges::replace(flag, '_', '-');
    problems.comes_from(key, flag + " " + text);
    Value value = key == "stop" ? Value::text(text) : parse_yaml(text, flag);
    value.place = {};
    Value* const before = given.find(key);
    if (before && !before->is_list()) *before = Value{.kind = Value::Kind::list, .items = {*before}};
    before ? (void)before->items.push_back(value) : (void)given.set(key, value);
  }
  config::read_section(config::section_of<generation::SamplingConfig>(), given, &checked, "", problems);
  problems.throw_if_any();
  return given;
}

Value message(const std::string& role, const std::string& content) {
  Value out = Value::map();
  out.set("role", Value::text(role));
  out.set("content", Value::text(content));
  return out;
}

std::atomic<bool> stop_reply = false;

}  // namespace

int run_generate(const GenerateOptions& options) {
  const Value sampling = read_sampling(options);
  std::vector<std::string> prompts = options.prompts;
  if (prompts.empty()) {
    std::string text = read_input("-");
    if (text.ends_with('\n')) text.pop_back();
    if (text.empty()) refuse("easydel generate", "there is no prompt", "give one with -p 'text', or on standard input");
    prompts.push_back(text);
  }
  elarge::GenerateRequest request;
  request.sampling = sampling;
  request.batch = options.batch;
  for (const std::string& prompt : prompts) {
    if (!options.chat) {
      request.prompts.push_back(prompt);
      continue;
    }
    Value conversation = Value::list();
    conversation.items.push_back(message("user", prompt));
    request.conversations.push_back(conversation);
  }
  const bool stream = prompts.size() == 1 && !options.jsonl;
  if (stream) request.on_text = [](size_t, std::string_view piece) { print(piece); };
  const auto replies = open(options)->generate(request);
  if (stream) return print("\n"), 0;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (!options.jsonl) {
      print(replies[i].text + "\n");
      continue;
    }
    Value line = Value::map();
    line.set("prompt", Value::text(prompts[i]));
    line.set("text", Value::text(replies[i].text));
    line.set("prompt_tokens", Value::integer(replies[i].prompt_tokens));
    line.set("new_tokens", Value::integer(replies[i].new_tokens));
    line.set("finish_reason", Value::text(replies[i].finish_reason));
    line.set("prefill_seconds", Value::number(replies[i].prefill_seconds));
    line.set("decode_seconds", Value::number(replies[i].decode_seconds));
    print(to_json(line) + "\n");
  }
  return 0;
}

int run_chat(const ChatOptions& options) {
  const Value sampling = read_sampling(options);
  const std::unique_ptr<elarge::Session> session = open(options);
  const bool terminal = ::isatty(STDIN_FILENO) && ::isatty(STDERR_FILENO);
  const char* const no_color = std::getenv("NO_COLOR");
  const std::string ask = no_color && *no_color ? "> " : "\033[1m>\033[0m ";
  if (terminal) std::cerr << "Ctrl-C stops a reply, /reset begins anew, Ctrl-D ends.\n";
  Value conversation = Value::list();
  const auto reset = [&] {
    conversation = Value::list();
    if (!options.system.empty()) conversation.items.push_back(message("system", options.system));
  };
  reset();
  for (std::string line;;) {
    if (terminal) std::cerr << ask << std::flush;
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    if (line == "/quit" || line == "/exit") return 0;
    if (line == "/reset") {
      reset();
      continue;
    }
    conversation.items.push_back(message("user", line));
    elarge::GenerateRequest request;
    request.conversations = {conversation};
    request.sampling = sampling;
    request.on_text = [](size_t, std::string_view piece) { print(piece); };
    request.stop = &stop_reply;
    stop_reply = false;
    // Only while a reply is written; at the prompt Ctrl-C ends the program.
    struct sigaction stopping = {}, before = {};
    stopping.sa_handler = [](int) { stop_reply = true; };
    ::sigaction(SIGINT, &stopping, &before);
    std::string reply;
    try {
      reply = session->generate(request).at(0).text;
    } catch (...) {
      ::sigaction(SIGINT, &before, nullptr);
      throw;
    }
    ::sigaction(SIGINT, &before, nullptr);
    print("\n");
    conversation.items.push_back(message("assistant", reply));
  }
  if (terminal) std::cerr << "\n";
  return 0;
}

}  // namespace easydel::cli
