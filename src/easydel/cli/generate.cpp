// `easydel generate`: prompts from the command line, a file or standard input, and their continuations as they come.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/model_session.h"
#include "easydel/cli/prompts.h"
#include "easydel/cli/remote_model.h"
#include "easydel/cli/shown_reply.h"
#include "easydel/mesh/world.h"
#include "easydel/text/constrain/constraint.h"

namespace easydel::cli {
namespace {

Value line_of(const elarge::Generated& reply, const std::string& reasoning, size_t index, const Prompt& prompt,
              const generation::GenerationConfig& generation) {
  Value line = Value::map();
  line.set("index", Value::integer(int64_t(index)));
  if (prompt.is_conversation())
    line.set("messages", prompt.messages);
  else
    line.set("prompt", Value::text(prompt.text));
  if (!reasoning.empty()) line.set("reasoning", Value::text(reasoning));
  line.set("text", Value::text(reply.text));
  if (reply.new_tokens >= 0) {
    line.set("prompt_tokens", Value::integer(reply.prompt_tokens));
    line.set("new_tokens", Value::integer(reply.new_tokens));
  }
  line.set("finish_reason", Value::text(reply.finish_reason));
  if (reply.score) line.set("score", Value::number(*reply.score));
  if (generation.given.contains("seed")) line.set("seed", Value::integer(int64_t(generation.seed)));
  line.set("prefill_seconds", Value::number(reply.prefill_seconds));
  line.set("decode_seconds", Value::number(reply.decode_seconds));
  return line;
}

// Wrong ones are refused before a model is loaded.
std::optional<text::constrain::Language> constraint_of(const GenerateOptions& options) {
  if (!options.server.empty() && !options.constraint.after.empty())
    refuse("--after", "requests to a server have no constraint after a marker", "leave out --server");
  std::optional<text::constrain::Language> out = language_of(options.constraint, "easydel generate");
  if (out) text::constrain::compile(*out);
  return out;
}

// The same as members of a request to a server.
Value constraint_members(const text::constrain::ConstraintFlags& flags) {
  Value out = Value::map();
  if (flags.json_schema) out.set("guided_json", parse_json(files::read(*flags.json_schema), *flags.json_schema));
  if (flags.json_object) {
    Value kind = Value::map();
    kind.set("json_object", Value::boolean(true));
    out.set("structured_outputs", std::move(kind));
  }
  if (flags.regex) out.set("guided_regex", Value::text(*flags.regex));
  if (flags.grammar) out.set("guided_grammar", Value::text(files::read(*flags.grammar)));
  if (flags.choices.empty()) return out;
  Value list = Value::list();
  for (const std::string& choice : flags.choices) list.items.push_back(Value::text(choice));
  out.set("guided_choice", std::move(list));
  return out;
}

// What stands before a continuation: its prompt, or what the user said.
std::string echo_of(const Prompt& prompt, bool chat) {
  if (prompt.is_conversation()) return "> " + prompt.last_words() + "\n";
  return chat ? "> " + prompt.text + "\n" : prompt.text;
}

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

void print_speed(const std::vector<elarge::Generated>& replies, double seconds) {
  int64_t prompt_tokens = 0, new_tokens = 0;
  if (std::ranges::any_of(replies, [](const elarge::Generated& reply) { return reply.new_tokens < 0; })) {
    std::cerr << counted(int64_t(replies.size()), "result") << " in " << rounded(seconds)
              << " s; the server does not say how many tokens they have\n";
    return;
  }
  const auto rate = [](int64_t tokens, double of) { return of > 0 ? double(tokens) / of : 0; };
  for (const elarge::Generated& reply : replies) prompt_tokens += reply.prompt_tokens, new_tokens += reply.new_tokens;
  std::string text;
  if (replies.size() == 1)
    text =
        str("prompt: ", counted(prompt_tokens, "token"), ", ", rounded(rate(prompt_tokens, replies[0].prefill_seconds)),
            " tokens/s; continuation: ", counted(new_tokens, "token"), ", ",
            rounded(rate(new_tokens, replies[0].decode_seconds)), " tokens/s");
  else
    text = str(replies.size(), " results: ", prompt_tokens, " prompt tokens and ", new_tokens, " new tokens in ",
               rounded(seconds), " s, ", rounded(rate(new_tokens, seconds)), " new tokens/s");
  std::cerr << text << "\n";
}

}  // namespace

int run_generate(const GenerateOptions& options) {
  if (options.engine != "generator" && options.engine != "esurge")
    refuse("--engine", "'" + options.engine + "' is neither generator nor esurge");
  if (options.engine == "esurge" && !options.server.empty())
    refuse("--engine", "a server has its own engine", "leave out --engine, or --server");
  generation::GenerationConfig generation = generation_flags(options);
  const std::vector<Prompt> prompts = read_prompts(options);
  elarge::GenerateRequest request;
  request.negative_prompt = options.negative_prompt;
  request.batch = options.batch;
  request.engine = options.engine == "esurge";
  request.constraint = constraint_of(options);
  request.chat_template = template_of(options);
  std::vector<size_t> order, conversations;  // a request has its prompts before its conversations
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Prompt& prompt = prompts[i];
    if (!prompt.is_conversation() && !options.chat) {
      request.prompts.push_back(prompt.text);
      order.push_back(i);
      continue;
    }
    Value conversation = prompt.messages;
    if (!prompt.is_conversation()) {
      conversation = Value::list();
      conversation.items.push_back(chat_message("user", prompt.text));
    }
    request.conversations.push_back(conversation);
    conversations.push_back(i);
  }
  order.insert(order.end(), conversations.begin(), conversations.end());
  const Generator generator(options, generation);
  request.generation = generation;

