// Routes that use a model without generating: tokens and templates, what the server and its models can do, and the
// administration of what is generated.
#include <algorithm>
#include <memory>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/base/names.h"
#include "easydel/esurge/vllm_metrics.h"
#include "easydel/server/encode_queue.h"
#include "easydel/server/json_body.h"
#include "easydel/server/route_context.h"
#include "easydel/server/text_request.h"
#include "easydel/text/chat_capabilities.h"

namespace easydel::server {
namespace {

using text::TokenId;

// Memory for each byte of a text that becomes tokens, at most one a byte: an id; with texts of tokens also a text,
// which is rarely longer than its object, and an offset. The answer counts when it is written.
constexpr size_t memory_per_byte = 4, memory_per_byte_with_texts = 64;

// A JSON list, written as text at once: a document takes more than a hundred bytes for each token.
template <class Item, class Write>
void append_list(std::string& to, const std::vector<Item>& items, Write write) {
  to += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) to += ", ";
    to += write(items[i]);
  }
  to += ']';
}

Value text_list(const std::vector<std::string>& texts) {
  Value out = Value::list();
  for (const std::string& text : texts) out.items.push_back(Value::text(text));
  return out;
}

const text::Tokenizer& tokenizer_of(const ServedModel& model) {
  if (!model.tokenizer) refuse("model", str("'", model.id, "' has no tokenizer"), "use token ids");
  return *model.tokenizer;
}

template <config::Sectioned T>
T read_route_body(const RouteContext& context, Call& call) {
  return read_fields<T>(call, call.body(), rules_of(context.config));
}

ConversationFields conversation_of(const TokenizeRequest& request) {
  ConversationFields out;
  out.messages = request.messages;
  out.tools = request.tools;
  out.chat_template_kwargs = request.chat_template_kwargs;
  out.add_generation_prompt = request.add_generation_prompt;
  out.continue_final_message = request.continue_final_message;
  return out;
}

void tokenize(const RouteContext& context, Call& call) {
  const auto request = read_route_body<TokenizeRequest>(context, call);
  const auto model = context.models.find(request.model);
  const text::Tokenizer& tokenizer = tokenizer_of(*model);
  const bool chat = !request.prompt.has_value();
  const text::EncodeOptions options{.add_special_tokens = request.add_special_tokens.value_or(!chat)};
  ConversationPrompt conversation;
  if (chat) conversation = render_conversation(context.config, *model, conversation_of(request));
  const std::string& text = chat ? conversation.text : *request.prompt;
  call.exchange().hold(text.size() * (request.return_token_strs ? memory_per_byte_with_texts : memory_per_byte));
  text::Encoding encoding;
  if (!conversation.breaks.empty())
    encoding = tokenizer.encode_with_breaks(text, conversation.breaks, options);
  else if (request.return_token_strs)
    encoding = tokenizer.encode_full(text, std::nullopt, options);
  else
    encoding.ids = tokenizer.encode(text, options);
  std::string out =
      str(R"({"count": )", encoding.ids.size(), R"(, "max_model_len": )", model->max_model_len, R"(, "tokens": )");
  append_list(out, encoding.ids, [](TokenId id) { return std::to_string(id); });
  if (request.return_token_strs) {
    append_list(out += R"(, "token_strs": )", encoding.tokens, [](const std::string& one) { return json_text(one); });
    append_list(out += R"(, "offsets": )", encoding.offsets,
                [](const auto& pair) { return str("[", pair.first, ", ", pair.second, "]"); });
  }
  call.respond_json(200, out += "}");
}

void detokenize(const RouteContext& context, Call& call) {
  TokenLists tokens;
  Value body = call.body("tokens", tokens);
  // Left in the body if it does not begin with a token id.
  const Value* const left = body.find("tokens");
  const bool empty = left && left->is_list() && left->items.empty();
  RequestRules rules = rules_of(context.config);
  const auto wrong = [](std::string what) { return config::Problem{"tokens", {}, std::move(what), "give one list"}; };
  if (tokens.lists.empty() && !left)
    rules.missing.push_back(wrong("is missing"));
  else if (tokens.lists.empty() && !empty)
    rules.found.push_back(wrong(config::shown(*left) + " is not a list of token ids"));
  else if (tokens.nested || tokens.lists.size() > 1)
    rules.found.push_back(wrong("is not a list of token ids"));
  std::erase_if(body.entries, [](const auto& entry) { return entry.first == "tokens"; });
  const auto request = read_fields<DetokenizeRequest>(call, std::move(body), rules);
  const auto model = context.models.find(request.model);
  const text::Tokenizer& tokenizer = tokenizer_of(*model);
  const std::vector<TokenId> ids = tokens.lists.empty() ? std::vector<TokenId>() : tokens.lists[0];
  for (const TokenId id : ids)
    if (id < 0 || id >= tokenizer.id_limit())
      refuse("tokens", str(id, " is not a token id of the model"), str("they are below ", tokenizer.id_limit()));
  Value out = Value::map();
  out.set("prompt", Value::text(tokenizer.decode(ids, request.skip_special_tokens.value_or(false))));
  call.respond_json(200, to_json(out));
}

