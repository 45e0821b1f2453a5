// The only place from which blocks are called: checkpointing and capture happen here and nowhere else.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "easydel/nn/layer.h"

namespace easydel::nn {

// A layer at its place in the model.
struct PlacedLayer {
  // Builds the layer and collects its parameters.
  PlacedLayer(const Scope& scope, const LayerBuilder& build, int64_t index);

  std::string path;    // "model.layers.0"
  std::string stream;  // of the pass whose tokens it computes: "text"
  std::unique_ptr<Layer> layer;
  // Everything that forward reads with a gradient: inputs of the checkpoint's node.
  std::vector<Parameter> parameters;
};

// Runs the layer on x. It must outlive the backward. The output's extras are outputs of the checkpoint's node, too.
LayerOutput run_layer(Pass& pass, const PlacedLayer& layer, const Tensor& x);

// The same, but x of the result holds the rows of the requested tokens only. The extras' rows are those or all.
LayerOutput run_layer_requested(Pass& pass, const PlacedLayer& layer, const Tensor& x);

}  // namespace easydel::nn
