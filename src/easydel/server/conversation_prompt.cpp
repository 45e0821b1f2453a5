// Conversations as prompts: messages as the template wants them, rendered and tokenized.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/server/client_text.h"
#include "easydel/server/route_context.h"

namespace easydel::server {
namespace {

// Content that is a list of parts, as one text.
Value joined_parts(const Value& content) {
  std::string text;
  for (const Value& part : content.items) {
    const Value* const type = part.find("type");
    const Value* const own = type ? part.find(type->scalar) : nullptr;
    if (own) text += (text.empty() ? "" : "\n") + own->scalar;
  }
  return Value::text(text);
}

// Templates write arguments with `tojson`, so they want the object and not its text.
void parse_arguments(Value& call) {
  Value* const function = call.find("function");
  Value* const arguments = function ? function->find("arguments") : nullptr;
  if (!arguments || !arguments->is_text()) return;
  try {
    Value parsed = parse_json(arguments->scalar);
    if (parsed.is_map()) *arguments = std::move(parsed);
  } catch (const UserError&) {
    // A model's broken call stays the text that it was.
  }
}

Value as_template_wants(const Value& given, bool takes_parts, bool knows_developer) {
  Value out = Value::list();
  for (const Value& one : given.items) {
    Value message = one;
    Value* const content = message.find("content");
    if (content && content->is_list() && !takes_parts) *content = joined_parts(*content);
    if (!content) message.set("content", Value());
    Value* const role = message.find("role");
    if (role->scalar == "developer" && !knows_developer) *role = Value::text("system");
    if (role->scalar == "function") *role = Value::text("tool");
    if (Value* const calls = message.find("tool_calls"); calls && calls->is_list())
      for (Value& call : calls->items) parse_arguments(call);
    out.items.push_back(std::move(message));
  }
  return out;
}

// Replaces content that is null by an empty text. False: there is none.
bool fill_contents(Value& messages) {
  bool any = false;
  for (Value& message : messages.items)
    if (Value* const content = message.find("content"); content && content->is_null())
      *content = Value::text(""), any = true;
  return any;
}

// Messages with calls have no content. Templates that cannot take null get an empty text.
std::string rendered(const text::ChatRenderer& renderer, Value& messages, const text::ChatOptions& options) {
  try {
    return renderer.text(messages, options);
  } catch (const UserError&) {
    if (!fill_contents(messages)) throw;
  }
  return renderer.text(messages, options);
}

std::string last_content(const Value& messages) {
  const Value* const content = messages.items.back().find("content");
  return content && content->is_text() ? content->scalar : "";
}

// The text up to the end of the last message's content, as transformers' continue_final_message.
std::string cut_after_last_message(std::string text, const Value& messages) {
  std::string content = last_content(messages);
  content.erase(content.find_last_not_of(" \t\r\n") + 1);
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first != std::string::npos) content.erase(0, first);
  const size_t at = content.empty() ? std::string::npos : text.rfind(content);
  if (at == std::string::npos)
    refuse("continue_final_message", "the last message has no text that could be continued",
           "end the conversation with a message that has content");
  return text.substr(0, at + content.size());
}

}  // namespace

ConversationPrompt render_conversation(const ServeConfig& config, const ServedModel& model,
                                       const ConversationFields& fields) {
  if (model.encoder) refuse("model", str("'", model.id, "' generates no text"), "use /v1/embeddings or /v1/classify");
  std::shared_ptr<const text::ChatRenderer> renderer = model.renderer;
  if (fields.chat_template) {
    renderer = std::make_shared<const text::ChatRenderer>(model.tokenizer, *fields.chat_template);
  }
  if (!renderer)
    refuse("messages", str("the model '", model.id, "' has no chat template"),
           "use /v1/completions, or give the server a template with model.chat_template");
  const std::string source = fields.chat_template.value_or(model.tokenizer->chat_template().value_or(""));
  Value messages = as_template_wants(fields.messages, model.takes_content_parts && config.oai_like_processor,
                                     source.find("developer") != std::string::npos);
  text::ChatOptions options;
  options.tools = fields.tools;
  if (options.tools.is_list() && options.tools.items.empty()) options.tools = {};
  const bool continues = fields.continue_final_message.value_or(false);
  options.add_generation_prompt = fields.add_generation_prompt.value_or(!continues);
  options.extra = fields.chat_template_kwargs.is_map() ? fields.chat_template_kwargs : Value::map();
  if (!fields.documents.is_null()) options.extra.set("documents", fields.documents);
  if (fields.enable_thinking) options.extra.set("enable_thinking", Value::boolean(*fields.enable_thinking));
  if (fields.reasoning_effort) options.extra.set("reasoning_effort", Value::text(*fields.reasoning_effort));
  std::optional<ClientText> client;
  if (config.content_special_tokens == ContentSpecialTokens::text && model.special_texts) {
    client.emplace(model.special_texts, source);
    const std::array written = {&messages, &options.tools, &options.extra};
    for (const Value* const value : written) client->look_at(*value);
    for (Value* const value : written) client->mark(*value);
  }
  ConversationPrompt out;
  try {
    out.text = rendered(*renderer, messages, options);
  } catch (const UserError& error) {
    // Where in the template it was is the server's business.
    refuse("messages", "the chat template refuses them: " + error.problem);
  }
  if (continues) out.text = cut_after_last_message(std::move(out.text), messages);
  if (client) out.breaks = client->take_marks(out.text);
  out.ids = out.breaks.empty()
                ? model.tokenizer->encode(out.text, {.add_special_tokens = false})
                : model.tokenizer->encode_with_breaks(out.text, out.breaks, {.add_special_tokens = false}).ids;
  if (options.add_generation_prompt) out.begun = text::begun_answer(out.text, model.format);
  return out;
}

ChatReading chat_reading(std::shared_ptr<const ServedModel> model, const ConversationFields& fields,
                         ConversationPrompt prompt, bool calls_are_parsed) {
  using Thinking = text::OutputOptions::Thinking;
  ChatReading out;
  out.format = model->format;
  if (!calls_are_parsed) out.format.tools.clear();
  out.model = std::move(model);
  out.prompt = std::move(prompt.ids);
  out.options.tools = fields.tools;
  out.options.parse_tools = calls_are_parsed;
  out.options.begun = std::move(prompt.begun);
  if (fields.enable_thinking) out.options.thinking = *fields.enable_thinking ? Thinking::on : Thinking::off;
  return out;
}

}  // namespace easydel::server
