#include "easydel/server/responses_json.h"

#include <utility>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/server/request_checker.h"

namespace easydel::server {
namespace {

std::string text_member(const std::optional<std::string>& text) { return text ? json_text(*text) : "null"; }
std::string number_member(const std::optional<int64_t>& number) { return number ? std::to_string(*number) : "null"; }
std::string value_member(const Value& value, std::string_view absent) {
  return value.is_null() ? std::string(absent) : to_json(value);
}

std::string response_usage(const TokenUsage& usage) {
  return str(R"({"input_tokens":)", usage.prompt_tokens,
             R"(,"input_tokens_details":{"cache_write_tokens":0,"cached_tokens":)", usage.cached_tokens,
             R"(},"output_tokens":)", usage.completion_tokens, R"(,"output_tokens_details":{"reasoning_tokens":)",
             usage.reasoning_tokens, R"(},"total_tokens":)", usage.prompt_tokens + usage.completion_tokens, "}");
}

// Functions as the route has them, with the members that OpenAI's answers always have.
std::string tools_member(const Value& tools) {
  std::string out;
  for (const Value& tool : tools.items) {
    const Value* const description = member(tool, "description");
    const Value* const parameters = member(tool, "parameters");
    const Value* const strict = member(tool, "strict");
    out += str(out.empty() ? "" : ",", R"({"type":"function","name":)", json_text(text_of(tool, "name")),
               R"(,"description":)", description ? to_json(*description) : "null", R"(,"parameters":)",
               parameters ? to_json(*parameters) : "null", R"(,"strict":)", strict ? to_json(*strict) : "false", "}");
  }
  return "[" + out + "]";
}

}  // namespace

ResponseHead response_head(const ResponsesRequest& request, std::string model, int64_t created_at, bool stored,
                           const ResponseDefaults& defaults) {
  const ResponsesFields& fields = request.fields;
  const GenerationFields& generation = request.generation;
  const Value* const format = member(fields.text, "format");
  const Value* const effort = member(fields.reasoning, "effort");
  const Value* const summary = member(fields.reasoning, "summary");
  ResponseHead out{.id = new_completion_id("resp_"), .created_at = created_at, .model = model, .stored = stored};
  const std::string conversation = fields.conversation_id();
  out.request_fields = str(
      R"("background":false,"instructions":)", text_member(fields.instructions), R"(,"max_output_tokens":)",
      number_member(fields.max_output_tokens), R"(,"max_tool_calls":)", number_member(fields.max_tool_calls),
      R"(,"model":)", json_text(model), R"(,"parallel_tool_calls":)",
      fields.parallel_tool_calls.value_or(true) ? "true" : "false", R"(,"previous_response_id":)",
      text_member(fields.previous_response_id), R"(,"conversation":)",
      conversation.empty() ? "null" : R"({"id":)" + json_text(conversation) + "}", R"(,"prompt_cache_key":)",
      text_member(fields.prompt_cache_key), R"(,"reasoning":{"effort":)", effort ? to_json(*effort) : "null",
      R"(,"summary":)", summary ? to_json(*summary) : "null", R"(},"safety_identifier":)",
      text_member(fields.safety_identifier), R"(,"service_tier":"default","store":)", stored ? "true" : "false",
      R"(,"temperature":)", Value::number(generation.temperature.value_or(defaults.temperature)).scalar,
      R"(,"text":{"format":)", format ? to_json(*format) : R"({"type":"text"})", R"(},"tool_choice":)",
      value_member(fields.tool_choice, "\"auto\""), R"(,"tools":)", tools_member(fields.tools), R"(,"top_logprobs":)",
      fields.top_logprobs.value_or(0), R"(,"top_p":)", Value::number(generation.top_p.value_or(defaults.top_p)).scalar,
      R"(,"presence_penalty":)", Value::number(generation.presence_penalty.value_or(0)).scalar,
      R"(,"frequency_penalty":)", Value::number(generation.frequency_penalty.value_or(0)).scalar, R"(,"truncation":)",
      json_text(fields.truncation.value_or("disabled")), R"(,"user":)", text_member(generation.user), R"(,"metadata":)",
      value_member(generation.metadata, "{}"));
  return out;
}

ResponseWriter::ResponseWriter(ResponseHead head, bool logprobs) : head_(std::move(head)), logprobs_(logprobs) {}

std::string ResponseWriter::event(std::string_view type, const std::string& members) {
  return str("event: ", type, "\ndata: {\"type\":\"", type, R"(","sequence_number":)", sequence_number_++, ",", members,
             "}\n\n");
}

