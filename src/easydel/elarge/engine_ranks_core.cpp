#include "easydel/elarge/engine_ranks.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/elarge/engine_mesh.h"
#include "easydel/elarge/load_options.h"
#include "easydel/elarge/served_model.h"
#include "easydel/nn/parameter.h"
#include "easydel/tensor/threads.h"

namespace easydel::elarge {
namespace {

class FollowerOnRank final : public EngineFollower {
 public:
  FollowerOnRank(std::shared_ptr<const models::Model> model, esurge::RankEnd end)
      : model_(std::move(model)), end_(std::move(end)) {}
  void follow() override {
    tensor::set_threads(threads_);
    esurge::follow_steps(model_, *end_.connection, end_.follower);
  }
  void stop() override { end_.connection->end(); }

 private:
  const std::shared_ptr<const models::Model> model_;
  const esurge::RankEnd end_;
  const int threads_ = tensor::threads();
};

// Data parts compute different sequences, or none, in a step: nothing may be exchanged between them.
void check_parts(const models::Model& model, const std::string& data_axis) {
  if (model.team().mesh().size(data_axis) == 1) return;
  for (const nn::Entry& entry : model.parameters().entries()) {
    const mesh::Axes axes = mesh::axes_of(entry.layout);
    if (std::ranges::find(axes, data_axis) != axes.end())
      refuse("sharding.partition_rules",
             str(entry.path, " is cut over ", data_axis, ", which is not built yet for the engine"),
             "cut weights over tp alone");
  }
}

}  // namespace

EngineRanks::EngineRanks(const Config& config, std::shared_ptr<const collective::Team> team)
    : config_(config), team_(std::move(team)) {}

std::shared_ptr<models::Model> EngineRanks::model(const std::shared_ptr<models::Model>& held, const Load& load) {
  if (!own_) {
    own_ = team_->on_mesh(engine_mesh(config_, team_->size()), config_.esurge.distributed_step_timeout_s);
    // Ranks make groups in one order, which engines that run at the same time would not keep.
    for (const std::string& axis : own_->mesh().names()) own_->group({axis});
    own_->all();
  }
  if (held)
    model_ = models::lay_out_anew(*held, own_, config_.sharding.rules()), loaded_ = false;
  else if (!loaded_)
    model_ = load(own_), loaded_ = true;
  if (!is_encoder(*model_)) model_->head();
  check_parts(*model_, config_.esurge.data_parallelism_axis);
  return model_;
}

std::shared_ptr<esurge::RankLeader> EngineRanks::lead() {
  return esurge::connect_ranks(*team_, own_->mesh(), config_.esurge, mesh::read_world()).leader;
}

std::unique_ptr<EngineFollower> EngineRanks::join() {
  esurge::RankEnd end = esurge::connect_ranks(*team_, own_->mesh(), config_.esurge, mesh::read_world());
  end.follower.load_model = [this](const std::filesystem::path& folder) {
    auto out = models::load_model(folder, load_options(config_, config_.model, "model", false, own_));
    check_parts(*out, config_.esurge.data_parallelism_axis);
    return out;
  };
  return std::make_unique<FollowerOnRank>(model_, std::move(end));
}

}  // namespace easydel::elarge
