// Weights that change while the engine runs.
#include <utility>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/esurge/step_engine_parts.h"
#include "easydel/esurge/weight_sources.h"
#include "easydel/models/model.h"
#include "easydel/models/spread_model.h"

namespace easydel::esurge {

void StepEngine::await_new_weights(KnownRequests known) {
  Parts& p = *parts_;
  const std::lock_guard lock(p.mutex);
  if (known == KnownRequests::abort)
    p.abort_all();
  else if (p.paused && !p.live.empty())
    refuse("model",
           str("the engine is paused, so its ", p.live.size(), " requests never finish with the present weights"),
           "resume it, or abort them");
  p.scheduler.await_new_weights();
}

bool StepEngine::has_left_weights() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->scheduler.has_left_weights();
}

void StepEngine::release_model() {
  Parts& p = *parts_;
  if (p.setup.ranks)
    refuse("model", "letting the weights of several ranks go is not built yet", "end the engine, and make another one");
  p.refuse_adapters();
  const std::lock_guard lock(p.mutex);
  if (!p.live.empty())
    refuse("model", str("the engine has ", p.live.size(), " requests, which need the weights"),
           "let them finish, or abort them");
  p.scheduler.await_new_weights();
  p.forget_pages();
  p.draft_pages_due = true;
  p.adapters.reset();
  p.setup.model.reset();
}

std::string StepEngine::Parts::read_on_ranks(const NewWeights& weights) const {
  runner.check_fits(*weights.model);
  const std::string why = setup.ranks->give(LoadWeights{weights.folder.string()});
  return why.empty() ? find_other_weights(*setup.ranks, *weights.model) : why;
}

std::string StepEngine::Parts::send_to_ranks(NewWeights& weights) const {
  if (weights.model == setup.model)
    refuse("model", "these are the engine's own weights, which several ranks change together",
           "use change_model_weights, or give another model or a folder");
  models::check_spreads(*setup.model, *weights.model);
  std::shared_ptr<const models::Model> own;
  const Value& config = weights.model->config();
  const std::string why = setup.ranks->give(ReceiveWeights{to_json(config)}, [&] {
    own = models::spread_from_first(*setup.model, config, weights.model.get());
  });
  runner.check_fits(*own);
  weights.model = std::move(own);
  return why;
}

void StepEngine::Parts::use_on_all_ranks(NewWeights& weights) {
  if (!setup.ranks) return runner.use(*weights.model);
  const bool from_memory = weights.folder.empty();
  std::string why;
  try {
    why = from_memory ? send_to_ranks(weights) : read_on_ranks(weights);
  } catch (const UserError&) {
    if (!has_lost_ranks()) setup.ranks->give(ChooseWeights{false});
    throw;
  }
  setup.ranks->give(ChooseWeights{why.empty()});
  if (!why.empty())
    refuse("model", "not all ranks can take the new weights: " + why,
           from_memory ? "give weights of the engine's model"
                       : "every rank reads the folder itself: give all of them the same one");
  runner.use(*weights.model);
}

void StepEngine::change_weights(const std::function<std::string()>& change) {
  Parts& p = *parts_;
  std::string fingerprint;
  const auto own = [&] { fingerprint = change(); };
  try {
    if (!p.setup.model) refuse("model", "the engine has let its model go", "update its weights");
    p.setup.ranks ? p.setup.ranks->give_to_all(ChangeWeights{}, own) : own();
  } catch (...) {
    const std::lock_guard lock(p.mutex);
    if (p.setup.model) p.scheduler.take_new_weights(true);
    throw;
  }
  const std::lock_guard lock(p.mutex);
  p.scheduler.take_new_weights(false);
  p.note_new_weights(std::move(fingerprint));
}

void StepEngine::Parts::note_new_weights(std::string fingerprint) {
  setup.fingerprint = info.fingerprint = std::move(fingerprint);
  for (const auto& [id, request] : live) request->fingerprint = info.fingerprint;
  if (!setup.config.silent_mode)
    log::info("esurge: new weights", info.fingerprint.empty() ? "" : ", fingerprint ", info.fingerprint);
}

void StepEngine::take_new_weights(const std::function<NewWeights()>& make) {
  Parts& p = *parts_;
  NewWeights weights;
  try {
    weights = make();
    if (weights.model != p.setup.model) p.refuse_adapters();
    p.use_on_all_ranks(weights);
    if (weights.fingerprint_of) weights.fingerprint = weights.fingerprint_of(*weights.model);
  } catch (...) {
    const std::lock_guard lock(p.mutex);
    if (p.setup.model) p.scheduler.take_new_weights(true);
    throw;
  }
  const std::lock_guard lock(p.mutex);
  p.scheduler.take_new_weights(false);
  if (weights.model != p.setup.model) p.adapters.reset();
  p.setup.model = std::move(weights.model);
  p.note_new_weights(std::move(weights.fingerprint));
}

}  // namespace easydel::esurge
