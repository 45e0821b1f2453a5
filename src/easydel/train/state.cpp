#include "easydel/train/state.h"

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/train/checkpoints.h"
#include "easydel/train/ranks.h"
#include "easydel/train/state_files.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;

fs::path newest_in(const fs::path& folder) {
  if (files::exists(folder / "state.json")) return folder;
  if (const auto newest = Checkpoints(folder, std::nullopt, missing_in_state).newest()) return *newest;
  refuse(folder.string(), "there is no saved state", "give a folder with state.json, or with run-<step> below it");
}

}  // namespace

State State::create(Parts parts) {
  if (!parts.model) refuse("State.create", "there is no model", "give one that was loaded with training: true");
  if (parts.init_opt_state && !parts.tx)
    refuse("State.create", "init_opt_state needs an optimizer", "give tx, or call init_tx later");
  State state(std::move(parts));
  if (state.parts_.init_opt_state) state.init_tx(*state.parts_.tx);
  return state;
}

void State::init_tx(Transformation tx) {
  parts_.tx = std::move(tx);
  optimizer_ = std::make_shared<Optimizer>(parts_.model->parameters(), parts_.tx->optimizer);
}

Optimizer& State::optimizer() const {
  if (!optimizer_) refuse("State", "the optimizer has no state yet", "call init_tx first");
  return *optimizer_;
}

void State::apply_gradients() {
  Optimizer& optimizer = this->optimizer();
  const Ranks ranks(parts_.load.team);
  nn::ParameterTable& parameters = parts_.model->parameters();
  ranks.reduce_gradients(parameters);
  if (parts_.tx->clip_grad)
    if (const double factor = clip_factor(ranks.gradient_norm(parameters), *parts_.tx->clip_grad); factor < 1)
      optimizer.scale_gradients(factor);
  optimizer.step(parts_.tx->schedule.at(parts_.step));
  ++parts_.step;
}

void State::apply_gradients(const std::map<std::string, Tensor>& gradients) {
  optimizer().drop_gradients();
  for (const auto& [path, gradient] : gradients) {
    nn::Entry* const entry = parts_.model->parameters().find(path);
    if (!entry || !entry->trainable)
      refuse("State.apply_gradients", "there is no trained parameter '" + path + "'",
             "see `easydel describe model` for their names");
    if (gradient.sizes() != entry->shard.sizes())
      refuse("State.apply_gradients", easydel::str("the gradient of ", path, " is ", gradient.sizes(),
                                                   ", the parameter ", entry->shard.sizes()));
    entry->shard.mutable_grad() = gradient.detach().to(entry->shard.scalar_type()).clone();
  }
  apply_gradients();
}

fs::path State::save(const fs::path& folder, bool save_optimizer, models::DTypeSetting dtype) const {
  const Ranks ranks(parts_.load.team);
  RunState run;
  run.step = parts_.step;
  run.optimizer_steps = optimizer_ ? optimizer_->steps() : 0;
  run.has_optimizer = optimizer_ && save_optimizer;
  const auto& entries = parts_.model->parameters().entries();
  run.order_class = order_class(entries.empty() ? at::kFloat : entries.front().compute);
  const auto write = [&](const fs::path& into) {
    models::save_model(*parts_.model, into, dtype);
    if (run.has_optimizer) write_optimizer(ranks, into, *optimizer_);
    if (ranks.first()) write_state(into, run);
  };
  Checkpoints checkpoints(folder);
  if (ranks.first()) {
    checkpoints.lock();
    checkpoints.save(parts_.step, write);
  } else {
    write({});
  }
  return checkpoints.path_of(parts_.step);
}

State State::load(const fs::path& folder, const models::LoadOptions& options, std::optional<Transformation> tx) {
  const fs::path from = newest_in(folder);
  const RunState run = read_state(from);
  State state = create({.model = models::load_model(from, options), .load = options, .step = run.step, .tx = tx});
  if (!tx || run.optimizer_steps == 0) return state;
  state.init_tx(*tx);
  read_optimizer(from, options, *state.parts_.model, *state.optimizer_);
  state.optimizer_->set_steps(run.optimizer_steps);
  return state;
}

int64_t State::size() const {
  int64_t bytes = optimizer_ ? optimizer_->state_bytes() : 0;
  for (const nn::Entry& entry : parts_.model->parameters().entries()) bytes += int64_t(entry.shard.nbytes());
  return bytes;
}

}  // namespace easydel::train
