// trainer_type: embedding. Contrastive training of text embeddings, as MultipleNegativesRankingLoss and TripletLoss of
// sentence-transformers have it: a query is nearer to its own text than to the negatives and to the texts of all other
// rows of the update.
//
// Those texts may be in other micro-batches. So an update of several parts embeds all of them first, without gradients;
// then each part computes the loss of the whole update, in which its own vectors alone have a gradient (GradCache,
// arXiv:2101.06983): the gradients of the parts add up to that of the loss.
#include "easydel/models/embedding.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/train/embedding_config.h"
#include "easydel/train/encoded_texts.h"
#include "easydel/train/method.h"

namespace easydel::train {
namespace {

constexpr const char* settings_file = "config_sentence_transformers.json";

// fp32 [texts, size] each; of this rank's part or of all parts, in the order of the examples.
struct Vectors {
  Tensor queries, positives, negatives;

  static Vectors joined(std::span<const Vectors> parts) {
    const auto all = [&](Tensor Vectors::*which) {
      std::vector<Tensor> rows;
      for (const Vectors& part : parts) rows.push_back(part.*which);
      return at::cat(rows);
    };
    return {all(&Vectors::queries), all(&Vectors::positives), all(&Vectors::negatives)};
  }
  Vectors of_size(int64_t size) const {
    return {queries.slice(1, 0, size), positives.slice(1, 0, size), negatives.slice(1, 0, size)};
  }
};

Tensor of_length_one(const Tensor& vectors) {
  return vectors / at::linalg_vector_norm(vectors, 2, {1}, /*keepdim=*/true).clamp_min(1e-12);
}

nn::Pooling pooling_of(TextPooling word) {
  switch (word) {
    case TextPooling::first:
      return nn::Pooling::first;
    case TextPooling::mean:
      return nn::Pooling::mean;
    case TextPooling::last:
      return nn::Pooling::last;
    case TextPooling::weighted_mean:
      return nn::Pooling::weighted_mean;
    case TextPooling::max:
      return nn::Pooling::max;
  }
  throw Bug("a way of pooling that is not there");
}

class Embedding final : public Method {
 public:
  explicit Embedding(const Setting& setting)
      : config_(setting.trainer.own_as<EmbeddingConfig>()),
        common_(setting.trainer.common),
        tokenizer_(setting.tokenizer) {
    if (!setting.model) return;
    model_folder_ = setting.model->folder();
    spec_ = models::read_embedding(*setting.model);
    if (config_.pooling_strategy) spec_.pooling = pooling_of(*config_.pooling_strategy);
    spec_.normalized = config_.normalize_embeddings;
    size_ = models::hidden_size(*setting.model);
    positions_ = setting.model->max_positions();
    config_.check_sizes({.hidden = size_}, nullptr);
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    const std::vector<Value>& negatives = row.negatives.items;
    if (negatives.empty() && is_triplet())
      refuse(row.where, "the row has no negative, and the loss triplet compares with one",
             "give it a field 'negative', name yours by trainer.negative_field, or set loss_type: infonce");
    if (negatives.empty() && common_.total_batch_size == 1)
      refuse(row.where, "the row has no negative, and an update of one row has no other text to compare with",
             "raise trainer.total_batch_size, or give negatives");
    data::Prepared out;
    data::Example example;
    const auto add = [&](const Value& text, const char* field) {
      const std::vector<int32_t> ids = encode(text.scalar, out.cut_tokens);
      if (text.scalar.empty() || ids.empty())
        refuse(row.where, str("field '", field, "' is empty"), "drop the row, or give it a text");
      example.add_sequence(ids, std::vector<uint8_t>(ids.size(), 0));
    };
    add(row.query, config_.query_field.c_str());
    add(row.positive, config_.positive_field.c_str());
    for (const Value& negative : negatives) add(negative, config_.negative_field.value_or("negative").c_str());
    example.set({"negatives", data::Column::Per::example, std::vector<int64_t>{int64_t(negatives.size())}});
    out.example = std::move(example);
    return out;
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    const auto sequences = int64_t(batch.cu_seqlens.size()) - 1;
    batch.weight = double(is_triplet() ? sequences - 2 * batch.examples : batch.examples);
    return batch;
  }

  void begin_update(const models::Model& model, std::span<const UpdatePart> parts) override {
    parts_.clear();
    if (is_triplet() || parts.size() < 2) return;
    const c10::AutoGradMode no_grad(false);
    for (const UpdatePart& part : parts)
      parts_.push_back(of_all_ranks(vectors_of(model, part.batch, part.forwarding), part.forwarding));
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    const Vectors own = vectors_of(model, batch, forwarding);
    if (is_triplet()) return triplet_loss(own, batch, forwarding);
    Vectors all = of_all_ranks(own, forwarding);
    const auto in_part = double(all.queries.size(0));
    double in_update = in_part;
    if (forwarding.training && !parts_.empty()) {
      std::vector<Vectors> parts = parts_;
      parts.at(size_t(forwarding.part)) = all;
      all = Vectors::joined(parts);
      in_update = double(all.queries.size(0));
    }
    Loss out;
    const Tensor loss = by_sizes(all, forwarding.metrics, out.metrics, &Embedding::contrast);
    // The gradients of all parts add up to that of the loss times the weight of all, and its values to that sum.
    const double share = in_update / in_part;
    out.sum = (loss * share + loss.detach() * (1 - share)) * batch.weight;
    return out;
  }

