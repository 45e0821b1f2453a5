// POST /v1/admin/weights: another folder's weights answer from now on.
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/server/encode_queue.h"
#include "easydel/server/route_context.h"
#include "easydel/server/served_folder.h"
#include "easydel/server/weights_request.h"

namespace easydel::server {
namespace {

// The new fingerprint.
std::string update_encoder(const RouteContext& context, ServedEncoder& encoder, const std::filesystem::path& folder,
                           bool abort) {
  const std::function<std::string()> use = encoder.load_weights(folder);
  std::optional<ApiError> ended;
  if (abort) ended = ApiError{.status = 503, .message = "An administrator ended the request.", .code = "cancelled"};
  std::string fingerprint;
  context.encodes.change_weights(encoder, ended, [&] { fingerprint = use(); });
  return fingerprint;
}

void update_weights(const RouteContext& context, ModelList& models, std::mutex& updating, Call& call) {
  const auto request = read_fields<UpdateWeightsRequest>(call, call.body(), rules_of(context.config));
  if (!context.config.weights_dir)
    throw Refusal({.status = 403,
                   .message = "This server takes no weights from requests (set serve.weights_dir).",
                   .code = "weights_disabled"});
  const std::filesystem::path folder = folder_below(*context.config.weights_dir, request.path, "path", "weights");
  // The new weights are loaded and running requests end while this is held.
  const std::unique_lock alone(updating, std::try_to_lock);
  if (!alone)
    throw Refusal({.status = 409,
                   .message = "Weights are being changed already. Try again later.",
                   .code = "weights_busy",
                   .retry_after_seconds = 1});
  ServedModel model = *models.find(request.model);
  if (!model.adapter.empty())
    refuse("model", str("'", model.id, "' is an adapter"), "name its model, '" + model.parent + "'");
  const std::string before = model.fingerprint;
  const auto publish = [&] {
    if (model.engine) model.weights = model.engine->hold_weights().number;
    models.replace(model);
  };
  try {
    model.fingerprint = model.encoder ? update_encoder(context, *model.encoder, folder, request.abort_requests)
                                      : model.engine->update_weights(folder, request.abort_requests);
  } catch (const UserError& error) {
    publish();
    refuse_folder(error, folder, request.path, "path");
  } catch (...) {
    publish();
    throw;
  }
  model.root = request.path;
  publish();
  log::info("serve: new weights of '", model.id, "', fingerprint ", model.fingerprint);
  Value out = Value::map();
  out.set("model", Value::text(model.id));
  out.set("path", Value::text(request.path));
  out.set("fingerprint", Value::text(model.fingerprint));
  out.set("previous_fingerprint", Value::text(before));
  call.respond_json(200, to_json(out));
}

}  // namespace

void add_weights_route(Api& api, const RouteContext& context, ModelList& models) {
  const auto updating = std::make_shared<std::mutex>();
  api.serve("POST /v1/admin/weights", [context, &models, updating](std::shared_ptr<Call> call) {
    update_weights(context, models, *updating, *call);
  });
}

}  // namespace easydel::server