std::string ResponseWriter::part_event(std::string_view type, size_t index, const std::string& members) {
  return event(type, str(R"("item_id":)", json_text(items_[index].id), R"(,"output_index":)", index,
                         items_[index].kind == Item::Kind::call ? "," : R"(,"content_index":0,)", members));
}

std::string ResponseWriter::part(const Item& item, bool empty) const {
  const std::string text = empty ? "\"\"" : json_text(item.text);
  if (item.kind == Item::Kind::reasoning) return R"({"type":"reasoning_text","text":)" + text + "}";
  return R"({"type":"output_text","text":)" + text + R"(,"annotations":[],"logprobs":)" +
         (empty || !logprobs_ ? "[]" : logprob_list(item.logprobs)) + "}";
}

std::string ResponseWriter::item_json(const Item& item) const {
  const std::string head = str(R"({"id":)", json_text(item.id), R"(,"status":")", item.status, "\",");
  const std::string content = item.status == "in_progress" ? "[]" : "[" + part(item, false) + "]";
  switch (item.kind) {
    case Item::Kind::reasoning:
      return head + R"("type":"reasoning","summary":[],"content":)" + content + R"(,"encrypted_content":null})";
    case Item::Kind::message:
      return head + R"("type":"message","role":"assistant","content":)" + content + "}";
    case Item::Kind::call:
      return head + R"("type":"function_call","call_id":)" + json_text(item.call_id) + R"(,"name":)" +
             json_text(item.name) + R"(,"arguments":)" +
             (item.status == "in_progress" ? "\"\"" : json_text(item.text)) + "}";
  }
  return "";
}

std::string ResponseWriter::output() const {
  std::string out;
  for (const Item& item : items_) out += (out.empty() ? "" : ",") + item_json(item);
  return "[" + out + "]";
}

std::string ResponseWriter::object() const {
  const bool cut = status_ == "incomplete";
  return str(R"({"id":)", json_text(head_.id), R"(,"object":"response","created_at":)", head_.created_at,
             R"(,"completed_at":)", completed_at_ ? std::to_string(completed_at_) : "null", R"(,"status":")", status_,
             R"(","error":)", error_, R"(,"incomplete_details":)", cut ? R"({"reason":"max_output_tokens"})" : "null",
             ",", head_.request_fields, R"(,"output":)", output(), R"(,"usage":)", usage_, token_members_, "}");
}

std::string ResponseWriter::begin() {
  const std::string response = R"("response":)" + object();
  std::string out = event("response.created", response);
  return out + event("response.in_progress", response);
}

std::string ResponseWriter::open(Item item) {
  const size_t index = items_.size();
  items_.push_back(std::move(item));
  const Item& opened = items_.back();
  std::string out =
      event("response.output_item.added", str(R"("output_index":)", index, R"(,"item":)", item_json(opened)));
  if (opened.kind != Item::Kind::call)
    out += part_event("response.content_part.added", index, R"("part":)" + part(opened, true));
  return out;
}

std::string ResponseWriter::close(std::string_view status) {
  Item* const item = open_item();
  if (!item) return "";
  const size_t index = items_.size() - 1;
  std::string out;
  if (item->kind == Item::Kind::call) {
    out = part_event("response.function_call_arguments.done", index,
                     R"("name":)" + json_text(item->name) + R"(,"arguments":)" + json_text(item->text));
  } else {
    const bool message = item->kind == Item::Kind::message;
    out = part_event(message ? "response.output_text.done" : "response.reasoning_text.done", index,
                     R"("text":)" + json_text(item->text) +
                         (message ? R"(,"logprobs":)" + (logprobs_ ? logprob_list(item->logprobs) : "[]") : ""));
    out += part_event("response.content_part.done", index, R"("part":)" + part(*item, false));
  }
  item->status = status;
  return out + event("response.output_item.done", str(R"("output_index":)", index, R"(,"item":)", item_json(*item)));
}

