// Zamba2 (arXiv 2411.15242): Mamba-2 in every layer; before some layers a transformer block with shared weights, which
// reads the hidden state and the embedding, with low-rank additions for each of these layers. Blocks pass on [tokens, 2
// hidden_size]: the hidden state and the embedding.
#include <ATen/ops/cat.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/recurrent_keys.h"
#include "easydel/ops/norm.h"

namespace easydel::models::zoo::zamba2 {
namespace {

using nn::Pass;
using nn::Scope;

struct Zamba2Spec {
  int64_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;
  int64_t shared_blocks = 1, uses = 0;  // uses: of shared blocks in the whole model
  int64_t rank = 0;                     // of the additions to the mlp, and to attention if it has them
  bool attention_additions = false, bias = false;
  bool shared = true;  // transformers ties the blocks if it ties the head; otherwise each layer has its own copy
  double dropout = 0, deviation = 0.02;
  ops::Activation activation = ops::Activation::gelu;
  nn::Norm::Options norm;
  std::optional<ops::RopeSpec> rope;
  nn::Mamba2Spec mamba;
};

// A low-rank addition to a projection.
class Addition {
 public:
  Addition(const Scope& scope, int64_t in, int64_t rank, int64_t out, double deviation)
      : down_(scope / "0", in, rank, {.deviation = deviation}), up_(scope / "1", rank, out, {.deviation = deviation}) {}
  Tensor operator()(const Tensor& x, Pass& pass) const { return up_(down_(x, pass, "addition_in"), pass, "addition"); }

 private:
  nn::Linear down_, up_;
};

// A transformer block that several layers use; `use` is the index of the use.
class Shared {
 public:
  Shared(const Scope& scope, const Zamba2Spec& spec, int64_t number)
      : spec_(spec),
        input_norm_(scope / "input_layernorm", 2 * spec.hidden, spec.norm),
        feed_norm_(scope / "pre_ff_layernorm", spec.hidden, spec.norm) {
    const Scope attention = scope / "self_attn", feed = scope / "feed_forward";
    const int64_t size = 2 * spec.hidden, q = spec.heads * spec.head_dim, kv = spec.kv_heads * spec.head_dim;
    const auto linear = [&](const Scope& at, int64_t in, int64_t out, bool bias) {
      return std::make_unique<nn::Linear>(at, in, out, nn::LinearOptions{.bias = bias, .deviation = spec.deviation});
    };
    q_ = linear(attention / "q_proj", size, q, false);
    k_ = linear(attention / "k_proj", size, kv, false);
    v_ = linear(attention / "v_proj", size, kv, false);
    output_ = linear(attention / "o_proj", q, spec.hidden, false);
    gate_up_ = linear(feed / "gate_up_proj", spec.hidden, 2 * spec.intermediate, spec.bias);
    down_ = linear(feed / "down_proj", spec.intermediate, spec.hidden, spec.bias);
    // The uses of this block.
    for (int64_t use = number; use < spec.uses; use += spec.shared_blocks) {
      const auto add = [&](std::map<int64_t, Addition>& to, const Scope& at, const char* name, int64_t in,
                           int64_t out) { to.try_emplace(use, at / name / use, in, spec.rank, out, spec.deviation); };
      if (spec.attention_additions) {
        add(q_additions_, attention, "linear_q_adapter_list", size, q);
        add(k_additions_, attention, "linear_k_adapter_list", size, kv);
        add(v_additions_, attention, "linear_v_adapter_list", size, kv);
      }
      add(feed_additions_, feed, "gate_up_proj_adapter_list", spec.hidden, 2 * spec.intermediate);
    }
    attention_.scale = 1.0 / std::sqrt(double(spec.head_dim) / 2.0);
    attention_.dropout = spec.dropout;
  }

