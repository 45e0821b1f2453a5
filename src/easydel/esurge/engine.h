// The engine: many requests at once, on a thread that owns the model. No torch in this header.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "easydel/esurge/adapter_info.h"
#include "easydel/esurge/held_weights.h"
#include "easydel/esurge/step_engine.h"

namespace easydel::esurge {

class Engine {
 public:
  // UserError as StepEngine. The thread starts at once.
  explicit Engine(EngineSetup setup);
  // As terminate().
  ~Engine();

  // All of these from any thread.
  //
  // The listener is called on a thread of its own, which steps never wait for: results of a request that were not
  // fetched when the next one comes are joined. UserError: the request cannot be served.
  RequestId add(Request request, OnOutput listener);
  void abort(RequestId id);
  // No step is made until resume().
  void pause();
  void resume();
  // Finishes what is known, and refuses what is new. Returns when it is finished.
  void drain();
  // Aborts what is running, whose listeners are called a last time, ends the threads, and refuses all that comes. Not
  // to be called by a listener.
  void terminate();

  // Writes the prefix cache to a folder between two steps, as StepEngine does; returns when it is written.
  void save_prefix_cache(const std::filesystem::path& folder);
  // Forgets what no running request shares of the prefix cache; returns when it is forgotten.
  void reset_prefix_cache();

  // Changes what answers, without a moment at which nothing is accepted: requests that are known finish with the
  // present weights, or are aborted; those that come meanwhile wait. Then `make` is called on the thread of steps,
  // between two of them: it may change the weights of the present model in place (on one rank), or give another model
  // of the same shape. Returns when it is done. What `make` throws comes back, and the present weights stay; UserError
  // as StepEngine::await_new_weights and take_new_weights.
  void update_model_weights(const std::function<NewWeights()>& make, KnownRequests known = KnownRequests::finish);
  // The same for the weights of the present model, which `change` changes in place (training); it returns their
  // fingerprint. On several ranks the others call FollowerOptions::change_weights at the same time, so that both may be
  // collective; an error of one of them ends the engine, whose weights would no longer be those of one model.
  void change_model_weights(const std::function<std::string()>& change, KnownRequests known = KnownRequests::finish);
  // Lets the model and all pages go, so that their memory is free if nobody else has the model; the engine is usable
  // again after update_model_weights(), for which requests wait. UserError: a request or an adapter needs the model, or
  // there are several ranks.
  void release_model_state();
  // For requests that belong together.
  HeldWeights hold_weights() const;

  // Loads an adapter from PEFT's folder while requests run, on the caller's thread; those that name it
  // (sampling.adapter) are answered with it. With `replace` a name that is there gets a new version: requests that are
  // known keep the one that they began with. A tokenizer in the folder that is not the engine's reads and writes the
  // texts of its requests. On several ranks each reads the folder, and no step is made meanwhile. UserError, and
  // nothing has changed on any rank: the name is there, or the folder does not fit the model. Returns the version.
  int64_t load_adapter(const std::string& name, const std::filesystem::path& folder, bool replace = false);
  // A weighted sum of adapters that are loaded, whose texts are the engine's tokenizer's; later changes of those do not
  // change it. UserError as models::Adapters::add_sum.
  int64_t add_adapter_sum(const std::string& name, models::AdapterSum::Kind kind,
                          const std::vector<models::AdapterSum::Share>& shares);
  // Refuses new requests that name it; those that are known finish with it. UserError: there is no such adapter.
  void unload_adapter(const std::string& name);
  std::vector<AdapterInfo> adapters() const;  // by name

  // Waits for the answer. A request that fails gives a RequestOutput with `error`.
  RequestOutput generate(Request request);
  std::vector<RequestOutput> generate(std::vector<Request> requests);
  // Log-probabilities of continuations, in the order of the requests, with the bits of generation::Scorer whatever else
  // runs. UserError: one of them cannot be scored; none is then.
  std::vector<generation::TokenScores> score(const std::vector<generation::ScoreRequest>& requests);
  // The vectors of texts, in their order, with the bits of each text alone, whatever else runs: embeddings, or scores
  // of classes (Request::pooled is set if it is not). UserError: one of them cannot be pooled, and none is then;
  // std::runtime_error: one has failed.
  std::vector<std::vector<float>> encode(std::vector<Request> texts);
  // The results as they come; returning false aborts the request. Called on the caller's thread. Returns the last one.
  RequestOutput stream(Request request, const std::function<bool(const RequestOutput& output)>& on_output);

  EngineMetrics metrics() const;
  EngineInfo info() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace easydel::esurge
