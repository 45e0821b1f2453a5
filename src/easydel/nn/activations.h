// What happens to the activations of a layer besides being computed: a checkpoint policy keeps some for the layer's
// recomputation in the backward, and a caller may capture them by name. A part of nn::Pass; nn/run_layer.h switches
// between the two runs of a layer.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/nn/checkpointing_config.h"
#include "easydel/tensor/torch.h"

namespace easydel::nn {

// The kept tensors of one layer, by checkpoint name, each in the order in which the layer makes them.
using KeptTensors = std::map<std::string, std::vector<Tensor>, std::less<>>;

class Activations {
 public:
  CheckpointPolicy checkpointing;
  // Gets every named tensor, under the path of its layer: "model.layers.0.self_attn". For --trace and distillation.
  std::function<void(std::string_view name, const Tensor&)> capture;

  // make(given) of an expensive op, whose result the checkpoint policy may keep under `name`. In the recomputation
  // `given` is the result that was kept: the op returns it, and only builds its backward. Otherwise `given` is
  // undefined. An empty name is never kept.
  template <class Make>
  Tensor make(std::string_view name, Make&& make) {
    Tensor out = std::forward<Make>(make)(given(name));
    if (keeps(name)) keep(name, out);
    return out;
  }
  // Hands x to `capture` and returns it.
  Tensor name(std::string_view name, Tensor x) const;

  // Whether a backward follows this forward: gradients were on when the running layer was entered, or are on now, or
  // this is the first forward of a layer that is recomputed.
  bool has_backward() const { return backward_follows_ || at::GradMode::is_enabled(); }

  // The steps of make(), for an op that has several results to keep: whether it is asked to keep some under this name,
  // and in the recomputation the next one of the name, else undefined.
  bool keeps(std::string_view name) const { return saving_ && !name.empty() && checkpointing.keeps(name); }
  void keep(std::string_view name, const Tensor& x);
  Tensor given(std::string_view name);

 private:
  friend class LayerRun;
  std::string path_;  // of the running layer
  bool backward_follows_ = false;
  KeptTensors* saving_ = nullptr;                     // in the first forward of a layer that is recomputed
  const KeptTensors* giving_ = nullptr;               // in its recomputation
  std::map<std::string, size_t, std::less<>> given_;  // how many tensors of a name the recomputation has taken
};

}  // namespace easydel::nn
