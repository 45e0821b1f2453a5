#include "easydel/server/served_model.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/server/api_error.h"

namespace easydel::server {

void ModelList::add(ServedModel model) {
  std::lock_guard lock(mutex_);
  models_.push_back(std::make_shared<const ServedModel>(std::move(model)));
}

std::vector<std::shared_ptr<const ServedModel>> ModelList::all() const {
  std::lock_guard lock(mutex_);
  return models_;
}

void ModelList::replace(ServedModel model) {
  std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(models_, model.id, [](const auto& one) { return one->id; });
  check(at != models_.end(), "server: there is no model '", model.id, "'");
  *at = std::make_shared<const ServedModel>(std::move(model));
}

ServedModel with_adapter(const ServedModel& model, const esurge::AdapterInfo& adapter) {
  ServedModel out = model;
  out.id = out.root = out.adapter = adapter.name;
  out.parent = model.id;
  out.fingerprint += str("-", adapter.name, "-", adapter.version);
  return out;
}

std::vector<std::shared_ptr<const ServedModel>> ModelList::with_adapters() const {
  std::vector<std::shared_ptr<const ServedModel>> out;
  for (const auto& model : all()) {
    out.push_back(model);
    if (!model->engine) continue;
    for (const esurge::AdapterInfo& adapter : model->engine->adapters())
      out.push_back(std::make_shared<const ServedModel>(with_adapter(*model, adapter)));
  }
  return out;
}

std::shared_ptr<const ServedModel> ModelList::find(const std::optional<std::string>& name) const {
  const auto models = all();
  if (models.empty())
    throw Refusal({.status = 503,
                   .message = "The model is being loaded. Try again later.",
                   .code = "loading",
                   .retry_after_seconds = 1});
  if (!name) return models.front();
  for (const auto& model : models)
    if (model->id == *name) return model;
  std::vector<std::string> names;
  for (const auto& model : with_adapters()) {
    if (model->id == *name) return model;
    names.push_back(model->id);
  }
  throw Refusal({.status = 404,
                 .message = str("Model '", *name, "' not found. Available: ", join(names, ", ")),
                 .code = "model_not_found",
                 .param = "model"});
}

}  // namespace easydel::server
