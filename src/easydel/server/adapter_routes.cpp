// GET, POST and DELETE /v1/adapters, and vLLM's POST /v1/load_lora_adapter and /v1/unload_lora_adapter.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/server/adapter_request.h"
#include "easydel/server/route_context.h"
#include "easydel/server/served_folder.h"

namespace easydel::server {
namespace {

std::filesystem::path folder_of(const ServeConfig& config, const std::string& path) {
  if (!config.adapters_dir)
    throw Refusal({.status = 403,
                   .message = "This server loads no adapters from requests (set serve.adapters_dir).",
                   .code = "adapters_disabled"});
  return folder_below(*config.adapters_dir, path, "lora_path", "an adapter");
}

Value shown(const ServedModel& model, const esurge::AdapterInfo& adapter) {
  Value out = Value::map();
  out.set("name", Value::text(adapter.name));
  out.set("model", Value::text(model.id));
  out.set("version", Value::integer(adapter.version));
  out.set("requests", Value::integer(adapter.requests));
  return out;
}

void list_adapters(const RouteContext& context, Call& call) {
  Value list = Value::list(), out = Value::map();
  for (const auto& model : context.models.all())
    if (model->engine)
      for (const esurge::AdapterInfo& adapter : model->engine->adapters()) list.items.push_back(shown(*model, adapter));
  out.set("adapters", std::move(list));
  call.respond_json(200, to_json(out));
}

void load_adapter(const RouteContext& context, Call& call) {
  const auto request = read_fields<LoadAdapterRequest>(call, call.body(), rules_of(context.config));
  const std::filesystem::path folder = folder_of(context.config, request.lora_path);
  const auto model = context.models.find(request.base_model_name);
  if (!model->engine || !model->adapter.empty())
    refuse("base_model_name", str("'", model->id, "' takes no adapters"), "name a model that generates");
  for (const auto& other : context.models.with_adapters())
    if (other->id == request.lora_name && (!request.load_inplace || other->parent != model->id))
      throw Refusal({.status = 409,
                     .message = str("There is a model or adapter '", other->id,
                                    "' (set load_inplace to replace an "
                                    "adapter)."),
                     .code = "adapter_exists",
                     .param = "lora_name"});
  int64_t version = 0;
  try {
    version = model->engine->load_adapter(request.lora_name, folder, request.load_inplace);
  } catch (const UserError& error) {
    refuse_folder(error, folder, request.lora_path, "lora_path");
  }
  call.respond_json(200, to_json(shown(*model, {.name = request.lora_name, .version = version})));
}

void unload_adapter(const RouteContext& context, Call& call, const std::string& name) {
  for (const auto& model : context.models.all()) {
    if (!model->engine) continue;
    const auto adapters = model->engine->adapters();
    const auto found = std::ranges::find(adapters, name, &esurge::AdapterInfo::name);
    if (found == adapters.end()) continue;
    model->engine->unload_adapter(name);
    return call.respond_json(200, to_json(shown(*model, *found)));
  }
  throw Refusal({.status = 404, .message = str("There is no adapter '", name, "'."), .code = "adapter_not_found"});
}

}  // namespace

void add_adapter_routes(Api& api, const RouteContext& context) {
  const auto load = [context](std::shared_ptr<Call> call) { load_adapter(context, *call); };
  api.serve("GET /v1/adapters", [context](std::shared_ptr<Call> call) { list_adapters(context, *call); });
  api.serve("POST /v1/adapters", load);
  api.serve("POST /v1/load_lora_adapter", load);
  api.serve("DELETE /v1/adapters/{name}",
            [context](std::shared_ptr<Call> call) { unload_adapter(context, *call, call->parameter("name")); });
  api.serve("POST /v1/unload_lora_adapter", [context](std::shared_ptr<Call> call) {
    const auto request = read_fields<UnloadAdapterRequest>(*call, call->body(), rules_of(context.config));
    unload_adapter(context, *call, request.lora_name);
  });
}

}  // namespace easydel::server