  void updated(const models::Model&, int64_t) override { parts_.clear(); }

  void write_files(const std::filesystem::path& folder) const override {
    int64_t longest = common_.max_length.value_or(0);
    if (longest <= 0 || (positions_ > 0 && positions_ < longest)) longest = positions_;
    models::write_embedding(spec_, size_, longest, config_.matryoshka_dims.value_or(std::vector<int64_t>{}), folder);
    if (const auto settings = model_folder_ / settings_file; !model_folder_.empty() && files::is_file(settings))
      files::write(folder / settings_file, files::read(settings));
  }

 private:
  bool is_triplet() const { return config_.loss_type == EmbeddingLoss::triplet; }

  std::vector<int32_t> encode(const std::string& text, int64_t& cut) const {
    return encoded(*tokenizer_, text, std::nullopt, common_, cut).ids;
  }

  // Of a batch's texts. flat_batch orders them: all queries, all positives, all first negatives, all second ones.
  Vectors vectors_of(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const {
    nn::Pass pass;
    const models::Outputs outputs = forwarding.run(model, batch, pass);
    const Tensor rows = models::embeddings(spec_, outputs.hidden, batch.tokens, pass);
    const int64_t n = batch.examples;
    return {rows.slice(0, 0, n), rows.slice(0, n, 2 * n), rows.slice(0, 2 * n)};
  }

  static Vectors of_all_ranks(const Vectors& own, const Forwarding& how) {
    return {how.gather(own.queries), how.gather(own.positives), how.gather(own.negatives)};
  }

  // The mean of a loss over the sizes of matryoshka_dims, or that of the whole vectors; its metric beside it.
  template <class... More>
  Tensor by_sizes(const Vectors& all, bool metrics, std::vector<Metric>& out,
                  Tensor (Embedding::*loss)(const Vectors&, Metric&, const More&...) const, const More&... more) const {
    if (!config_.matryoshka_dims) {
      Metric metric;
      const Tensor mean = (this->*loss)(all, metric, more...);
      if (metrics) out.push_back(metric);
      return mean;
    }
    Tensor sum;
    for (const int64_t size : *config_.matryoshka_dims) {
      const Vectors cut = all.of_size(size);
      Metric metric;
      const Tensor one = (this->*loss)(
          {of_length_one(cut.queries), of_length_one(cut.positives), of_length_one(cut.negatives)}, metric, more...);
      metric.name += str("_dim", size);
      if (metrics) out.push_back(metric);
      sum = sum.defined() ? sum + one : one;
    }
    return sum / double(config_.matryoshka_dims->size());
  }

  // InfoNCE: the cross-entropy of the query's own text among all positives and negatives.
  Tensor contrast(const Vectors& all, Metric& metric) const {
    const Tensor candidates = at::cat({all.positives, all.negatives});
    const Tensor scores = at::matmul(all.queries, candidates.t()) / config_.temperature;
    const Tensor own = at::arange(all.queries.size(0), scores.options().dtype(at::kLong));
    const auto count = double(own.size(0));
    metric = {"contrastive_accuracy", scores.detach().argmax(1).eq(own).sum().item<double>(), count,
              Metric::Over::everything};
    return -at::log_softmax(scores, 1).gather(1, own.unsqueeze(1)).mean();
  }

  // The sum over the triplets of a part: how much nearer the positive should have been, in squared distances.
  Tensor violations(const Vectors& all, Metric& metric, const Tensor& owners) const {
    const Tensor queries = all.queries.index_select(0, owners), positives = all.positives.index_select(0, owners);
    const Tensor near = (queries - positives).square().sum(1), far = (queries - all.negatives).square().sum(1);
    const Tensor violated = (near - far + config_.margin).clamp_min(0);
    metric = {"fraction_active_triplets", violated.detach().gt(0).sum().item<double>(), double(owners.size(0)),
              Metric::Over::everything};
    return violated.sum();
  }

  Loss triplet_loss(const Vectors& own, const Batch& batch, const Forwarding& forwarding) const {
    std::vector<int64_t> owners;
    const Tensor counts = batch.column("negatives");
    const auto* const count = counts.const_data_ptr<int64_t>();
    for (int64_t round = 0; int64_t(owners.size()) < own.negatives.size(0); ++round)
      for (int64_t i = 0; i < batch.examples; ++i)
        if (count[i] > round) owners.push_back(i);
    Loss out;
    const Tensor rows = at::tensor(owners, at::kLong).to(own.queries.device());
    out.sum = by_sizes(own, forwarding.metrics, out.metrics, &Embedding::violations, rows);
    return out;
  }

  EmbeddingConfig config_;
  TrainerConfig common_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::filesystem::path model_folder_;
  models::EmbeddingSpec spec_;
  int64_t size_ = 0;            // of a vector
  int64_t positions_ = 0;       // of the model; 0: no limit
  std::vector<Vectors> parts_;  // of the update that is computed, without gradients; empty: it has one part
};

}  // namespace

MethodEntry embedding() {
  return {"embedding",
          [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Embedding>(setting); }};
}

}  // namespace easydel::train