  // The first continuation of a single prompt comes as it is generated; all others when they are complete.
  const bool stream = prompts.size() == 1 && !options.jsonl;
  bool begun = false;
  ShownReply shown;
  const auto begin = [&] {
    if (!begun && options.echo) print(echo_of(prompts[0], options.chat));
    begun = true;
  };
  if (stream)
    request.on_text = [&](size_t index, std::string_view piece) {
      if (index == 0) begin(), shown.text(piece);
    };
  std::map<size_t, std::string> reasoning;  // of results that are not printed as they come
  RemoteExtras extras{.constraint = options.server.empty() ? Value::map() : constraint_members(options.constraint)};
  extras.on_reasoning = [&](size_t index, std::string_view piece) {
    if (stream && index == 0)
      begin(), shown.reasoning(piece);
    else
      reasoning[index] += piece;
  };
  const auto print_whole = [&](const Prompt& prompt, size_t result, const elarge::Generated& reply) {
    if (options.echo) print(echo_of(prompt, options.chat));
    shown.reasoning(reasoning[result]);
    shown.text(reply.text);
    shown.end();
  };
  size_t ended = 0;
  request.on_result = [&](const elarge::Generated& reply) {
    const size_t result = ended++, index = order[reply.prompt];
    if (options.jsonl)
      print(to_json(line_of(reply, reasoning[result], index, prompts[index], generation)) + "\n");
    else if (!stream)
      print_whole(prompts[index], result, reply);
  };
  const bool one_rank = mesh::read_world().size == 1;
  if (one_rank || !request.engine) generator.load();  // an engine on ranks has a layout of its own
  std::optional<StopOnInterrupt> interrupts;
  if (one_rank) request.stop = &reply_is_stopped(), interrupts.emplace();  // ranks end together, by their launcher
  const auto start = Clock::now();
  const std::vector<elarge::Generated> replies = generator.generate(request, extras);
  const double seconds = seconds_since(start);
  if (stream && ended > 0) begin(), shown.end();
  for (size_t i = 1; stream && i < ended; ++i) print_whole(prompts[0], i, replies[i]);
  if (options.stats && mesh::read_world().rank == 0) print_speed(replies, seconds);
  if (!reply_is_stopped()) return 0;
  if (!options.server.empty()) {
    std::cerr << "stopped by Ctrl-C\n";
    return 128 + SIGINT;
  }
  int64_t new_tokens = 0;
  for (const elarge::Generated& reply : replies) new_tokens += reply.new_tokens;
  std::cerr << "stopped by Ctrl-C after " << new_tokens << " new tokens\n";
  return 128 + SIGINT;
}

}  // namespace easydel::cli