void apply_template(const RouteContext& context, Call& call) {
  Value body = call.body();
  std::optional<std::string> name;
  if (const Value* const given = body.find("model"); given && given->is_text()) name = given->scalar;
  std::erase_if(body.entries, [](const auto& entry) { return entry.first == "model"; });
  const auto fields = read_fields<ConversationFields>(call, std::move(body), rules_of(context.config));
  const auto model = context.models.find(name);
  const ConversationPrompt prompt = render_conversation(context.config, *model, fields);
  std::string out =
      str(R"({"prompt": )", json_text(prompt.text), R"(, "count": )", prompt.ids.size(), R"(, "tokens": )");
  append_list(out, prompt.ids, [](TokenId id) { return std::to_string(id); });
  call.respond_json(200, out += "}");
}

// Special tokens as texts, as tokenizer_config.json has them.
void tokenizer_info(const RouteContext& context, Call& call) {
  const auto model = context.models.find(std::nullopt);
  const text::Tokenizer& tokenizer = tokenizer_of(*model);
  Value out = Value::map();
  out.set("model", Value::text(model->id));
  out.set("vocab_size", Value::integer(tokenizer.vocabulary_size()));
  out.set("model_max_length", Value::integer(model->max_model_len));
  const auto special = [&](const std::string& name, std::optional<TokenId> id) {
    out.set(name + "_token", id ? Value::text(tokenizer.token_of(*id)) : Value());
    out.set(name + "_token_id", id ? Value::integer(*id) : Value());
  };
  special("bos", tokenizer.bos_id());
  special("eos", tokenizer.eos_id());
  special("pad", tokenizer.pad_id());
  special("unk", tokenizer.unk_id());
  const std::optional<std::string> chat_template = tokenizer.chat_template();
  out.set("chat_template", chat_template ? Value::text(*chat_template) : Value());
  call.respond_json(200, to_json(out));
}

// What the chat template can do, as its renderings show it; null: there is none.
Value abilities_of_template(const ServedModel& model) {
  if (!model.renderer) return {};
  const text::ChatCapabilities can = text::capabilities_of(text::ChatTemplate(*model.tokenizer->chat_template()));
  Value out = Value::map();
  const auto set = [&out](const char* name, bool value) { out.set(name, Value::boolean(value)); };
  set("system_role", can.system_role);
  set("tools", can.tools);
  set("tool_calls", can.tool_calls);
  set("tool_results", can.tool_results);
  set("keeps_reasoning", can.keeps_reasoning);
  set("thinking", can.thinking);
  set("content_parts", can.content_parts);
  return out;
}

Value names_of_parsers(const ServedModel& model) {
  Value out = Value::map();
  const auto text_or_none = [](const std::string& name) { return name.empty() ? Value() : Value::text(name); };
  out.set("model", Value::text(model.id));
  out.set("tool_parser", text_or_none(model.format.tools));
  out.set("reasoning_parser", text_or_none(model.format.reasoning));
  out.set("chat", Value::boolean(model.renderer != nullptr));
  out.set("template", abilities_of_template(model));
  return out;
}

// What clients may find out about their limits; nothing that an operator keeps to themselves.
void props(const RouteContext& context, Call& call) {
  const ServeConfig& config = context.config;
  Value limits = Value::map(), models = Value::list(), out = Value::map();
  limits.set("max_body_bytes", Value::integer(config.max_body_bytes));
  limits.set("max_header_bytes", Value::integer(config.max_header_bytes));
  limits.set("request_timeout_seconds", Value::number(config.request_timeout_seconds));
  for (const auto& model : context.models.all()) {
    Value one = names_of_parsers(*model), defaults = Value::map();
    one.set("max_model_len", Value::integer(model->max_model_len));
    one.set("fingerprint", Value::text(model->fingerprint));
    one.set("max_num_seqs", Value::integer(model->config.max_num_seqs));
    const esurge::SamplingParams sampling = sampling_of({}, std::nullopt, *model);
    defaults.set("temperature", Value::number(sampling.temperature));
    defaults.set("top_p", Value::number(sampling.top_p));
    defaults.set("top_k", Value::integer(sampling.top_k));
    defaults.set("min_p", Value::number(sampling.min_p));
    one.set("defaults", std::move(defaults));
    models.items.push_back(std::move(one));
  }
  out.set("enable_function_calling", Value::boolean(config.enable_function_calling));
  out.set("strict_requests", Value::boolean(config.strict_requests));
  out.set("limits", std::move(limits));
  out.set("models", std::move(models));
  call.respond_json(200, to_json(out));
}

