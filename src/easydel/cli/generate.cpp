// `easydel generate` and `easydel chat`: generates text and prints it while it is generated.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/cli/commands.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/overrides.h"
#include "easydel/generation/generation_config.h"
#include "easydel/mesh/world.h"
#include "easydel/text/constrain/constraint.h"

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
  return elarge::core().open(elarge::configuration(document, options.set), false);
}

// The generation flags, checked against the limits of their keys.
generation::GenerationConfig read_generation(const ModelOptions& options) {
  generation::GenerationConfig out;
  config::Problems problems("command line");
  Value given = Value::map();
  for (const auto& [key, text] : options.generation) {
    std::string flag = "--" + key;
    std::ranges::replace(flag, '_', '-');
    problems.comes_from(key, flag + " " + text);
    Value value = key == "stop_strings" ? Value::text(text) : parse_yaml(text, flag);
    value.place = {};
    Value* const before = given.find(key);
    if (before && !before->is_list()) *before = Value{.kind = Value::Kind::list, .items = {*before}};
    before ? (void)before->items.push_back(value) : (void)given.set(key, value);
  }
  config::read_section(config::section_of<generation::GenerationConfig>(), given, &out, "", problems);
  problems.throw_if_any();
  return out;
}

Value message(const std::string& role, const std::string& content) {
  Value out = Value::map();
  out.set("role", Value::text(role));
  out.set("content", Value::text(content));
  return out;
}

std::atomic<bool> stop_reply = false;

// While an object of this class lives, Ctrl-C ends the reply instead of the program; a second Ctrl-C ends the program.
class StopOnInterrupt {
 public:
  StopOnInterrupt() {
    stop_reply = false;
    struct sigaction stopping = {};
    stopping.sa_handler = [](int) { stop_reply = true; };
    stopping.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &stopping, &before_);
  }
  ~StopOnInterrupt() { ::sigaction(SIGINT, &before_, nullptr); }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  struct sigaction before_ = {};
};

Value line_of(const elarge::Generated& reply, const std::string& prompt) {
  Value line = Value::map();
  line.set("prompt", Value::text(prompt));
  line.set("text", Value::text(reply.text));
  line.set("prompt_tokens", Value::integer(reply.prompt_tokens));
  line.set("new_tokens", Value::integer(reply.new_tokens));
  line.set("finish_reason", Value::text(reply.finish_reason));
  if (reply.score) line.set("score", Value::number(*reply.score));
  line.set("prefill_seconds", Value::number(reply.prefill_seconds));
  line.set("decode_seconds", Value::number(reply.decode_seconds));
  return line;
}

std::shared_ptr<const text::constrain::Automaton> constraint_of(const GenerateOptions& options) {
  using text::constrain::Language;
  std::vector<std::pair<std::string, Language>> given;
  if (options.json_schema)
    given.emplace_back("--json-schema", Language{Language::Kind::json_schema, files::read(*options.json_schema)});
  if (options.json_object) given.emplace_back("--json-object", Language{Language::Kind::json_object});
  if (options.regex) given.emplace_back("--regex", Language{Language::Kind::regex, *options.regex});
  if (options.grammar)
    given.emplace_back("--grammar", Language{Language::Kind::grammar, files::read(*options.grammar)});
  if (!options.choices.empty()) given.emplace_back("--choice", Language{Language::Kind::choice, "", options.choices});
  if (given.size() > 1)
    refuse("easydel generate", given[0].first + " and " + given[1].first + " are two constraints", "give one of them");
  return given.empty() ? nullptr : text::constrain::compile(given[0].second);
}

}  // namespace

int run_generate(const GenerateOptions& options) {
  const generation::GenerationConfig generation = read_generation(options);
  std::vector<std::string> prompts = options.prompts;
  if (prompts.empty()) {
    std::string text = read_input("-");
    if (text.ends_with('\n')) text.pop_back();
    if (text.empty()) refuse("easydel generate", "there is no prompt", "give one with -p 'text' or on standard input");
    prompts.push_back(text);
  }
  elarge::GenerateRequest request;
  request.generation = generation;
  request.negative_prompt = options.negative_prompt;
  request.batch = options.batch;
  request.constraint = constraint_of(options);
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
  // The first continuation is streamed; further ones of the same prompt follow it.
  if (stream)
    request.on_text = [](size_t index, std::string_view piece) {
      if (index == 0) print(piece);
    };
  const std::unique_ptr<elarge::Session> session = open(options);
  session->build_model();
  std::optional<StopOnInterrupt> interrupts;
  if (mesh::read_world().size == 1)
    request.stop = &stop_reply, interrupts.emplace();  // several ranks are ended by their launcher
  const auto replies = session->generate(request);
  int64_t new_tokens = 0;
  for (size_t i = 0; i < replies.size(); ++i) {
    new_tokens += replies[i].new_tokens;
    if (options.jsonl)
      print(to_json(line_of(replies[i], prompts[replies[i].prompt])) + "\n");
    else
      print((stream && i == 0 ? "" : replies[i].text) + "\n");
  }
  if (!stop_reply) return 0;
  std::cerr << "stopped by Ctrl-C after " << new_tokens << " new tokens\n";
  return 128 + SIGINT;
}

int run_chat(const ChatOptions& options) {
  const generation::GenerationConfig generation = read_generation(options);
  const std::unique_ptr<elarge::Session> session = open(options);
  const bool terminal = ::isatty(STDIN_FILENO) && ::isatty(STDERR_FILENO);
  const char* const no_color = std::getenv("NO_COLOR");
  const std::string ask = no_color && *no_color ? "> " : "\033[1m>\033[0m ";
  if (terminal) std::cerr << "Ctrl-C stops an answer, /reset starts a new conversation, Ctrl-D quits.\n";
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
    request.generation = generation;
    request.negative_prompt = options.negative_prompt;
    request.on_text = [](size_t index, std::string_view piece) {
      if (index == 0) print(piece);
    };
    request.stop = &stop_reply;
    std::string reply;
    {
      const StopOnInterrupt interrupts;  // at the chat's prompt Ctrl-C ends the program
      reply = session->generate(request).at(0).text;
    }
    print("\n");
    conversation.items.push_back(message("assistant", reply));
  }
  if (terminal) std::cerr << "\n";
  return 0;
}

}  // namespace easydel::cli
