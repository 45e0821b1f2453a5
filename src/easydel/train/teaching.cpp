#include "easydel/train/teaching.h"

#include <ATen/ops/cat.h>

#include <map>
#include <set>

#include "easydel/base/error.h"
#include "easydel/ops/head_divergence.h"
#include "easydel/train/language_rows.h"

namespace easydel::train {
namespace {

// The index of a layer of a model with `layers` layers.
int64_t layer_index(int64_t given, int64_t layers) { return given < 0 ? layers + given : given; }

std::set<int64_t> layers_of(const LayerTerm& term, int64_t layers) {
  std::set<int64_t> out;
  if (term.layers)
    for (const int64_t given : *term.layers) out.insert(layer_index(given, layers));
  else
    for (int64_t i = 0; i < layers; ++i) out.insert(i);
  return out;
}

// Collects what the layers of one forward compute, at the labelled tokens, by layer.
class LayerWatch {
 public:
  LayerWatch(const models::Model& model, const Batch& batch, const TeachingTerms& terms) : batch_(batch) {
    if (terms.hidden_states) hidden_layers_ = layers_of(*terms.hidden_states, model.layers());
    if (terms.attention) attention_layers_ = layers_of(*terms.attention, model.layers());
  }
  bool watches() const { return !hidden_layers_.empty() || !attention_layers_.empty(); }

  void see(std::string_view name, const Tensor& value) {
    constexpr std::string_view weights = ".attn_weights";
    const bool attention = name.ends_with(weights);
    if (attention) name.remove_suffix(weights.size());
    const std::optional<int64_t> layer = layer_of(name);
    if (!layer) return;
    if (attention && attention_layers_.contains(*layer)) attention_[*layer].push_back(value);
    if (!attention && hidden_layers_.contains(*layer)) hidden_[*layer] = labelled_rows(value, batch_).first;
  }
  const std::map<int64_t, Tensor>& hidden() const { return hidden_; }
  const std::map<int64_t, std::vector<Tensor>>& attention() const { return attention_; }

 private:
  // "model.layers.3" is layer 3; the names of what is in a layer go on after the number.
  static std::optional<int64_t> layer_of(std::string_view path) {
    const std::string_view last = path.substr(path.rfind('.') + 1);
    if (last.empty() || last.size() > 6 || last.find_first_not_of("0123456789") != last.npos) return std::nullopt;
    return std::stoll(std::string(last));
  }

