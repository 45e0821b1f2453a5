#include "easydel/train/teaching.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <map>

#include "easydel/base/error.h"
#include "easydel/ops/head_divergence.h"
#include "easydel/train/language_rows.h"

namespace easydel::train {
namespace {

// Indices of the term's layers in a model with `layers` layers, in the order in which they are named.
std::vector<int64_t> layers_of(const std::optional<LayerTerm>& term, int64_t layers) {
  std::vector<int64_t> out;
  if (!term) return out;
  if (term->layers)
    for (const int64_t given : *term->layers) out.push_back(given < 0 ? layers + given : given);
  else
    for (int64_t i = 0; i < layers; ++i) out.push_back(i);
  return out;
}

// Collects what the layers of one forward compute.
class LayerWatch {
 public:
  LayerWatch(const models::Model& model, const Batch& batch, const TeachingTerms& terms)
      : batch_(batch),
        hidden_layers_(layers_of(terms.hidden_states, model.layers())),
        attention_layers_(layers_of(terms.attention, model.layers())) {}
  bool watches() const { return !hidden_layers_.empty() || !attention_layers_.empty(); }

  void see(std::string_view name, const Tensor& value) {
    constexpr std::string_view weights = ".attn_weights";
    const bool attention = name.ends_with(weights);
    if (attention) name.remove_suffix(weights.size());
    const std::optional<int64_t> layer = layer_of(name);
    if (!layer) return;
    if (attention && std::ranges::count(attention_layers_, *layer)) attention_[*layer].push_back(value);
    if (!attention && std::ranges::count(hidden_layers_, *layer)) hidden_[*layer] = labelled_rows(value, batch_).first;
  }

  // Of each layer of the term: its output at the labelled tokens.
  std::vector<Tensor> hidden() const {
    std::vector<Tensor> out;
    for (const int64_t layer : hidden_layers_) out.push_back(hidden_.at(layer));
    return out;
  }
  // Of each layer of the term: the probabilities [heads, queries, keys] of each sequence. `whose`: "the model".
  std::vector<std::vector<Tensor>> attention(const char* whose) const {
    std::vector<std::vector<Tensor>> out;
    for (const int64_t layer : attention_layers_) {
      const auto found = attention_.find(layer);
      if (found == attention_.end())
        refuse("trainer.attention_loss_weight",
               str("layer ", layer, " of ", whose,
                   " has no attention that can be compared: it is compressed or recurrent"),
               "leave it out, or name other layers in attention_layers");
      out.push_back(found->second);
    }
    return out;
  }

 private:
  // "model.layers.3" is layer 3; the names of what is in a layer go on after the number.
  static std::optional<int64_t> layer_of(std::string_view path) {
    const std::string_view last = path.substr(path.rfind('.') + 1);
    if (last.empty() || last.size() > 6 || last.find_first_not_of("0123456789") != last.npos) return std::nullopt;
    return std::stoll(std::string(last));
  }

  const Batch& batch_;
  std::vector<int64_t> hidden_layers_, attention_layers_;
  std::map<int64_t, Tensor> hidden_;
  std::map<int64_t, std::vector<Tensor>> attention_;  // of each sequence
};

// The mean over a hidden state's elements and over layers, [labelled].
Tensor hidden_difference(const LayerWatch& student, const LayerWatch& teacher) {
  const std::vector<Tensor> own = student.hidden(), theirs = teacher.hidden();
  Tensor sum;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].size(1) != theirs[i].size(1))
      refuse("trainer.hidden_state_loss_weight",
             str("hidden states have ", own[i].size(1), " elements, and the teacher's ", theirs[i].size(1)),
             "leave it out, or give a teacher of the same hidden size");
    const Tensor one = (own[i].to(at::kFloat) - theirs[i].to(at::kFloat)).square().mean(1);
    sum = sum.defined() ? sum + one : one;
  }
  return sum / double(own.size());
}

// The mean over heads, over the keys up to the query's own, and over layers, [labelled].
Tensor attention_difference(const LayerWatch& student, const LayerWatch& teacher, const Batch& batch, bool normalizes) {
  const auto theirs = teacher.attention("the teacher"), ours = student.attention("the model");
  const auto scaled = [&](const Tensor& p) {
    return normalizes ? p / p.sum(-1, /*keepdim=*/true).clamp_min(1e-12) : p;
  };
  Tensor sum;
  for (size_t layer = 0; layer < ours.size(); ++layer) {
    std::vector<Tensor> parts;
    check(ours[layer].size() == batch.cu_seqlens.size() - 1 && theirs[layer].size() == ours[layer].size(),
          "attention of ", ours[layer].size(), " and ", theirs[layer].size(), " sequences");
    for (size_t s = 0; s < ours[layer].size(); ++s) {
      const Tensor &own = ours[layer][s], &target = theirs[layer][s];  // [heads, queries, keys]
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
  return sum / double(ours.size());
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
  if (terms_.attention && student->team().mesh().size("tp") > 1)
    refuse("trainer.attention_loss_weight", "heads on several ranks of the axis tp are not built yet",
           "leave it out, or cut the batch instead: the axes dp and fsdp");
}

Loss Teaching::loss(const models::Model& student, const Batch& batch, const Forwarding& forwarding) const {
  const bool compares = terms_.divergence_weight > 0 || terms_.hidden_states || terms_.attention;
  check(teacher_ || !compares, "a student without a teacher");
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
    const Tensor all = forward(*teacher_, how, of_teacher, teacher_pass);
    const Tensor hidden = labelled_rows(all, batch, teacher_pass).first;
    target = teacher_->head().terms(hidden, teacher_pass);
  }
  Forwarding how = forwarding;
  if (terms_.disable_dropout) how.training = false;
  const Tensor all = forward(student, how, of_student, pass);
  // A micro-batch without labels still takes part in the collective operations of the ranks.
  if (batch.labelled == 0) return {all.sum() * 0, {}};
  const auto [hidden, labels] = labelled_rows(all, batch, pass);

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
