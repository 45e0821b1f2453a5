#include "easydel/models/embedding.h"

#include <ATen/ops/linalg_vector_norm.h>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/config_reader.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

nn::Pooling read_pooling(const fs::path& file) {
  const Value document = parse_file(file);
  const ConfigReader config(document, FilePlace{file.string()});
  std::vector<std::string> chosen;
  for (const auto& [key, value] : document.entries)
    if (key.starts_with("pooling_mode_") && value.as_bool().value_or(false)) chosen.push_back(key);
  if (const std::string mode = config.text("pooling_mode", ""); !mode.empty()) chosen = {mode};
  if (chosen.size() != 1)
    config.refuse_key("pooling_mode", str(chosen.size(), " ways of pooling are chosen"), "one is built at a time");
  const std::string& mode = chosen.front();
  if (mode == "pooling_mode_cls_token" || mode == "cls") return nn::Pooling::first;
  if (mode == "pooling_mode_mean_tokens" || mode == "mean") return nn::Pooling::mean;
  if (mode == "pooling_mode_lasttoken" || mode == "lasttoken") return nn::Pooling::last;
  config.refuse_key(mode.starts_with("pooling_mode") ? mode : "pooling_mode", str("'", mode, "' is not built yet"),
                    "built: cls, mean, lasttoken");
}

}  // namespace

EmbeddingSpec read_embedding(const Model& model) {
  EmbeddingSpec spec;
  spec.pooling = model.causal() ? nn::Pooling::last : nn::Pooling::mean;
  const fs::path file = model.folder() / "modules.json";
  if (model.folder().empty() || !files::is_file(file)) return spec;
  for (const Value& module : parse_file(file).items) {
    const ConfigReader config(module, FilePlace{file.string()});
    const std::string type = config.text("type", ""), kind = type.substr(type.rfind('.') + 1);
    if (kind == "Pooling")
      spec.pooling = read_pooling(model.folder() / config.text("path", "") / "config.json");
    else if (kind == "Normalize")
      spec.normalized = true;
    else if (kind != "Transformer")
      config.refuse_key("type", str("'", type, "' is not built yet"), "built: Transformer, Pooling, Normalize");
  }
  return spec;
}

Tensor embeddings(const EmbeddingSpec& spec, const Tensor& hidden, const Tensor& tokens, const nn::Pass& pass) {
  const Tensor pooled = nn::pool(hidden, spec.pooling, tokens, pass).to(at::kFloat);
  if (!spec.normalized) return pooled;
  return pooled / at::linalg_vector_norm(pooled, 2, {1}, /*keepdim=*/true).clamp_min(1e-12);
}

}  // namespace easydel::models
