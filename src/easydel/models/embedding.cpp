#include "easydel/models/embedding.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/config_reader.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

nn::Pooling pooling_of(const Value& document, const ConfigReader& config) {
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
  if (mode == "pooling_mode_weightedmean_tokens" || mode == "weightedmean") return nn::Pooling::weighted_mean;
  if (mode == "pooling_mode_max_tokens" || mode == "max") return nn::Pooling::max;
  config.refuse_key(mode.starts_with("pooling_mode") ? mode : "pooling_mode", str("'", mode, "' is not built yet"),
                    "built: cls, mean, lasttoken, weightedmean, max");
}

void read_pooling(const fs::path& file, EmbeddingSpec& spec) {
  const Value document = parse_file(file);
  const ConfigReader config(document, FilePlace{file.string()});
  spec.pooling = pooling_of(document, config);
  spec.pools_prompt = config.boolean("include_prompt", true);
  const bool by_all = spec.pooling == nn::Pooling::weighted_mean || spec.pooling == nn::Pooling::max;
  if (!spec.pools_prompt && by_all)
    config.refuse_key("include_prompt", "is false, which is not built yet for weightedmean and max", "set it to true");
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
      read_pooling(model.folder() / config.text("path", "") / "config.json", spec);
    else if (kind == "Normalize")
      spec.normalized = true;
    else if (kind != "Transformer")
      config.refuse_key("type", str("'", type, "' is not built yet"), "built: Transformer, Pooling, Normalize");
  }
  return spec;
}

void write_embedding(const EmbeddingSpec& spec, int64_t size, int64_t max_tokens, const std::vector<int64_t>& prefixes,
                     const fs::path& folder) {
  Value modules = Value::list();
  const auto add = [&](const std::string& kind, const std::string& path) {
    const size_t index = modules.items.size();
    Value module = Value::map();
    module.set("idx", Value::integer(int64_t(index)));
    module.set("name", Value::text(str(index)));
    module.set("path", Value::text(path));
    module.set("type", Value::text("sentence_transformers.models." + kind));
    modules.items.push_back(std::move(module));
  };
  add("Transformer", "");
  add("Pooling", "1_Pooling");
  if (spec.normalized) add("Normalize", "2_Normalize");
  files::write(folder / "modules.json", to_json(modules, 2) + "\n");

  Value pooling = Value::map();
  pooling.set("word_embedding_dimension", Value::integer(size));
  for (const auto& [key, way] : {std::pair{"pooling_mode_cls_token", nn::Pooling::first},
                                 std::pair{"pooling_mode_mean_tokens", nn::Pooling::mean},
                                 std::pair{"pooling_mode_lasttoken", nn::Pooling::last},
                                 std::pair{"pooling_mode_weightedmean_tokens", nn::Pooling::weighted_mean},
                                 std::pair{"pooling_mode_max_tokens", nn::Pooling::max}})
    pooling.set(key, Value::boolean(spec.pooling == way));
  pooling.set("include_prompt", Value::boolean(true));
  files::make_directories(folder / "1_Pooling");
  files::write(folder / "1_Pooling" / "config.json", to_json(pooling, 2) + "\n");

  if (max_tokens > 0) {
    Value lengths = Value::map();
    lengths.set("max_seq_length", Value::integer(max_tokens));
    lengths.set("do_lower_case", Value::boolean(false));
    files::write(folder / "sentence_bert_config.json", to_json(lengths, 2) + "\n");
  }
  if (prefixes.empty()) return;
  Value config = parse_file(folder / "config.json"), sizes = Value::list();
  for (const int64_t prefix : prefixes) sizes.items.push_back(Value::integer(prefix));
  config.set("matryoshka_dimensions", std::move(sizes));
  files::write(folder / "config.json", to_json(config, 2) + "\n");
}

int64_t hidden_size(const Model& model) {
  const c10::AutoGradMode no_grad(false);
  nn::Pass pass = nn::Pass::over({0, 1});
  return model.forward({.tokens = at::zeros({1}, at::kLong).to(model.device())}, pass).hidden.size(1);
}

Tensor embeddings(const EmbeddingSpec& spec, const Tensor& hidden, const Tensor& tokens, const nn::Pass& pass) {
  const Tensor pooled = nn::pool(hidden, spec.pooling, tokens, pass).to(at::kFloat);
  if (!spec.normalized) return pooled;
  return pooled / at::linalg_vector_norm(pooled, 2, {1}, /*keepdim=*/true).clamp_min(1e-12);
}

Tensor embeddings_after_prompts(const EmbeddingSpec& spec, const Tensor& hidden, const Tensor& tokens,
                                const nn::Pass& pass, const std::vector<int64_t>& prompt_tokens) {
  const std::vector<int64_t>& ends = pass.stream().cu_seqlens;
  std::vector<int64_t> rows, begins = {0};
  std::vector<float> shares;
  for (size_t i = 0; i < prompt_tokens.size(); ++i) {
    const int64_t begin = ends[i], end = ends[i + 1];
    const bool any = begin + prompt_tokens[i] < end;
    for (int64_t row = any ? begin + prompt_tokens[i] : begin; row < (any ? end : begin + 1); ++row)
      rows.push_back(row);
    begins.push_back(std::ssize(rows));
    shares.push_back(any || spec.pooling == nn::Pooling::first ? 1 : 0);
  }
  const Tensor kept = at::tensor(rows, at::kLong).to(hidden.device());
  const Tensor scale = at::tensor(shares, at::kFloat).to(hidden.device()).unsqueeze(1);
  return embeddings(spec, hidden.index_select(0, kept), tokens.index_select(0, kept.to(tokens.device())),
                    nn::Pass::over(begins)) *
         scale;
}

}  // namespace easydel::models
