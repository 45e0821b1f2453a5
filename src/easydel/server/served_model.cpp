#include "easydel/server/served_model.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/server/api_error.h"
#include "easydel/server/special_text_filter.h"
#include "easydel/text/chat_capabilities.h"

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

void set_tokenizer(ServedModel& model, std::shared_ptr<const text::Tokenizer> tokenizer) {
  model.tokenizer = std::move(tokenizer);
  model.special_texts = std::make_shared<const std::vector<std::string>>(special_texts(*model.tokenizer));
  const std::optional<std::string> chat_template = model.tokenizer->chat_template();
  model.renderer = nullptr;
  if (!chat_template) return;
  model.renderer = std::make_shared<text::ChatRenderer>(model.tokenizer);
  model.takes_content_parts = text::capabilities_of(text::ChatTemplate(*chat_template)).content_parts;
  model.format = text::detect_output_format(*chat_template, model.model_type);
  if (model.config.tool_parser) model.format.tools = *model.config.tool_parser;
  if (model.config.reasoning_parser) model.format.reasoning = *model.config.reasoning_parser;
}

ServedModel with_adapter(const ServedModel& model, const esurge::AdapterInfo& adapter) {
  ServedModel out = model;
  out.id = out.root = out.adapter = adapter.name;
  out.parent = model.id;
  out.fingerprint += str("-", adapter.name, "-", adapter.version);
  if (!adapter.tokenizer) return out;
  const text::OutputFormat format = out.format;
  set_tokenizer(out, adapter.tokenizer);
  if (model.renderer) out.format = format;
  return out;
}

std::vector<std::shared_ptr<const ServedModel>> ModelList::with_adapters() const {
  std::vector<std::shared_ptr<const ServedModel>> out;
  for (const auto& model : all()) {
    out.push_back(model);
    if (!model->engine) continue;
    for (const esurge::AdapterInfo& adapter : model->engine->adapters()) out.push_back(adapted(model, adapter));
  }
  return out;
}

std::shared_ptr<const ServedModel> ModelList::adapted(const std::shared_ptr<const ServedModel>& model,
                                                      const esurge::AdapterInfo& adapter) const {
  const auto make = [&] { return std::make_shared<const ServedModel>(with_adapter(*model, adapter)); };
  if (!adapter.tokenizer) return make();
  std::lock_guard lock(mutex_);
  // Few are loaded at a time; those that are gone go when there are many.
  constexpr size_t most = 64;
  if (adapted_.size() > most) adapted_.clear();
  Adapted& entry = adapted_[adapter.version];
  if (entry.model != model) entry = {model, make()};
  return entry.adapted;
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
