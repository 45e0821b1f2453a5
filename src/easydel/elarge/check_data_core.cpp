#include "easydel/elarge/check_data_core.h"

#include <algorithm>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/hub/resolve.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/trainer.h"

namespace easydel::elarge {
namespace {

// The folder or file of a model's tokenizer. Only files that describe a model are fetched.
std::filesystem::path tokenizer_of(const ModelConfig& model, const std::string& section) {
  if (model.tokenizer)
    return hub::resolve_model(*model.tokenizer, section + ".tokenizer", "main", hub::ModelFiles::description);
  const std::string where = section + ".name_or_path";
  const models::FoundModel found =
      models::find_base(hub::resolve_model(model.name_or_path, where, model.revision, hub::ModelFiles::description),
                        where, hub::ModelFiles::description);
  return !found.adapter.empty() && text::Tokenizer::exists(found.adapter) ? found.adapter : found.model;
}

}  // namespace

void check_data(const Config& config, int64_t vocabulary, bool trains) {
  if (!config.trainer.method().built || (config.mixture.informs.empty() && config.mixture.evaluation.empty())) return;
  std::optional<log::Quiet> quiet;
  if (trains) quiet.emplace();
  train::check_data(
      config.trainer, config.mixture,
      text::Tokenizer::load(tokenizer_of(config.model, "model"), read_chat_template(config.model, "model")),
      vocabulary);
}

void check_same_vocabulary(const ModelConfig& model, int64_t model_vocabulary, const ModelConfig& side,
                           const std::string& section, int64_t side_vocabulary) {
  const std::filesystem::path own = tokenizer_of(model, "model"), other = tokenizer_of(side, section);
  const std::string where = section + ".name_or_path",
                    remedy = "both models score the same ids; give one that was made from the same model";
  if (own == other) return;
  if (!text::Tokenizer::exists(own) || !text::Tokenizer::exists(other)) {
    if (side_vocabulary != model_vocabulary)
      refuse(where, str("has a vocabulary of ", side_vocabulary, " tokens, and the model of ", model_vocabulary),
             remedy);
    return;
  }
  const auto ours = text::Tokenizer::load(own), theirs = text::Tokenizer::load(other);
  const text::TokenId ids = ours->id_limit();
  for (text::TokenId id = 0; id < std::min(ids, theirs->id_limit()); ++id)
    if (const std::string a = ours->token_of(id), b = theirs->token_of(id); a != b)
      refuse(where, str("has another vocabulary than the model: token ", id, " is '", b, "' there and '", a, "' here"),
             remedy);
  // Embeddings may be padded to different sizes, but each token needs a row.
  if (side_vocabulary < std::min<int64_t>(ids, model_vocabulary))
    refuse(where, str("has embeddings of ", side_vocabulary, " tokens; the tokenizer has ", ids), remedy);
}

}  // namespace easydel::elarge
