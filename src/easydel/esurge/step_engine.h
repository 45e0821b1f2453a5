// The engine without a thread of its own: requests come from any thread, and one thread calls step() again and again.
// Everything that is ATen happens inside step(). Engine (esurge/engine.h) is this with a thread. No torch in this
// header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/esurge/adapter_info.h"
#include "easydel/esurge/engine_options.h"
#include "easydel/esurge/metrics.h"
#include "easydel/esurge/request.h"
#include "easydel/esurge/results.h"
#include "easydel/models/lora_config.h"

namespace easydel::models {
class Model;
}

namespace easydel::esurge {

class RankLeader;

struct EngineSetup {
  std::shared_ptr<const models::Model> model = nullptr;
  std::shared_ptr<const text::Tokenizer> tokenizer = nullptr;  // null: prompts are ids, and results have no text
  EsurgeConfig config = {};
  // A small model with the same vocabulary that guesses tokens; null: they are looked up.
  std::shared_ptr<const models::Model> draft = nullptr;
  // What one of its guesses takes, as a share of a step of few rows. Null: by the operations of both models.
  std::optional<double> draft_price = std::nullopt;
  // Number of pages of each kind, instead of what the free memory allows.
  std::optional<int64_t> pages = std::nullopt;
  std::optional<std::string> chat_template = std::nullopt;  // instead of the tokenizer's
  // The model embeds or classifies texts (Request::pooled), each computed whole in one step, and generates nothing. It
  // needs no language head then, and may see both sides.
  bool pools_only = false;
  // Of the model (elarge/fingerprint.h); empty: results have none, and there is no prefix cache on the disk.
  std::string fingerprint = {};
  // The other ranks, which compute each step too (rank_follower.h); the model is cut over them. Null: this rank alone.
  std::shared_ptr<RankLeader> ranks = nullptr;
};

// What answers instead of the engine's model: one of the same shape and formats.
struct NewWeights {
  // On several ranks as the folder is loaded on the engine's mesh; without a folder whole, and not the present model:
  // every rank gets its part of it.
  std::shared_ptr<const models::Model> model = nullptr;
  std::string fingerprint = {};
  std::filesystem::path folder = {};  // that other ranks read them from; empty: they are in memory
  // Names the model as this rank computes it, instead of `fingerprint`. Null: that does.
  std::function<std::string(const models::Model& model)> fingerprint_of = {};
};
// What becomes of requests that are known when weights change.
enum class KnownRequests : uint8_t { finish, abort };

struct EngineInfo {
  std::string name = {};  // esurge_name, else the model's folder
  std::string fingerprint = {};
  int64_t vocabulary = 0;
  EngineOptions options = {};
};

// What has happened in all steps, for tests and `easydel probe engine`.
struct StepCounts {
  int64_t steps = 0;          // that computed something
  int64_t cut_prompts = 0;    // parts of prompts that did not reach their end
  int64_t copied_pages = 0;   // copied before they were written, states included
  int64_t passed_pages = 0;   // most pages of one sequence that windows or chunks had passed
  int64_t hits_in_pages = 0;  // requests whose cached tokens ended inside a page
  int64_t draft_bytes = 0;    // of the draft model's pages that hold memory now
};

// Called with what is new for a request; after `finished` never again. On the thread of step(); if it throws, its
// request ends with an error.
using OnOutput = std::function<void(RequestOutput output)>;

class StepEngine {
 public:
  // Loads the prefix cache of `esurge.prefix_cache_path`, if it fits. UserError: a model that does not generate, or
  // limits that do not fit it (engine_options.h).
  explicit StepEngine(EngineSetup setup);
  // Saves the prefix cache there; what goes wrong is logged.
  ~StepEngine();

  // From any thread. UserError: the request cannot be served; nothing has changed then.
  RequestId add(Request request, OnOutput on_output);
  // From any thread: no later step computes for it, and its last output comes with the next step. Unknown ids are
  // passed over.
  void abort(RequestId id);
  void abort_all();
  void pause();
  void resume();
  void drain();
  // Aborts all, and refuses what is added from now on.
  void end();
  int64_t requests() const;  // that are known
  // Until step() has a request to end whose time is up; nullopt: no request has a limit.
  std::optional<double> seconds_to_deadline() const;
  // From any thread: requests that are known are finished with the present weights, or aborted; those that come wait
  // for take_new_weights(). UserError: there are some to finish, and the engine is paused.
  void await_new_weights(KnownRequests known);
  bool has_left_weights() const;  // nothing is left that needs the present weights
  // On the thread of step(), between steps: lets the model and all pages go. Requests that come wait for
  // take_new_weights(). UserError: a request or an adapter needs the model, or there are several ranks.
  void release_model();
  // On the thread of step(), between steps, when has_left_weights(): what `make` gives answers from now on, also what
  // waits, with a prefix cache of its own. UserError: the model has another shape, or another rank cannot read it.
  // After an error the present weights stay, on all ranks, and get what waits.
  void take_new_weights(const std::function<NewWeights()>& make);

  // The same of the present weights, which `change` changes in place; it returns their fingerprint. On several ranks
  // all change their parts at the same time, and what one of them cannot do ends the engine.
  void change_weights(const std::function<std::string()>& change);

  // As Engine has them. From any thread; loading is the only work with tensors outside of step(). On several ranks
  // both belong to the thread of step(), between steps; UserError as well: another rank cannot load it.
  int64_t load_adapter(const std::string& name, const std::filesystem::path& folder, bool replace = false);
  int64_t add_adapter_sum(const std::string& name, models::AdapterSum::Kind kind,
                          const std::vector<models::AdapterSum::Share>& shares);
  void unload_adapter(const std::string& name);
  std::vector<AdapterInfo> adapters() const;

  // Computes one step. false: there was nothing to do, and there will be nothing before the next call of another
  // function.
  bool step();
  StepCounts counts() const;
  // Writes the prefix cache to a folder, as prefix_cache_path says. On the thread of step(), between steps. UserError:
  // the disk does not take it, or the engine has no fingerprint.
  void save_prefix_cache(const std::filesystem::path& folder) const;
  // As Engine has it. On the thread of step(), between steps.
  void reset_prefix_cache();

  EngineMetrics metrics() const;
  EngineInfo info() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace easydel::esurge