std::string ResponseWriter::add_text(Item::Kind kind, const std::string& text,
                                     const std::vector<TokenLogprobEntry>& logprobs) {
  std::string out;
  Item* item = open_item();
  const bool message = kind == Item::Kind::message;
  if (!item || item->kind != kind) {
    out = close("completed");
    out += open({.kind = kind, .id = new_completion_id(message ? "msg_" : "rs_"), .text = ""});
    item = &items_.back();
  }
  item->text += text;
  item->logprobs.insert(item->logprobs.end(), logprobs.begin(), logprobs.end());
  std::string members = R"("delta":)" + json_text(text);
  if (message) members += R"(,"logprobs":)" + (logprobs_ ? logprob_list(logprobs) : "[]");
  return out + part_event(message ? "response.output_text.delta" : "response.reasoning_text.delta", items_.size() - 1,
                          members);
}

std::string ResponseWriter::add_call(const ToolCallPiece& piece) {
  std::string out;
  const Item* const before = open_item();
  if (!piece.id.empty() || !before || before->kind != Item::Kind::call || before->call_index != piece.index) {
    out = close("completed");
    out += open({.kind = Item::Kind::call,
                 .id = new_completion_id("fc_"),
                 .text = "",
                 .call_id = piece.id,
                 .name = piece.name,
                 .call_index = piece.index});
  }
  if (piece.arguments.empty()) return out;
  items_.back().text += piece.arguments;
  return out + part_event("response.function_call_arguments.delta", items_.size() - 1,
                          R"("delta":)" + json_text(piece.arguments));
}

std::string ResponseWriter::piece(const ChatPiece& piece) {
  std::string out;
  if (!piece.reasoning_content.empty()) out += add_text(Item::Kind::reasoning, piece.reasoning_content, {});
  // Log-probs of tokens without text, such as the end token, come with an empty delta of an open message.
  const Item* const before = open_item();
  const bool of_message = logprobs_ && !piece.logprobs.empty() && before && before->kind == Item::Kind::message;
  if (!piece.content.empty() || of_message) out += add_text(Item::Kind::message, piece.content, piece.logprobs);
  for (const ToolCallPiece& call : piece.tool_calls) out += add_call(call);
  if (!piece.finish_reason.empty()) finish_reason_ = piece.finish_reason;
  return out;
}

std::string ResponseWriter::end(const TokenUsage& usage, int64_t completed_at, const std::string& token_members) {
  token_members_ = token_members;
  const bool cut = finish_reason_ == "length";
  std::string out;
  // An answer without a token is an empty message.
  if (items_.empty()) out = open({.kind = Item::Kind::message, .id = new_completion_id("msg_"), .text = ""});
  out += close(cut ? "incomplete" : "completed");
  status_ = cut ? "incomplete" : "completed";
  if (!cut) completed_at_ = completed_at;
  usage_ = response_usage(usage);
  return out + event("response." + status_, R"("response":)" + object());
}

std::string ResponseWriter::fail(const ApiError& error, bool cancelled) {
  for (Item& item : items_)
    if (item.status == "in_progress") item.status = "incomplete";
  std::string out;
  status_ = cancelled ? "cancelled" : "failed";
  if (!cancelled) {
    const std::string code = json_text(error.code.empty() ? "server_error" : error.code);
    error_ = R"({"code":)" + code + R"(,"message":)" + json_text(error.message) + "}";
    out = event("error", R"("code":)" + code + R"(,"message":)" + json_text(error.message) + R"(,"param":)" +
                             (error.param.empty() ? "null" : json_text(error.param)));
  }
  return out + event("response.failed", R"("response":)" + object());
}

}  // namespace easydel::server
