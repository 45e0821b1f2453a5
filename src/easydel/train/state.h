// A model, its optimizer and the number of updates, for custom training loops: EasyDeLState. The trainer's loop is
// train/trainer.h. Both save in the same format (train/state_files.h), so each can read the other's files.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "easydel/models/model.h"
#include "easydel/train/transformation.h"

namespace easydel::train {

class State {
 public:
  struct Parts {
    std::shared_ptr<models::Model> model;  // loaded with `load`, for training
    models::LoadOptions load = {};
    int64_t step = 0;
    std::optional<Transformation> tx = {};
    bool init_opt_state = false;
  };
  // UserError without a model, and for init_opt_state without tx.
  static State create(Parts parts);
  // Loads a folder that save() or a trainer wrote, or the newest such folder below it. Without an optimizer's state in
  // it, or without tx, the optimizer is as after create(). Throws UserError if it is not such a folder, or has the
  // state of another optimizer.
  static State load(const std::filesystem::path& folder, const models::LoadOptions& options,
                    std::optional<Transformation> tx = {});

  // Resets the optimizer's state; its layouts are the parameters'.
  void init_tx(Transformation tx);
  // One update with the gradients that backward() has left in the parameters, and which are dropped; the rate is that
  // of this step. Collective: gradients are summed over ranks. UserError before init_tx.
  void apply_gradients();
  // With these instead, by the parameters' paths; each is as its shard. UserError for a path or a shape that is not
  // there.
  void apply_gradients(const std::map<std::string, Tensor>& gradients);

  // Writes `folder`/run-<step>: the model in transformers' format, the step, and the optimizer's state. Collective.
  // Throws UserError if the disk fails; then nothing has changed.
  std::filesystem::path save(const std::filesystem::path& folder, bool save_optimizer = true,
                             models::DTypeSetting dtype = models::DTypeSetting::automatic) const;

  models::Model& model() const { return *parts_.model; }
  int64_t step() const { return parts_.step; }
  bool has_optimizer() const { return optimizer_ != nullptr; }
  Optimizer& optimizer() const;  // UserError before init_tx
  int64_t size() const;          // bytes of this rank's parameters and of the optimizer's state

 private:
  explicit State(Parts parts) : parts_(std::move(parts)) {}

  Parts parts_;
  std::shared_ptr<Optimizer> optimizer_;
};

}  // namespace easydel::train