  // x [tokens, 2 hidden] -> [tokens, hidden]
  Tensor operator()(const Tensor& x, int64_t layer, int64_t use, Pass& pass) const {
    const int64_t tokens = x.size(0);
    const Tensor normed = input_norm_(x);
    const auto projected = [&](const nn::Linear& linear, const std::map<int64_t, Addition>& additions,
                               const char* name) {
      Tensor out = linear(normed, pass, name);
      if (const auto own = additions.find(use); own != additions.end()) out = out + own->second(normed, pass);
      return out.view({tokens, -1, spec_.head_dim});
    };
    Tensor q = projected(*q_, q_additions_, "attn_query"), k = projected(*k_, k_additions_, "attn_key");
    const Tensor v = projected(*v_, v_additions_, "attn_value");
    if (spec_.rope) {
      const ops::RopeTable& table = pass.stream().rope_table(*spec_.rope);
      q = ops::rope(q, table);
      k = ops::rope(k, table);
    }
    const Tensor mixed = pass.attend(layer, attention_, q, k, v).reshape({tokens, spec_.heads * spec_.head_dim});
    const Tensor middle = feed_norm_((*output_)(mixed, pass, "attn_output"));
    const Tensor gate_and_up = (*gate_up_)(middle, pass, "mlp_gate") + feed_additions_.at(use)(middle, pass);
    const Tensor gate = gate_and_up.narrow(1, 0, spec_.intermediate),
                 up = gate_and_up.narrow(1, spec_.intermediate, spec_.intermediate);
    return down_->gated(gate.contiguous(), up.contiguous(), spec_.activation, pass, "mlp_down");
  }

 private:
  const Zamba2Spec& spec_;
  nn::Norm input_norm_, feed_norm_;
  std::unique_ptr<nn::Linear> q_, k_, v_, output_, gate_up_, down_;
  std::map<int64_t, Addition> q_additions_, k_additions_, v_additions_, feed_additions_;
  ops::AttentionSpec attention_;
};

// Shared by the layers of one model, while it is built and afterwards.
struct Zamba2Parts {
  Zamba2Spec spec;
  std::vector<std::unique_ptr<Shared>> blocks;         // created by the first layer that uses each
  std::vector<std::vector<nn::Parameter>> parameters;  // of those
};

class Layer final : public nn::Layer {
 public:
  // use -1: only Mamba.
  Layer(const Scope& scope, std::shared_ptr<Zamba2Parts> parts, int64_t use, int64_t layer)
      : parts_(std::move(parts)), use_(use), layer_(layer) {
    const Zamba2Spec& spec = parts_->spec;
    Scope mamba = scope;
    if (use >= 0) {
      const int64_t number = use % spec.shared_blocks;
      if (!spec.shared || number == int64_t(parts_->blocks.size())) {
        const Scope own = scope / "shared_transformer";
        const size_t before = own.mark();
        parts_->blocks.push_back(std::make_unique<Shared>(own, spec, number));
        parts_->parameters.push_back(own.since(before));
      } else {
        shared_parameters_ = parts_->parameters[size_t(number)];
      }
      shared_ = (spec.shared ? parts_->blocks[size_t(number)] : parts_->blocks.back()).get();
      linear_.emplace(scope / "linear", spec.hidden, spec.hidden, nn::LinearOptions{.deviation = spec.deviation});
      mamba = scope / "mamba_decoder";
    }
    norm_.emplace(mamba / "input_layernorm", spec.hidden, spec.norm);
    mamba_ = std::make_unique<nn::Mamba2>(mamba / "mamba", spec.mamba, layer);
  }

  nn::LayerOutput forward(const Tensor& hidden_and_embedding, Pass& pass) const override {
    const int64_t hidden = parts_->spec.hidden;
    const Tensor x = hidden_and_embedding.narrow(1, 0, hidden),
                 embedding = hidden_and_embedding.narrow(1, hidden, hidden);
    Tensor seen = x;
    if (shared_) seen = x + (*linear_)((*shared_)(hidden_and_embedding, layer_, use_, pass), pass, "shared_output");
    const Tensor out = x + mamba_->forward((*norm_)(seen.contiguous()), pass).x;
    return {at::cat({out, embedding}, 1), {}};
  }

  nn::CacheLayer cache() const override {
    nn::CacheLayer cache = mamba_->cache();
    const Zamba2Spec& spec = parts_->spec;
    if (shared_) cache.kv_heads = spec.kv_heads, cache.k_dim = cache.v_dim = spec.head_dim;
    return cache;
  }
  double mixing_flops(int64_t length) const override {
    const Zamba2Spec& spec = parts_->spec;
    return mamba_->mixing_flops(length) + (shared_ ? 2.0 * double(spec.heads * spec.head_dim) * double(length) : 0.0);
  }
  std::vector<nn::Parameter> shared_parameters() const override { return shared_parameters_; }

 private:
  std::shared_ptr<Zamba2Parts> parts_;
  int64_t use_, layer_;
  const Shared* shared_ = nullptr;
  std::vector<nn::Parameter> shared_parameters_;  // those of *shared_, if an earlier layer created it
  std::optional<nn::Linear> linear_;
  std::optional<nn::Norm> norm_;
  std::unique_ptr<nn::Mamba2> mamba_;
};

class Boundary final : public StackBoundary {
 public:
  explicit Boundary(int64_t hidden) : hidden_(hidden) {}
  Tensor enter(const Inputs&, const Tensor& embedded, Pass&) const override { return at::cat({embedded, embedded}, 1); }
  Tensor leave(const Tensor& x, Pass&) const override { return x.narrow(1, 0, hidden_).contiguous(); }

