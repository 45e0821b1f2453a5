#include "easydel/nn/run_layer.h"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "easydel/base/error.h"
#include "easydel/tensor/compat.h"

namespace easydel::nn {

using torch::autograd::variable_list;

// The only code that says to a pass which layer runs, and whether it saves tensors or gets them back.
class LayerRun {
 public:
  static LayerOutput plain(Pass& pass, const PlacedLayer& placed, const Tensor& x, bool requested = false) {
    LayerOutput out;
    {
      const LayerRun inside(pass, placed);
      out = requested ? placed.layer->forward_requested(x, pass) : placed.layer->forward(x, pass);
    }
    // The output of a layer that is recomputed gets its gradient later.
    if (!pass.activations_.saving_) tell(pass, placed, out.x);
    return out;
  }
  static void tell(const Pass& pass, const PlacedLayer& placed, const Tensor& x) {
    if (pass.activations_.capture) pass.activations_.capture(placed.path, x);
  }
  static LayerOutput saving(Pass& pass, const PlacedLayer& layer, const Tensor& x, KeptTensors& saved) {
    const at::NoGradGuard no_gradient;
    pass.activations_.saving_ = &saved;
    LayerOutput out = plain(pass, layer, x);
    pass.activations_.saving_ = nullptr;
    return out;
  }
  static LayerOutput again(Pass& pass, const PlacedLayer& layer, const Tensor& x, const KeptTensors& saved) {
    pass.activations_.giving_ = &saved;
    pass.activations_.given_.clear();
    LayerOutput out = plain(pass, layer, x);
    pass.activations_.giving_ = nullptr;
    return out;
  }

 private:
  LayerRun(Pass& pass, const PlacedLayer& placed)
      : pass_(pass),
        stream_(pass.current_),
        path_(pass.random_.path_),
        backward_follows_(pass.activations_.backward_follows_) {
    check(pass.streams_.contains(placed.stream), placed.path, ": the pass has no stream '", placed.stream, "'");
    // What a layer computes without gradients (an indexer) still belongs to a forward that a backward follows.
    enter(placed.stream, placed.path, pass.activations_.has_backward() || pass.activations_.saving_);
  }
  ~LayerRun() { enter(stream_, path_, backward_follows_); }

  void enter(const std::string& stream, const std::string& path, bool backward_follows) {
    pass_.current_ = stream;
    pass_.random_.path_ = pass_.activations_.path_ = path;
    pass_.activations_.backward_follows_ = backward_follows;
  }

  Pass& pass_;
  std::string stream_, path_;
  bool backward_follows_;
};

namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The probabilities of attention that a pass was asked for need their gradient. In a layer that is recomputed they are
// outputs of its node, as extras are: here they are put into `probabilities` instead of the pass's capture.
class CapturedProbabilities {
 public:
  CapturedProbabilities(Pass& pass, bool wanted) : pass_(pass), capture_(pass.activations().capture) {
    if (!wanted) return;
    pass.activations().capture = [this](std::string_view name, const Tensor& value) {
      if (name.ends_with(".attn_weights"))
        probabilities.emplace_back(name, value);
      else if (capture_)
        capture_(name, value);
    };
  }
  ~CapturedProbabilities() { pass_.activations().capture = capture_; }
  CapturedProbabilities(const CapturedProbabilities&) = delete;
  CapturedProbabilities& operator=(const CapturedProbabilities&) = delete;

  static bool wanted(const Pass& pass) { return pass.requests("attn_weights") && pass.activations().capture; }

  NamedTensors probabilities;

 private:
  Pass& pass_;
  std::function<void(std::string_view, const Tensor&)> capture_;
};

}  // namespace

PlacedLayer::PlacedLayer(const Scope& scope, const LayerBuilder& build, int64_t index)
    : path(scope.path()), stream(scope.stream()) {
  const size_t mark = scope.mark();
  layer = build(scope, index);
  parameters = scope.since(mark);
  for (const Parameter& shared : layer->shared_parameters()) parameters.push_back(shared);
}