  const Batch& batch_;
  std::set<int64_t> hidden_layers_, attention_layers_;
  std::map<int64_t, Tensor> hidden_;
  std::map<int64_t, std::vector<Tensor>> attention_;  // of each sequence
};

// The mean over a hidden state's elements and over layers, [labelled].
Tensor hidden_difference(const LayerWatch& student, const LayerWatch& teacher) {
  Tensor sum;
  const auto& theirs = teacher.hidden();
  check(!student.hidden().empty() && student.hidden().size() == theirs.size(), "layers' hidden states were not seen");
  auto other = theirs.begin();
  for (const auto& [layer, hidden] : student.hidden()) {
    const Tensor& target = (other++)->second;
    if (hidden.size(1) != target.size(1))
      refuse("trainer.hidden_state_loss_weight",
             str("hidden states have ", hidden.size(1), " elements, and the teacher's ", target.size(1)),
             "leave it out, or give a teacher of the same hidden size");
    const Tensor one = (hidden.to(at::kFloat) - target.to(at::kFloat)).square().mean(1);
    sum = sum.defined() ? sum + one : one;
  }
  return sum / double(student.hidden().size());
}

// The mean over heads, over the keys up to the query's own, and over layers, [labelled].
Tensor attention_difference(const LayerWatch& student, const LayerWatch& teacher, const Batch& batch, bool normalizes) {
  const auto& theirs = teacher.attention();
  if (student.attention().empty() || student.attention().size() != theirs.size())
    refuse("trainer.attention_loss_weight",
           str("the attention of ", student.attention().size(), " layers of the model and of ", theirs.size(),
               " of the teacher can be read"),
           "leave it out, or name layers with attention over all heads in attention_layers");
  const auto scaled = [&](const Tensor& p) {
    return normalizes ? p / p.sum(-1, /*keepdim=*/true).clamp_min(1e-12) : p;
  };
  Tensor sum;
  auto other = theirs.begin();
  for (const auto& [layer, sequences] : student.attention()) {
    const std::vector<Tensor>& targets = (other++)->second;
    std::vector<Tensor> parts;
    for (size_t s = 0; s < sequences.size(); ++s) {
      const Tensor &own = sequences[s], &target = targets[s];  // [heads, queries, keys]
      if (own.size(0) != target.size(0))
        refuse("trainer.attention_loss_weight",
               str("the model has ", own.size(0), " attention heads, and the teacher ", target.size(0)),
               "leave it out, or give a teacher with as many heads");
      const Tensor labels = batch.labels.slice(0, batch.cu_seqlens[s], batch.cu_seqlens[s + 1]);
      const Tensor rows = labels.ne(data::no_label).nonzero().squeeze(1).to(own.device());
      if (rows.size(0) == 0) continue;
      const Tensor keys = (rows + 1).to(at::kFloat);  // a query sees itself and what is before it
      const Tensor difference = (scaled(own) - scaled(target)).square().mean(0).index_select(0, rows).sum(-1);
      parts.push_back(difference / keys);
    }
    const Tensor one = at::cat(parts);
    sum = sum.defined() ? sum + one : one;
  }
  return sum / double(student.attention().size());
}

}  // namespace

TeachingTerms teaching_terms(const DistillationConfig& config, const TrainerConfig& common) {
  TeachingTerms out;
  out.temperature = config.temperature;
  if (config.beta) {
    out.beta = *config.beta;
  } else {
    out.divergence_weight = config.alpha * config.temperature * config.temperature;
    out.label_weight = 1 - config.alpha;
  }
  if (config.hidden_state_loss_weight.value_or(0) > 0)
    out.hidden_states = LayerTerm{*config.hidden_state_loss_weight, config.hidden_state_layers};
  if (config.attention_loss_weight.value_or(0) > 0)
    out.attention = LayerTerm{*config.attention_loss_weight, config.attention_layers};
  out.normalizes_attention = config.attention_normalize;
  out.disable_dropout = config.disable_dropout;
  out.chunk = config.logits_chunk_size.value_or(common.loss().chunk_token_size.value_or(0));
  return out;
}

Batch labelled_batch(std::span<const data::Example* const> examples) {
  Batch batch = flat_batch(examples);
  const Tensor weights = labelled_weights(batch);
  batch.weight = weights.defined() ? weights.sum(at::kDouble).item<double>() : double(batch.labelled);
  return batch;
}

Teaching::Teaching(std::shared_ptr<const models::Model> teacher, const models::Model* student, TeachingTerms terms)
    : teacher_(std::move(teacher)), terms_(std::move(terms)) {
  if (!teacher_ || !student) return;
  DistillationConfig keys;
  if (terms_.hidden_states) {
    keys.hidden_state_loss_weight = terms_.hidden_states->weight;
    keys.hidden_state_layers = terms_.hidden_states->layers;
  }
  if (terms_.attention) {
    keys.attention_loss_weight = terms_.attention->weight;
    keys.attention_layers = terms_.attention->layers;
  }
  const ModelSizes of_teacher{teacher_->layers()};
  keys.check_sizes({student->layers()}, &of_teacher);
}

Loss Teaching::loss(const models::Model& student, const Batch& batch, const Forwarding& forwarding) const {
  const bool compares = terms_.divergence_weight > 0 || terms_.hidden_states || terms_.attention;
  check(teacher_ || !compares, "a student without a teacher");
  if (terms_.attention && forwarding.checkpointing.recomputes() && at::GradMode::is_enabled())
    refuse("trainer.attention_loss_weight", "the attention of layers that are recomputed has no gradient",
           "leave it out, or set base_config.values.gradient_checkpointing: none");
  const auto forward = [&](const models::Model& model, Forwarding how, LayerWatch& watch, nn::Pass& pass) {
    how.attention_weights = terms_.attention.has_value();
    if (watch.watches()) how.capture = [&watch](std::string_view name, const Tensor& value) { watch.see(name, value); };
    const models::Outputs outputs = how.run(model, batch, pass);
    pass.activations().capture = nullptr;  // the head has nothing to tell
    return outputs.hidden;
  };
  LayerWatch of_teacher(teacher_ ? *teacher_ : student, batch, terms_), of_student(student, batch, terms_);
  nn::Pass teacher_pass, pass;
  ops::HeadTerms target;
  if (compares) {
    const c10::AutoGradMode no_grad(false);
    Forwarding how = forwarding;
    how.training = how.metrics = false;
    how.checkpointing = nn::Checkpointing::none;
    how.routers = nullptr;
    const Tensor hidden = labelled_rows(forward(*teacher_, how, of_teacher, teacher_pass), batch).first;
    target = teacher_->head().terms(hidden, teacher_pass);
  }
  Forwarding how = forwarding;
  if (terms_.disable_dropout) how.training = false;
  const Tensor all = forward(student, how, of_student, pass);
  // A micro-batch without labels still takes part in the collective operations of the ranks.
  if (batch.labelled == 0) return {all.sum() * 0, {}};
  const auto [hidden, labels] = labelled_rows(all, batch);

  Loss out;
  const auto count = double(batch.labelled);
  const Tensor token_weights = labelled_weights(batch);
  const auto add = [&](const char* name, double weight, const Tensor& each) {
    const Tensor sum = (token_weights.defined() ? each * token_weights.to(each.device()) : each).sum();
    out.sum = out.sum.defined() ? out.sum + weight * sum : weight * sum;
    if (how.metrics) out.metrics.push_back({name, sum.item<double>(), count});
  };
  if (terms_.divergence_weight > 0) {
    const ops::DivergenceResult compared = ops::head_divergence(student.head().terms(hidden, pass), target,
                                                                {.beta = terms_.beta,
                                                                 .temperature = terms_.temperature,
                                                                 .teacher_top_k = terms_.teacher_top_k,
                                                                 .entropy = how.metrics,
                                                                 .chunk = terms_.chunk});
    add("divergence", terms_.divergence_weight, compared.divergence);
    if (how.metrics) out.metrics.push_back({"entropy", compared.entropy.sum().item<double>(), count});
  }
  if (terms_.label_weight > 0) {
    const nn::Scores scores =
        student.head().score(hidden, labels, pass, {.correct = how.metrics, .chunk = terms_.chunk});
    add("cross_entropy", terms_.label_weight, -scores.logps);
    if (how.metrics) out.metrics.push_back({"mean_token_accuracy", scores.correct.sum().item<double>(), count});
  }
  if (terms_.hidden_states)
    add("hidden_state_loss", terms_.hidden_states->weight, hidden_difference(of_student, of_teacher));
  if (terms_.attention)
    add("attention_loss", terms_.attention->weight,
        attention_difference(of_student, of_teacher, batch, terms_.normalizes_attention));
  return out;
}

}  // namespace easydel::train
