// POST /v1/responses, and the routes of stored responses.
#include <charconv>
#include <memory>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/server/conversation_answer.h"
#include "easydel/server/response_store.h"
#include "easydel/server/responses_json.h"
#include "easydel/server/responses_request.h"
#include "easydel/server/single_answer.h"

namespace easydel::server {
namespace {

constexpr const char* cancelled = "cancelled";

class ResponseAnswer final : public SingleAnswer {
 public:
  // `store`: null if the response is not kept. `stored`: what is known of it before it is answered.
  ResponseAnswer(const ConversationAnswer& answer, ResponseWriter writer, const GenerationFields& fields,
                 ResponseStore* store, StoredResponse stored)
      : SingleAnswer(answer.reading, fields, truncation_headers(answer.truncated_tokens)),
        writer_(std::move(writer)),
        store_(store),
        stored_(std::move(stored)) {}
  // A client that has gone leaves no response behind.
  ~ResponseAnswer() override {
    if (store_ && !kept_) store_->forget(stored_.id);
  }

 private:
  std::string begin_events() override { return writer_.begin(); }
  std::string piece_events(const ChatPiece& piece) override { return writer_.piece(piece); }
  std::string end_events(const TokenUsage& usage) override {
    std::string events = writer_.end(usage, seconds_since_1970(), token_members());
    keep();
    return events;
  }
  std::string fail_events(const Call&, const ApiError& error) override {
    cancelled_ = error.code == cancelled;
    std::string events = writer_.fail(error, cancelled_);
    keep();
    return events;
  }
  std::string object() const override { return writer_.object(); }
  bool fails_with_object() const override { return cancelled_; }

  void keep() {
    if (!store_) return;
    stored_.object = writer_.object();
    stored_.output = writer_.output();
    store_->put(stored_, true);
    kept_ = true;
  }

  ResponseWriter writer_;
  ResponseStore* store_;
  StoredResponse stored_;
  bool kept_ = false, cancelled_ = false;
};

void answer_response(const RouteContext& context, const Api& api, ResponseStore& store,
                     const std::shared_ptr<Call>& call) {
  const auto request = read_fields<ResponsesRequest>(*call, call->body(), rules_of(context.config));
  const ResponsesFields& fields = request.fields;
  const std::string owner = call->admission().key_id;
  const bool enabled = context.config.enable_response_store;
  if (!enabled && (fields.previous_response_id || !fields.conversation.is_null() || fields.store.value_or(false)))
    refuse(fields.previous_response_id    ? "previous_response_id"
           : fields.store.value_or(false) ? "store"
                                          : "conversation",
           "this server stores no responses", "send the whole conversation as input");
  Value history = Value::list();
  const auto hold = [&call](const Value& items) { call->exchange().hold(memory_of(items)); };
  if (fields.previous_response_id) history = store.history(*fields.previous_response_id, owner, hold);
  if (!fields.conversation.is_null()) history = store.conversation(fields.conversation_id(), owner, hold);
  const bool kept = enabled && fields.store.value_or(context.config.default_store_responses);

  ConversationAnswer answer = prepare_conversation(context, api, *call, chat_request_of(request, history));
  ResponseWriter writer(response_head(request, answer.model->id, seconds_since_1970(), kept,
                                      {.temperature = answer.sampling().temperature, .top_p = answer.sampling().top_p}),
                        answer.reading->top_logprobs.has_value());
  StoredResponse stored{.id = writer.head().id,
                        .owner = owner,
                        .object = writer.object(),
                        .previous = fields.previous_response_id.value_or(""),
                        .conversation = fields.conversation_id(),
                        .input = items_with_ids(input_items(fields.input)),
                        .output = "[]"};
  if (kept)
    store.begin(stored, [&jobs = context.jobs, id = call->id()] {
      jobs.cancel(id, {.status = 499, .message = "The response was cancelled.", .code = cancelled});
    });
  auto written = std::make_unique<ResponseAnswer>(answer, std::move(writer), request.generation,
                                                  kept ? &store : nullptr, std::move(stored));
  context.jobs.start(call, answer.model, std::move(answer.parts), std::move(written));
}

[[noreturn]] void refuse_unknown(const std::string& id) {
  throw Refusal({.status = 404,
                 .message = str("Response with id '", id, "' not found."),
                 .code = "response_not_found",
                 .param = "response_id"});
}

StoredResponse stored_response(ResponseStore& store, const Call& call) {
  const std::string id = call.parameter("id");
  std::optional<StoredResponse> found = store.find(id, call.admission().key_id);
  if (!found) refuse_unknown(id);
  return *std::move(found);
}

// The value of a parameter of the query; empty: it is not there.
std::string query_value(const HttpRequest& request, std::string_view name) {
  std::string_view rest = request.query;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) {
      const auto value = percent_decoded(one.substr(name.size() + 1));
      if (!value) refuse(std::string(name), "is not percent-encoded text");
      return *value;
    }
  }
  return "";
}

void list_input_items(ResponseStore& store, Call& call) {
  const StoredResponse response = stored_response(store, call);
  const std::string limit_text = query_value(call.request(), "limit"), order = query_value(call.request(), "order");
  int64_t limit = 20;
  if (!limit_text.empty()) {
    const char* const end = limit_text.data() + limit_text.size();
    const auto read = std::from_chars(limit_text.data(), end, limit);
    if (read.ec != std::errc() || read.ptr != end || limit < 1 || limit > 100)
      refuse("limit", "'" + limit_text + "' is not an integer from 1 to 100");
  }
  if (!order.empty() && order != "asc" && order != "desc") refuse("order", "'" + order + "' is not asc or desc");
  call.respond_json(200, input_items_page(response, limit, order == "asc", query_value(call.request(), "after")));
}

}  // namespace

void add_response_routes(Api& api, const RouteContext& context, ResponseStore& store) {
  api.serve("POST /v1/responses",
            [&api, &store, context](std::shared_ptr<Call> call) { answer_response(context, api, store, call); });
  api.serve("GET /v1/responses/{id}",
            [&store](std::shared_ptr<Call> call) { call->respond_json(200, stored_response(store, *call).object); });
  api.serve("DELETE /v1/responses/{id}", [&store](std::shared_ptr<Call> call) {
    const StoredResponse response = stored_response(store, *call);
    store.cancel(response.id, response.owner);
    store.erase(response.id, response.owner);
    call->respond_json(200, str(R"({"id":)", json_text(response.id), R"(,"object":"response","deleted":true})"));
  });
  api.serve("POST /v1/responses/{id}/cancel", [&store](std::shared_ptr<Call> call) {
    const StoredResponse response = stored_response(store, *call);
    store.cancel(response.id, response.owner);
    call->respond_json(200, stored_response(store, *call).object);
  });
  api.serve("GET /v1/responses/{id}/input_items",
            [&store](std::shared_ptr<Call> call) { list_input_items(store, *call); });
}

}  // namespace easydel::server