namespace {

// The autograd node of a whole layer: keeps the layer's input (and the named tensors that a policy saves), and in the
// backward runs the layer again and differentiates that. Its inputs are x and every parameter of the layer.
struct LayerNode : torch::autograd::Node {
  LayerNode(Pass run_pass, const PlacedLayer& run_layer, const Tensor& input)
      : pass(std::move(run_pass)),
        layer(run_layer),
        x(input.detach()),
        x_requires_grad(input.requires_grad()),
        probabilities(CapturedProbabilities::wanted(pass)) {
    pass.activations().capture = nullptr;
  }

  variable_list apply(variable_list&& gradients) override {
    const at::AutoGradMode with_gradient(true);
    Tensor input = x.detach();
    input.requires_grad_(x_requires_grad);
    CapturedProbabilities captured(pass, probabilities);
    const LayerOutput again = LayerRun::again(pass, layer, input, saved);
    variable_list outputs, output_gradients, inputs;
    const auto add = [&](const Tensor& out, size_t i) {
      if (!gradients[i].defined() || !out.requires_grad()) return;
      outputs.push_back(out);
      output_gradients.push_back(gradients[i]);
    };
    size_t next = 0;
    add(again.x, next++);
    for (const auto& [name, extra] : again.extras) add(extra, next++);
    for (const auto& [name, value] : captured.probabilities) add(value, next++);
    std::vector<size_t> places;
    const auto ask = [&](const Tensor& t, size_t place) {
      if (!t.requires_grad() || !should_compute_output(place)) return;
      inputs.push_back(t);
      places.push_back(place);
    };
    ask(input, 0);
    for (size_t i = 0; i < layer.parameters.size(); ++i) ask(layer.parameters[i].entry().shard, i + 1);
    variable_list out(1 + layer.parameters.size());
    if (outputs.empty() || inputs.empty()) return out;
    const variable_list found = torch::autograd::grad(outputs, inputs, output_gradients, /*retain_graph=*/false,
                                                      /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < found.size(); ++i) out[places[i]] = found[i];
    return out;
  }

  void release_variables() override {
    x = Tensor();
    saved.clear();
  }

  std::string name() const override { return "LayerNode(" + layer.path + ")"; }

  Pass pass;
  const PlacedLayer& layer;
  Tensor x;
  bool x_requires_grad;
  bool probabilities;  // whether those of attention are outputs
  KeptTensors saved;
};

}  // namespace

LayerOutput run_layer(Pass& pass, const PlacedLayer& layer, const Tensor& x) {
  if (!pass.activations().checkpointing.recomputes() || !at::GradMode::is_enabled())
    return LayerRun::plain(pass, layer, x);
  variable_list inputs = {x};
  for (const Parameter& parameter : layer.parameters) inputs.push_back(parameter.entry().shard);
  if (!torch::autograd::any_variable_requires_grad(inputs)) return LayerRun::plain(pass, layer, x);
  auto node = tensor::make_node<LayerNode>(pass, layer, x);
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  LayerOutput out;
  NamedTensors probabilities;
  {
    CapturedProbabilities captured(pass, node->probabilities);
    out = LayerRun::saving(pass, layer, x, node->saved);
    probabilities = std::move(captured.probabilities);
  }
  const auto attach = [&](Tensor& t) {
    t = t.detach();
    torch::autograd::create_gradient_edge(t, node);
  };
  attach(out.x);
  LayerRun::tell(pass, layer, out.x);
  for (auto& [name, extra] : out.extras) attach(extra);
  for (auto& [name, value] : probabilities) {
    attach(value);
    pass.activations().capture(name, value);
  }
  return out;
}

LayerOutput run_layer_requested(Pass& pass, const PlacedLayer& layer, const Tensor& x) {
  // Tensors that are captured, kept or recomputed are of all tokens.
  if (!pass.activations().capture && !pass.random().training && !at::GradMode::is_enabled())
    return LayerRun::plain(pass, layer, x, /*requested=*/true);
  LayerOutput out = run_layer(pass, layer, x);
  out.x = pass.stream(layer.stream).requested_rows(out.x);
  return out;
}

}  // namespace easydel::nn
