// Models that embed or classify whole texts, as the server takes them.
#include <algorithm>
#include <charconv>
#include <span>
#include <tuple>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/elarge/fingerprint.h"
#include "easydel/elarge/load_options.h"
#include "easydel/elarge/served_model.h"
#include "easydel/elarge/served_name.h"
#include "easydel/models/embedding.h"
#include "easydel/models/model.h"
#include "easydel/server/request_checker.h"
#include "easydel/server/route_context.h"

namespace easydel::elarge {
namespace {

using server::ClassActivation;

class EncoderBehindServer final : public server::ServedEncoder {
 public:
  EncoderBehindServer(esurge::EngineSetup setup, const Config& config)
      : config_(config), model_(setup.model), engine_(std::move(setup)) {
    classifies = model_->task() == models::Task::sequence_classification;
    vocabulary = model_->vocabulary();
    if (!classifies) pools_prompt = models::read_embedding(*model_).pools_prompt;
  }

  std::vector<server::Vector> encode(std::span<const server::EncodedText> texts) override {
    std::vector<esurge::Request> requests;
    for (const server::EncodedText& text : texts) {
      esurge::Request& request = requests.emplace_back();
      request.prompt = text.ids;
      request.pooled = esurge::PooledPrompt{text.type_ids, text.prompt_tokens};
    }
    return engine_.encode(std::move(requests));
  }

  std::function<std::string()> load_weights(const std::filesystem::path& folder) override {
    const auto team = model_->parameters().entries().front().team;
    std::shared_ptr<const models::Model> model =
        models::load_model(folder, load_options(config_, config_.model, "model", false, team));
    check_alike(*model);
    const std::string found = fingerprint(*model, formats_of(config_));
    return [this, folder, model, found] {
      engine_.update_model_weights([&]() -> esurge::NewWeights { return {model, found, folder}; });
      model_ = model;
      return found;
    };
  }

 private:
  // UserError: vectors of the other model would not be ones that clients of this one can use.
  void check_alike(const models::Model& other) const;

  const Config config_;
  std::shared_ptr<const models::Model> model_;
  esurge::Engine engine_;
};

void EncoderBehindServer::check_alike(const models::Model& other) const {
  const char* const remedy = "serve it as a model of its own";
  for (const nn::Entry& own : model_->parameters().entries()) {
    const nn::Entry* const given = other.parameters().find(own.path);
    if (!given) refuse("model", "the new weights have no " + own.path, remedy);
    if (given->shape != own.shape) refuse("model", "the new weights have another shape of " + own.path, remedy);
  }
  for (const nn::Entry& given : other.parameters().entries())
    if (!model_->parameters().find(given.path))
      refuse("model", "the new weights have a parameter more, " + given.path, remedy);
  const auto pooling = [&](const models::Model& model) {
    const models::EmbeddingSpec spec = models::read_embedding(model);
    return std::tuple(spec.pooling, spec.normalized, spec.pools_prompt);
  };
  if (!classifies && pooling(other) != pooling(*model_))
    refuse("model", "the folder says another pooling than that of the present weights",
           "copy modules.json and the folders that it names from them");
}

std::vector<std::string> labels_of(const models::Model& model) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < model.class_head()->spec().labels; ++i) out.push_back(str("LABEL_", i));
  const Value* const names = model.config().find("id2label");
  if (!names) return out;
  for (const auto& [number, name] : names->entries) {
    size_t at = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), at);
    if (read.ec == std::errc() && at < out.size()) out[at] = name.scalar;
  }
  return out;
}

// As the pipeline text-classification of transformers chooses it.
ClassActivation class_activation(const models::Model& model) {
  const std::string type = server::text_of(model.config(), "problem_type");
  if (type == "regression") return ClassActivation::identity;
  const bool apart = type == "multi_label_classification" || model.class_head()->spec().labels == 1;
  return apart ? ClassActivation::sigmoid : ClassActivation::softmax;
}

// A small file of sentence-transformers beside the model; null if it is not there.
Value side_file(const models::Model& model, const char* name) {
  const std::filesystem::path file = model.folder() / name;
  return model.folder().empty() || !files::is_file(file) ? Value() : parse_file(file);
}

