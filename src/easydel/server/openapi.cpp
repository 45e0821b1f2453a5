#include "easydel/server/openapi.h"

#include "easydel/base/document.h"
#include "easydel/config/section.h"
#include "easydel/server/adapter_request.h"
#include "easydel/server/api_key.h"
#include "easydel/server/embedding_request.h"
#include "easydel/server/messages_request.h"
#include "easydel/server/responses_request.h"
#include "easydel/server/routes.h"
#include "easydel/server/text_request.h"
#include "easydel/server/weights_request.h"

namespace easydel::server {
namespace {

Value object(std::initializer_list<std::pair<std::string_view, Value>> entries) {
  Value out = Value::map();
  for (const auto& [key, value] : entries) out.set(key, value);
  return out;
}

Value list_of(std::vector<Value> items) {
  Value out = Value::list();
  out.items = std::move(items);
  return out;
}

Value json_content(Value schema) { return object({{"application/json", object({{"schema", std::move(schema)}})}}); }

// Bodies whose fields are a table; others are any object.
Value body_schema(const Route& route) {
  if (route.path == "/v1/admin/keys") return config::json_schema(config::section_of<KeySettings>());
  if (route.path == "/v1/admin/weights") return config::json_schema(config::section_of<UpdateWeightsRequest>());
  if (route.path == "/v1/chat/completions") return config::json_schema(config::section_of<ChatRequest>());
  if (route.path == "/v1/completions") return config::json_schema(config::section_of<TextRequest>());
  if (route.path == "/tokenize") return config::json_schema(config::section_of<TokenizeRequest>());
  if (route.path == "/v1/unload_lora_adapter") return config::json_schema(config::section_of<UnloadAdapterRequest>());
  if (route.path == "/detokenize") {
    Value out = config::json_schema(config::section_of<DetokenizeRequest>());
    const Value ids = object({{"type", Value::text("array")}, {"items", object({{"type", Value::text("integer")}})}});
    out.find("properties")->set("tokens", ids);
    return out;
  }
  if (route.path == "/apply-template") {
    Value out = config::json_schema(config::section_of<ConversationFields>());
    out.find("properties")->set("model", object({{"type", Value::text("string")}}));
    return out;
  }
  if (route.path == "/v1/responses") return config::json_schema(config::section_of<ResponsesRequest>());
  if (route.path == "/v1/messages") return config::json_schema(config::section_of<MessagesRequest>());
  if (route.path == "/v1/messages/count_tokens") return config::json_schema(config::section_of<MessagesFields>());
  if (route.path == "/v1/embeddings") return config::json_schema(config::section_of<EmbeddingsRequest>());
  if (route.path == "/v1/rerank") return config::json_schema(config::section_of<RerankRequest>());
  if (route.path == "/v1/score") return config::json_schema(config::section_of<ScoreRequest>());
  if (route.path == "/v1/classify") return config::json_schema(config::section_of<ClassifyRequest>());
  if (route.scope == Scope::adapters) return config::json_schema(config::section_of<LoadAdapterRequest>());
  return object({{"type", Value::text("object")}});
}

Value error_answer() {
  return object({{"description", Value::text("The request was refused or failed.")},
                 {"content", json_content(object({{"$ref", Value::text("#/components/schemas/Error")}}))}});
}

Value operation(const Route& route) {
  Value out = object({{"summary", Value::text(std::string(route.summary))}});
  std::vector<Value> parameters;
  for (size_t at = route.path.find('{'); at != std::string_view::npos; at = route.path.find('{', at + 1))
    parameters.push_back(
        object({{"name", Value::text(std::string(route.path.substr(at + 1, route.path.find('}', at) - at - 1)))},
                {"in", Value::text("path")},
                {"required", Value::boolean(true)},
                {"schema", object({{"type", Value::text("string")}})}}));
  if (!parameters.empty()) out.set("parameters", list_of(std::move(parameters)));
  if (route.json_body)
    out.set("requestBody", object({{"required", Value::boolean(true)}, {"content", json_content(body_schema(route))}}));
  const bool other_type = route.path == "/metrics" || route.path == "/" || route.path == "/docs";
  Value answer = object({{"description", Value::text("The answer.")}});
  if (!other_type) answer.set("content", json_content(object({{"type", Value::text("object")}})));
  out.set("responses", object({{"200", std::move(answer)}, {"default", error_answer()}}));
  if (route.scope != Scope::none)
    out.set("security", list_of({object({{"bearer", Value::list()}}), object({{"header", Value::list()}})}));
  return out;
}

Value error_schema() {
  const Value text = object({{"type", Value::text("string")}});
  const Value text_or_null = object({{"type", list_of({Value::text("string"), Value::text("null")})}});
  return object({{"type", Value::text("object")},
                 {"properties", object({{"error", object({{"type", Value::text("object")},
                                                          {"properties", object({{"message", text},
                                                                                 {"type", text},
                                                                                 {"param", text_or_null},
                                                                                 {"code", text_or_null}})}})}})}});
}

}  // namespace

std::string openapi_document() {
  Value paths = Value::map();
  for (const Route& route : routes()) {
    std::string method;
    for (const char c : route.method) method += char(c + 32);
    Value path = paths.find(route.path) ? *paths.find(route.path) : Value::map();
    path.set(method, operation(route));
    paths.set(route.path, std::move(path));
  }
  const Value schemes = object(
      {{"bearer", object({{"type", Value::text("http")}, {"scheme", Value::text("bearer")}})},
       {"header",
        object({{"type", Value::text("apiKey")}, {"in", Value::text("header")}, {"name", Value::text("x-api-key")}})}});
  return to_json(object(
      {{"openapi", Value::text("3.1.0")},
       {"info", object({{"title", Value::text("EasyDeL")}, {"version", Value::text(EASYDEL_VERSION)}})},
       {"paths", std::move(paths)},
       {"components", object({{"schemas", object({{"Error", error_schema()}})}, {"securitySchemes", schemes}})}}));
}

}  // namespace easydel::server
