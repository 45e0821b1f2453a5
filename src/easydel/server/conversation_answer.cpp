#include "easydel/server/conversation_answer.h"

#include <utility>

#include "easydel/base/error.h"
#include "easydel/server/request_checker.h"
#include "easydel/server/tool_choice.h"
#include "easydel/text/output/answer_language.h"

namespace easydel::server {
namespace {

// The old form, in which functions are not called tools.
void take_functions(ChatRequest& request) {
  const Value& functions = request.chat.functions;
  if (functions.is_list() && !functions.items.empty() && request.conversation.tools.is_null()) {
    request.conversation.tools = Value::list();
    for (const Value& function : functions.items) {
      Value tool = Value::map();
      tool.set("type", Value::text("function"));
      tool.set("function", function);
      request.conversation.tools.items.push_back(std::move(tool));
    }
  }
  const Value& call = request.chat.function_call;
  if (!request.chat.tool_choice.is_null() || call.is_null()) return;
  request.chat.tool_choice = call;
  if (!call.is_map()) return;
  request.chat.tool_choice = Value::map();
  request.chat.tool_choice.set("type", Value::text("function"));
  request.chat.tool_choice.set("function", call);
}

// No effort is no thinking, which templates do not know by that word.
void take_effort(ConversationFields& fields) {
  if (fields.reasoning_effort != "none") return;
  fields.reasoning_effort.reset();
  if (!fields.enable_thinking) fields.enable_thinking = false;
}

// Requests in other forms than that of chats were only checked in parts.
ToolChoice choice_of(const ChatRequest& request) {
  config::Problems problems("");
  config::Keys keys(problems, "");
  request.check_together(keys);
  if (!problems.empty()) throw_problems(problems);
  return read_tool_choice(request.chat.tool_choice, request.conversation.tools, "tool_choice", problems);
}

// What response_format or a constraint of the request wants of the content.
std::optional<text::constrain::Language> content_of(const ChatRequest& request,
                                                    std::optional<esurge::GuidedDecoding>& guided) {
  using text::constrain::Language;
  const std::string type = text_of(request.chat.response_format, "type");
  if (type.empty() || type == "text") {
    if (!guided) return std::nullopt;
    return std::exchange(guided, std::nullopt)->language();
  }
  if (type == "json_object") return Language{.kind = Language::Kind::json_object};
  const Value& schema = *request.chat.response_format.find("json_schema")->find("schema");
  return Language{.kind = Language::Kind::json_schema, .source = to_json(schema)};
}

// The field of the body that says what the content follows.
std::string constraint_field_of(const ChatRequest& request) {
  const std::string type = text_of(request.chat.response_format, "type");
  return type.empty() || type == "text" ? std::string(request.generation.constraint_field()) : request.schema_field;
}

}  // namespace

ConversationAnswer prepare_conversation(const RouteContext& context, const Api& api, const Call& call,
                                        ChatRequest request) {
  take_functions(request);
  take_effort(request.conversation);
  const GenerationFields& fields = request.generation;
  ConversationAnswer out{.model = model_for(context, api, call, fields.model)};
  const Value& tools = request.conversation.tools;
  const bool has_tools = tools.is_list() && !tools.items.empty();
  const ToolChoice choice = choice_of(request);

  std::optional<int64_t> max_tokens = request.max_tokens();
  if (!max_tokens) max_tokens = default_max_tokens(*out.model);
  esurge::SamplingParams sampling = sampling_of(fields, max_tokens, *out.model);
  text::AnswerRules rules{.tools = allowed_tools(tools, choice),
                          .required = choice.mode == ToolChoice::Mode::required,
                          .parallel = request.chat.parallel_tool_calls.value_or(true),
                          .restricted = !choice.names.empty(),
                          .content = content_of(request, sampling.guided_decoding)};
  if (request.chat.logprobs.value_or(false)) sampling.logprobs = request.chat.top_logprobs.value_or(0);
  const int64_t copies = take_equal_answers(sampling);
  separate_prefixes(context, call, sampling);

  ConversationPrompt prompt = render_conversation(context.config, *out.model, request.conversation);
  FittedRequest fitted = fit_request(std::move(prompt.ids), sampling, *out.model);
  prompt.ids = fitted.prompt;
  check_permissions(call, {fields.stream, has_tools, fitted.max_tokens * sampling.choices_drawn()});
  const bool parses_calls = has_tools && choice.mode != ToolChoice::Mode::none;
  auto reading =
      std::make_shared<ChatReading>(chat_reading(out.model, request.conversation, std::move(prompt), parses_calls));
  reading->top_logprobs = sampling.logprobs;
  reading->skip_special_tokens = sampling.skip_special_tokens;
  if (request.chat.echo) reading->prefix = text_of(request.conversation.messages.items.back(), "content");

  AnswerPart part;
  part.copies = copies;
  part.shows_timings = fields.timings;
  part.constraint_field = rules.content ? constraint_field_of(request) : "tools";
  rules.begun = reading->options.begun;
  rules.thinking = reading->options.thinking;
  part.request.constraint = text::answer_language(reading->format, rules);
  part.request.reasoning.emplace(reading->format, rules.begun, rules.thinking);
  if (request.chat.thinking_budget)
    if (auto end = text::reasoning_end(reading->format, rules.begun, rules.thinking))
      part.request.reasoning_budget = {*request.chat.thinking_budget, *std::move(end)};
  part.prompt_tokens = int64_t(fitted.prompt.size());
  part.truncated_tokens = fitted.truncated_tokens;
  part.request.prompt = std::move(fitted.prompt);
  part.request.request_id = call.id();
  sampling.skip_special_tokens = reading->engine_skips_special_tokens();
  sampling.return_token_ids = reading->needs_tokens() || fields.return_token_ids;
  sampling.output_kind = fields.stream ? esurge::OutputKind::delta : esurge::OutputKind::final_only;
  part.request.sampling = std::move(sampling);
  out.reading = std::move(reading);
  out.prompt_tokens = part.prompt_tokens;
  out.truncated_tokens = part.truncated_tokens;
  out.parts.push_back(std::move(part));
  return out;
}

}  // namespace easydel::server