constexpr const char* settings_file = "config_sentence_transformers.json";

// As CrossEncoder of sentence-transformers chooses it: by the name of a torch module, else sigmoid.
server::PairActivation pair_activation(const models::Model& model) {
  const Value settings = side_file(model, settings_file);
  std::string name = server::text_of(settings, "activation_fn");
  const Value* const section = server::member(model.config(), "sentence_transformers");
  if (name.empty() && section) name = server::text_of(*section, "activation_fn");
  if (name.empty()) name = server::text_of(model.config(), "sbert_ce_default_activation_function");
  if (name.empty()) name = "Sigmoid";
  if (const auto activation = server::find_pair_activation(name.substr(name.rfind('.') + 1))) return activation;
  refuse(FilePlace{(model.folder() / "config.json").string()},
         str("the activation of pairs' scores '", name, "' is not built yet"),
         "built: " + join(server::pair_activation_names(), ", "));
}

bool is_of_sentence_transformers(const models::Model& model) {
  return !model.folder().empty() && files::is_file(model.folder() / "modules.json");
}

std::optional<std::vector<int64_t>> dimensions_of(const models::Model& model) {
  const Value& config = model.config();
  if (const Value* const list = config.find("matryoshka_dimensions"); list && list->is_list()) {
    std::vector<int64_t> out;
    for (const Value& one : list->items)
      if (const auto number = one.as_int()) out.push_back(*number);
    return out;
  }
  const Value* const any = config.find("is_matryoshka");
  if (any && any->as_bool().value_or(false)) return std::vector<int64_t>{};
  return std::nullopt;
}

// What sentence-transformers puts before every text unless its caller names another prompt.
std::string default_prompt(const models::Model& model) {
  const Value settings = side_file(model, settings_file);
  const std::string name = server::text_of(settings, "default_prompt_name");
  const Value* const prompts = server::member(settings, "prompts");
  return name.empty() || !prompts ? "" : server::text_of(*prompts, name);
}

// The length that sentence-transformers cuts texts to, if it is less than the model's own.
int64_t max_tokens(const models::Model& model) {
  int64_t out = model.max_positions();
  for (const auto& [file, key] : {std::pair{"sentence_bert_config.json", "max_seq_length"},
                                  std::pair{"tokenizer_config.json", "model_max_length"}}) {
    const Value settings = side_file(model, file);
    const Value* const length = server::member(settings, key);
    const std::optional<int64_t> given = length ? length->as_int() : std::nullopt;
    if (given && *given > 0 && (out == 0 || *given < out)) out = *given;
  }
  return out;
}

}  // namespace

bool is_encoder(const models::Model& model) {
  return model.task() == models::Task::base || model.task() == models::Task::sequence_classification ||
         is_of_sentence_transformers(model);
}

server::ServedModel served_encoder(std::shared_ptr<const models::Model> model,
                                   std::shared_ptr<const text::Tokenizer> tokenizer, const Config& config,
                                   std::shared_ptr<esurge::RankLeader> ranks) {
  server::ServedModel out;
  out.id = served_name(config);
  out.created = server::seconds_since_1970();
  out.max_model_len = max_tokens(*model);
  out.root = config.model.name_or_path;
  out.fingerprint = fingerprint(*model, formats_of(config));
  out.config = config.esurge;
  out.tokenizer = engine_tokenizer(std::move(tokenizer), config.esurge);
  esurge::EngineSetup setup{
      .model = model, .config = config.esurge, .pools_only = true, .fingerprint = out.fingerprint, .ranks = ranks};
  if (!setup.config.max_model_len && out.max_model_len > 0) setup.config.max_model_len = out.max_model_len;
  auto encoder = std::make_shared<EncoderBehindServer>(std::move(setup), config);
  if (encoder->classifies) {
    encoder->labels = labels_of(*model);
    encoder->class_activation = class_activation(*model);
    encoder->pair_activation = pair_activation(*model);
  } else {
    encoder->prompt = default_prompt(*model);
    encoder->dimensions = dimensions_of(*model);
  }
  out.encoder = std::move(encoder);
  return out;
}

}  // namespace easydel::elarge
