// The ranks of a run as an engine uses them: the model on the engine's own mesh, the first rank's engine, and what the
// others do meanwhile.
#pragma once

#include <functional>
#include <memory>

#include "easydel/collective/team.h"
#include "easydel/elarge/elarge.h"
#include "easydel/elarge/engine_followers.h"
#include "easydel/esurge/connect_ranks.h"
#include "easydel/models/model.h"

namespace easydel::elarge {

class EngineRanks {
 public:
  // `team`: of the run.
  EngineRanks(const Config& config, std::shared_ptr<const collective::Team> team);

  using Load = std::function<std::shared_ptr<models::Model>(std::shared_ptr<const collective::Team> team)>;
  // The model on the engine's mesh: `held`, laid out anew without the disk, or what `load` gives if it is null, which
  // is called once. Collective. UserError: the model neither generates nor embeds or classifies texts, or engine_mesh()
  // refuses.
  std::shared_ptr<models::Model> model(const std::shared_ptr<models::Model>& held, const Load& load);
  // On the first rank: connects the others. They call join().
  std::shared_ptr<esurge::RankLeader> lead();
  // On the others; this must outlive what it returns.
  std::unique_ptr<EngineFollower> join();

 private:
  const Config& config_;
  std::shared_ptr<const collective::Team> team_, own_;  // own_: on the engine's mesh
  std::shared_ptr<models::Model> model_;
  bool loaded_ = false;  // model_, by `load`
};

}  // namespace easydel::elarge
