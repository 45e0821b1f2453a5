#include <stdexcept>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/collective/team.h"
#include "easydel/elarge/adapter_config.h"
#include "easydel/elarge/fingerprint.h"
#include "easydel/elarge/load_options.h"
#include "easydel/elarge/preload_checks_core.h"
#include "easydel/elarge/served_model.h"
#include "easydel/elarge/served_name.h"
#include "easydel/hub/resolve.h"
#include "easydel/models/model.h"
#include "easydel/server/route_context.h"
#include "easydel/text/remote/remote_tokenizer.h"

namespace easydel::elarge {
namespace {

class EngineBehindServer final : public server::ServedEngine {
 public:
  EngineBehindServer(std::shared_ptr<esurge::Engine> engine, const models::Model& model, const Config& config)
      : engine_(std::move(engine)), team_(model.parameters().entries().front().team), config_(config) {}
  int64_t add(esurge::Request request, Listener listener) override try {
    return engine_->add(std::move(request), std::move(listener));
  } catch (const UserError& error) {
    if (error.where != "esurge") throw;
    throw std::runtime_error(error.headline());  // its ranks are lost, which is not the request's fault
  }
  void abort(int64_t id) override { engine_->abort(id); }
  void pause() override { engine_->pause(); }
  void resume() override { engine_->resume(); }
  esurge::EngineMetrics metrics() const override { return engine_->metrics(); }
  void save_prefix_cache(const std::filesystem::path& folder) override { engine_->save_prefix_cache(folder); }
  void reset_prefix_cache() override { engine_->reset_prefix_cache(); }
  int64_t load_adapter(const std::string& name, const std::filesystem::path& folder, bool replace) override {
    return engine_->load_adapter(name, folder, replace);
  }
  void unload_adapter(const std::string& name) override { engine_->unload_adapter(name); }
  std::vector<esurge::AdapterInfo> adapters() const override { return engine_->adapters(); }
  esurge::HeldWeights hold_weights() const override { return engine_->hold_weights(); }
  std::string update_weights(const std::filesystem::path& folder, bool abort) override {
    const auto model = models::load_model(folder, load_options(config_, config_.model, "model", false, team_));
    std::string found = fingerprint(*model, formats_of(config_));
    engine_->update_model_weights(
        [&]() -> esurge::NewWeights {
          return {model, found, folder};
        },
        abort ? esurge::KnownRequests::abort : esurge::KnownRequests::finish);
    return found;
  }

 private:
  const std::shared_ptr<esurge::Engine> engine_;
  const std::shared_ptr<const collective::Team> team_;  // of the model
  const Config config_;
};

// The model of esurge.speculative_model.
std::shared_ptr<const models::Model> draft_model(const models::Model& model, const Config& config) {
  if (!config.esurge.speculative_model) return nullptr;
  const std::string key = "esurge.speculative_model";
  ModelConfig draft;
  draft.name_or_path = hub::resolve_model(*config.esurge.speculative_model, key).string();
  models::LoadOptions options = load_options(config, draft, key, false, collective::Team::alone());
  options.overrides = {};  // they are the other model's
  auto out = models::load_model(folder_of(draft, key), options);
  check_same_vocabulary(config.model, model.vocabulary(), draft, key, out->vocabulary(), "");
  return out;
}

}  // namespace

std::string formats_of(const Config& config) {
  return to_json(config::write(config.quantization)) + to_json(config::write(config.base_config.values));
}

std::shared_ptr<const text::Tokenizer> engine_tokenizer(std::shared_ptr<const text::Tokenizer> own,
                                                        const esurge::EsurgeConfig& config) {
  if (!own || !config.tokenizer_endpoint || !config.detokenizer_endpoint) return own;
  text::RemoteTokenizerOptions options{.encoder = *config.tokenizer_endpoint, .decoder = *config.detokenizer_endpoint};
  if (config.worker_startup_timeout) options.startup_seconds = *config.worker_startup_timeout;
  return text::remote_tokenizer(std::move(own), options);
}

esurge::EngineSetup engine_setup(std::shared_ptr<const models::Model> model,
                                 std::shared_ptr<const text::Tokenizer> tokenizer, const Config& config) {
  esurge::EngineSetup setup{.model = std::move(model),
                            .tokenizer = engine_tokenizer(std::move(tokenizer), config.esurge),
                            .config = config.esurge};
  const models::Task task = setup.model->task();
  setup.pools_only = task == models::Task::base || task == models::Task::sequence_classification;
  setup.draft = draft_model(*setup.model, config);
  setup.fingerprint = fingerprint(*setup.model, formats_of(config));
  return setup;
}

std::shared_ptr<esurge::Engine> make_engine(esurge::EngineSetup setup, const Config& config) {
  auto engine = std::make_shared<esurge::Engine>(std::move(setup));
  for (const NamedAdapter& one : named_adapters(config)) {
    if (one.sum)
      engine->add_adapter_sum(one.name, *one.sum, one.shares);
    else
      engine->load_adapter(one.name, one.folder);
  }
  return engine;
}

void update_model_weights(esurge::Engine& engine, std::shared_ptr<const models::Model> model, const Config& config) {
  engine.update_model_weights([&]() -> esurge::NewWeights {
    return {.model = model,
            .fingerprint_of = [&](const models::Model& own) { return fingerprint(own, formats_of(config)); }};
  });
}

server::ServedModel served_model(std::shared_ptr<esurge::Engine> engine,
                                 std::shared_ptr<const text::Tokenizer> tokenizer, const models::Model& model,
                                 const Config& config) {
  const esurge::EngineInfo& info = engine->info();
  server::ServedModel out;
  out.id = served_name(config);
  out.created = server::seconds_since_1970();
  out.max_model_len = info.options.max_model_len;
  out.root = config.model.name_or_path;
  out.fingerprint = info.fingerprint;
  out.pages = engine->metrics().cache_pages_total;
  out.defaults = generation::generation_config(model.folder());
  out.config = config.esurge;
  out.engine = std::make_shared<EngineBehindServer>(std::move(engine), model, config);
  out.model_type = model.model_type();
  if (tokenizer) server::set_tokenizer(out, std::move(tokenizer));
  return out;
}

}  // namespace easydel::elarge