 private:
  int64_t hidden_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.names.norm = "final_layernorm";
  spec.vocabulary = read_size(config, "vocab_size", 32000);
  spec.hidden = read_size(config, "hidden_size", 2560);
  const int64_t positions = read_size(config, "max_position_embeddings", 4096);
  spec.max_positions = config.boolean("use_long_context", false) ? 16384 : positions;
  spec.norm = {.epsilon = config.number("rms_norm_eps", 1e-5)};
  spec.padding = config.integer("pad_token_id", 0);
  if (spec.padding >= spec.vocabulary)
    config.refuse_key("pad_token_id", str(spec.padding, " is outside the vocabulary of ", spec.vocabulary));
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  std::vector<std::string> kinds = read_kinds(config, "layers_block_type", {"linear_attention", "hybrid"});
  if (kinds.empty()) kinds = read_kinds(config, "layer_types", {"linear_attention", "hybrid"});
  if (kinds.empty())  // transformers' default
    for (int64_t i = 0; i < 54; ++i)
      kinds.push_back((i < 42 && i % 6 == 0 && i > 0) || i == 42 || i == 47 || i == 51 ? "hybrid" : "linear_attention");
  spec.layers.resize(kinds.size());

  auto parts = std::make_shared<Zamba2Parts>();
  Zamba2Spec& own = parts->spec;
  own.hidden = spec.hidden;
  own.heads = read_size(config, "num_attention_heads", 32);
  own.kv_heads = read_size(config, "num_key_value_heads", own.heads);
  check_kv_heads(config, "num_key_value_heads", own.kv_heads, own.heads);
  own.head_dim = 2 * own.hidden / own.heads;
  own.intermediate = read_size(config, "intermediate_size", 4 * own.hidden);
  own.shared_blocks = read_size(config, "num_mem_blocks", 1);
  own.rank = read_size(config, "adapter_rank", 128);
  own.attention_additions = config.boolean("use_shared_attention_adapter", false);
  if (own.attention_additions && 2 * own.hidden % own.heads != 0)  // additions are as wide as their input
    config.refuse_key("num_attention_heads", str(own.heads, " does not divide twice hidden_size, ", 2 * own.hidden));
  own.bias = config.boolean("add_bias_linear", false);
  own.shared = spec.tied;
  own.dropout = config.number("attention_dropout", 0.0);
  own.deviation = spec.deviation;
  own.activation = ops::activation_of(config.text("hidden_act", "gelu"), config.where().below("hidden_act"));
  own.norm = spec.norm;
  if (config.boolean("use_mem_rope", false)) own.rope = config.rope(own.head_dim, spec.max_positions);

  nn::Mamba2Spec& mamba = own.mamba;
  mamba.hidden = spec.hidden;
  mamba.inner = read_size(config, "mamba_expand", 2) * spec.hidden;
  mamba.heads = read_size(config, "n_mamba_heads", 8);
  if (mamba.inner % mamba.heads != 0)
    config.refuse_key("n_mamba_heads", str(mamba.heads, " heads do not divide ", mamba.inner, " channels"));
  mamba.head_dim = mamba.inner / mamba.heads;
  mamba.state = read_size(config, "mamba_d_state", 64);
  mamba.groups = read_size(config, "mamba_ngroups", 1);
  if (mamba.heads % mamba.groups != 0)
    config.refuse_key("mamba_ngroups", str(mamba.groups, " groups do not divide ", mamba.heads, " heads"));
  mamba.width = read_size(config, "mamba_d_conv", 4);
  mamba.bias = mamba.output_bias = own.bias;
  mamba.min_step = config.number("time_step_min", 0.001);
  mamba.deviation = spec.deviation;
  mamba.step_bias = read_steps(config).initial();

  for (size_t i = 0; i < kinds.size(); ++i) {
    const int64_t use = kinds[i] == "hybrid" ? own.uses++ : -1;
    spec.layers[i].block = [parts, use](const Scope& block, int64_t layer) {
      return std::make_unique<Layer>(block, parts, use, layer);
    };
  }
  spec.boundary = [hidden = spec.hidden](const Scope&) { return std::make_unique<Boundary>(hidden); };
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"zamba2", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::zamba2