void tools(const RouteContext& context, Call& call) {
  Value models = Value::list(), out = Value::map();
  for (const auto& model : context.models.all()) models.items.push_back(names_of_parsers(*model));
  out.set("models", std::move(models));
  out.set("tool_parsers", text_list(text::tool_parser_names()));
  out.set("reasoning_parsers", text_list(text::reasoning_parser_names()));
  call.respond_json(200, to_json(out));
}

Value shown(const AnswerJobs::Info& info) {
  Value out = Value::map();
  out.set("id", Value::text(info.id));
  out.set("key", Value::text(info.key));
  out.set("route", Value::text(info.route));
  out.set("model", Value::text(info.model));
  out.set("seconds", Value::number(info.seconds));
  out.set("prompt_tokens", Value::integer(info.prompt_tokens));
  out.set("generated_tokens", Value::integer(info.generated_tokens));
  return out;
}

void respond_state(Call& call, const char* state) {
  Value out = Value::map();
  out.set("status", Value::text(state));
  call.respond_json(200, to_json(out));
}

}  // namespace

void add_model_routes(Api& api, const RouteContext& context) {
  const auto serve = [&](const char* route, void (*answer)(const RouteContext&, Call&)) {
    api.serve(route, [context, answer](std::shared_ptr<Call> call) { answer(context, *call); });
  };
  serve("POST /tokenize", tokenize);
  serve("POST /detokenize", detokenize);
  serve("POST /apply-template", apply_template);
  serve("GET /tokenizer_info", tokenizer_info);
  serve("GET /props", props);
  serve("GET /v1/tools", tools);

  api.serve("POST /v1/admin/pause", [&api, context](std::shared_ptr<Call> call) {
    if (api.state() == ServerState::ready) api.set_state(ServerState::paused);
    for (const auto& model : context.models.all())
      if (model->engine) model->engine->pause();
    respond_state(*call, "paused");
  });
  api.serve("POST /v1/admin/resume", [&api, context](std::shared_ptr<Call> call) {
    for (const auto& model : context.models.all())
      if (model->engine) model->engine->resume();
    if (api.state() != ServerState::loading) api.set_state(ServerState::ready);
    respond_state(*call, "ready");
  });
  api.serve("POST /v1/admin/drain", [&api](std::shared_ptr<Call> call) {
    if (api.state() != ServerState::loading) api.set_state(ServerState::draining);
    respond_state(*call, "draining");
  });
  api.serve("GET /v1/admin/requests", [context](std::shared_ptr<Call> call) {
    Value list = Value::list(), out = Value::map();
    for (const AnswerJobs::Info& info : context.jobs.list()) list.items.push_back(shown(info));
    for (const AnswerJobs::Info& info : context.encodes.list()) list.items.push_back(shown(info));
    out.set("requests", std::move(list));
    call->respond_json(200, to_json(out));
  });
  api.serve("DELETE /v1/admin/requests/{id}", [context](std::shared_ptr<Call> call) {
    const std::string id = call->parameter("id");
    const ApiError error{.status = 503, .message = "An administrator ended the request.", .code = "cancelled"};
    if (!context.jobs.cancel(id, error) && !context.encodes.cancel(id, error))
      throw Refusal({.status = 404, .message = str("There is no request '", id, "'."), .code = "request_not_found"});
    respond_state(*call, "cancelled");
  });
  api.serve("POST /v1/admin/cache/save", [context](std::shared_ptr<Call> call) {
    bool any = false;
    for (const auto& model : context.models.all()) {
      const std::optional<std::string>& folder = model->config.prefix_cache_path;
      if (!model->engine || !folder) continue;
      model->engine->save_prefix_cache(*folder);
      any = true;
    }
    if (!any)
      throw Refusal({.status = 400,
                     .message = "No model has a folder for its prefix cache (set esurge.prefix_cache_path).",
                     .code = "no_cache_folder"});
    respond_state(*call, "saved");
  });
  api.serve("POST /v1/admin/cache/reset", [context](std::shared_ptr<Call> call) {
    for (const auto& model : context.models.all())
      if (model->engine) model->engine->reset_prefix_cache();
    respond_state(*call, "reset");
  });
  api.set_metrics_source([context] {
    std::vector<std::pair<std::string, esurge::EngineMetrics>> all;
    for (const auto& model : context.models.all())
      if (model->engine) all.emplace_back(model->id, model->engine->metrics());
    const std::string out = esurge::metrics_text(all);
    return context.config.vllm_metric_names ? out + esurge::vllm_metrics_text(all) : out;
  });
  api.set_metrics_document([context] {
    Value out = Value::map();
    for (const auto& model : context.models.all())
      if (model->engine) out.set(model->id, esurge::metrics_document(model->engine->metrics()));
    return out;
  });
}

}  // namespace easydel::server
