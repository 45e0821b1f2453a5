// The models behind the routes, and the engine of a model as routes use it. No torch: esurge::Engine is put behind this
// interface where models are built (elarge), and by something simpler in tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "easydel/esurge/adapter_info.h"
#include "easydel/esurge/esurge_config.h"
#include "easydel/esurge/held_weights.h"
#include "easydel/esurge/metrics.h"
#include "easydel/esurge/request.h"
#include "easydel/esurge/results.h"
#include "easydel/generation/generation_config.h"
#include "easydel/server/served_encoder.h"
#include "easydel/text/output/output_parser.h"
#include "easydel/text/render_chat.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::server {

// All functions may be called from any thread.
class ServedEngine {
 public:
  using Listener = std::function<void(esurge::RequestOutput output)>;

  virtual ~ServedEngine() = default;
  // The listener is called on a thread of the engine's, one call at a time; results that it was too slow for are joined
  // (esurge/engine.h). After a result with `finished` it is not called again. UserError: the request cannot be served.
  virtual int64_t add(esurge::Request request, Listener listener) = 0;
  // No later step computes for it; its last result comes with the next step. Unknown ids are passed over.
  virtual void abort(int64_t id) = 0;
  virtual void pause() = 0;  // no step is made until resume()
  virtual void resume() = 0;
  virtual esurge::EngineMetrics metrics() const = 0;
  // As esurge::Engine has them. They return when it is done, which may take a step.
  virtual void save_prefix_cache(const std::filesystem::path& folder) = 0;
  virtual void reset_prefix_cache() = 0;
  virtual int64_t load_adapter(const std::string& name, const std::filesystem::path& folder, bool replace) = 0;
  virtual void unload_adapter(const std::string& name) = 0;
  virtual std::vector<esurge::AdapterInfo> adapters() const = 0;
  virtual esurge::HeldWeights hold_weights() const = 0;
  // Goes on with the weights of a folder, which are of a model of the same shape. Requests that are known finish with
  // the present ones first, or are aborted; those that come meanwhile wait. Returns the new fingerprint when it is
  // done. UserError: the present weights stay.
  virtual std::string update_weights(const std::filesystem::path& folder, bool abort) = 0;
};

struct ServedModel {
  std::string id = {};
  int64_t created = 0;  // seconds since 1970
  int64_t max_model_len = 0;
  std::string root = {};     // the folder or name that it was loaded from
  std::string parent = {};   // of an adapter: its base model; empty: none
  std::string adapter = {};  // that the engine answers with; empty: none
  std::string model_type = {};
  std::string fingerprint = {};
  int64_t weights = 0;  // number of those that have the fingerprint (esurge::HeldWeights)
  int64_t pages = 0;    // of the KV cache

  // Null in tests that generate nothing, and where there is an encoder.
  std::shared_ptr<ServedEngine> engine = nullptr;
  std::shared_ptr<ServedEncoder> encoder = nullptr;              // null: the model generates
  std::shared_ptr<const text::Tokenizer> tokenizer = nullptr;    // null: prompts are ids, and answers have no text
  std::shared_ptr<const text::ChatRenderer> renderer = nullptr;  // null: there is no chat template
  bool takes_content_parts = false;                              // the template takes lists of parts
  std::shared_ptr<const std::vector<std::string>> special_texts = nullptr;  // of the tokenizer's special tokens
  std::vector<std::string> extra_stops = {};   // strings that end every answer, besides those of the request
  text::OutputFormat format = {};              // how answers to conversations are parsed
  generation::GenerationConfig defaults = {};  // of generation_config.json
  esurge::EsurgeConfig config = {};            // the rules of the context and the number of sequences
};

// Texts are read and written with this tokenizer; its chat template renders conversations.
void set_tokenizer(ServedModel& model, std::shared_ptr<const text::Tokenizer> tokenizer);

// The model with one of its adapters, whose name it has, and the adapter's tokenizer if it has its own.
ServedModel with_adapter(const ServedModel& model, const esurge::AdapterInfo& adapter);

// The models that are there by now. Thread-safe.
class ModelList {
 public:
  ModelList() = default;
  explicit ModelList(std::vector<ServedModel> models) {
    for (ServedModel& model : models) add(std::move(model));
  }
  void add(ServedModel model);
  void replace(ServedModel model);                                        // the one of its name
  std::vector<std::shared_ptr<const ServedModel>> all() const;            // without adapters
  std::vector<std::shared_ptr<const ServedModel>> with_adapters() const;  // each model before its adapters
  // The model or adapter of this name; without a name the first model. Refusal: there is none (404, which names the
  // others), or none is loaded yet (503).
  std::shared_ptr<const ServedModel> find(const std::optional<std::string>& name) const;

 private:
  std::shared_ptr<const ServedModel> adapted(const std::shared_ptr<const ServedModel>& model,
                                             const esurge::AdapterInfo& adapter) const;

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const ServedModel>> models_;
  // Adapters with tokenizers of their own, by their versions: a template is read once. The model is that of the entry.
  struct Adapted {
    std::shared_ptr<const ServedModel> model, adapted;
  };
  mutable std::map<int64_t, Adapted> adapted_;
};

}  // namespace easydel::server
