#include "easydel/elarge/engine_ranks.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "easydel/base/error.h"
#include "easydel/elarge/engine_mesh.h"
#include "easydel/elarge/load_options.h"
#include "easydel/elarge/served_model.h"
#include "easydel/nn/parameter.h"

namespace easydel::elarge {
namespace {

// While it lives, signals that end a run have no effect.
class IgnoredSignals {
 public:
  IgnoredSignals() {
    for (size_t i = 0; i < signals.size(); ++i) before_[i] = std::signal(signals[i], SIG_IGN);
  }
  ~IgnoredSignals() {
    for (size_t i = 0; i < signals.size(); ++i) std::signal(signals[i], before_[i]);
  }
  IgnoredSignals(const IgnoredSignals&) = delete;

 private:
  static constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP};
  std::array<void (*)(int), signals.size()> before_ = {};
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
  if (!own_) own_ = team_->on_mesh(engine_mesh(config_, team_->size()), config_.esurge.distributed_step_timeout_s);
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

void EngineRanks::follow() {
  const IgnoredSignals ignored;
  esurge::RankEnd end = esurge::connect_ranks(*team_, own_->mesh(), config_.esurge, mesh::read_world());
  end.follower.load_model = [this](const std::filesystem::path& folder) {
    auto out = models::load_model(folder, load_options(config_, config_.model, "model", false, own_));
    check_parts(*out, config_.esurge.data_parallelism_axis);
    return out;
  };
  esurge::follow_steps(model_, *end.connection, end.follower);
}

}  // namespace easydel::elarge
