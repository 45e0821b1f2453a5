#include "easydel/train/density_ratio.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/hub/resolve.h"
#include "easydel/models/embedding.h"
#include "easydel/tensor/random.h"
#include "easydel/train/marked_answers.h"

namespace easydel::train {
namespace {

constexpr const char* embedding_key = "trainer.embedding_model";
constexpr size_t tokens_at_a_time = 4096;

// Embeds texts; frees the model with itself.
class Embedder {
 public:
  explicit Embedder(const std::string& name) {
    const std::filesystem::path folder = hub::resolve_model(name, embedding_key);
    if (!text::Tokenizer::exists(folder))
      refuse(embedding_key, "'" + name + "' has no tokenizer", "give a folder with its tokenizer's files");
    models::LoadOptions load;
    load.task = models::Task::base;
    model_ = models::load_model(folder, load);
    tokenizer_ = text::Tokenizer::load(folder);
    spec_ = models::read_embedding(*model_);
  }

  // fp64 [texts, size]
  Tensor operator()(const std::vector<std::string>& texts) const {
    const c10::AutoGradMode no_grad(false);
    std::vector<Tensor> out;
    std::vector<int64_t> ids, begins{0};
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::vector<int32_t> own = ids_of(texts[i]);
      ids.insert(ids.end(), own.begin(), own.end());
      begins.push_back(int64_t(ids.size()));
      if (i + 1 < texts.size() && ids.size() < tokens_at_a_time) continue;
      nn::Pass pass = nn::Pass::over(begins);
      const Tensor tokens = at::tensor(ids, at::kLong).to(model_->device());
      const Tensor hidden = model_->forward({tokens}, pass).hidden;
      out.push_back(models::embeddings(spec_, hidden, tokens, pass).to(at::kCPU, at::kDouble));
      ids.clear(), begins = {0};
    }
    return at::cat(out);
  }

 private:
  // Without special tokens, as TRL; a text without tokens has those that the tokenizer adds.
  std::vector<int32_t> ids_of(const std::string& text) const {
    std::vector<int32_t> ids = tokenizer_->encode(text, {.add_special_tokens = false});
    if (ids.empty()) ids = tokenizer_->encode(text);
    if (ids.empty()) refuse(embedding_key, "a prompt has no tokens", "drop rows with an empty prompt");
    if (const int64_t most = model_->max_positions(); most > 0 && int64_t(ids.size()) > most) ids.resize(size_t(most));
    return ids;
  }

  std::shared_ptr<models::Model> model_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  models::EmbeddingSpec spec_;
};

// The prompts of a dataset's examples, and which answers are good.
struct Prompts {
  std::vector<std::string> texts;
  std::vector<uint8_t> good;

  Prompts(const data::Dataset& set, const text::Tokenizer& tokenizer) {
    for (int64_t i = 0; i < set.examples_count(); ++i) {
      const data::Example example = set.at(i);
      const auto learned = std::ranges::find_if(example.labels, [](int32_t one) { return one != data::no_label; });
      const auto prompt = size_t(learned - example.labels.begin()) + 1;  // labels are shifted
      texts.push_back(tokenizer.decode({example.tokens.data(), std::min(prompt, example.tokens.size())}));
      good.push_back(std::get<std::vector<int64_t>>(example.find(answer_is_good)->values).at(0) != 0);
    }
  }

  // At most so many of the good or the bad ones.
  std::vector<std::string> sample(bool of_good, int64_t most, uint64_t seed) const {
    std::vector<size_t> places;
    for (size_t i = 0; i < texts.size(); ++i)
      if ((good[i] != 0) == of_good) places.push_back(i);
    if (int64_t(places.size()) > most) {
      const tensor::Key key = tensor::key_of(seed, of_good ? "good prompts" : "bad prompts");
      std::vector<uint32_t> draws(texts.size());
      for (const size_t place : places) draws[place] = tensor::philox(key, 0, place)[0];
      std::ranges::sort(places, {}, [&](size_t place) { return std::pair(draws[place], place); });
      places.resize(size_t(most));
    }
    std::vector<std::string> out;
    for (const size_t place : places) out.push_back(texts[place]);
    return out;
  }
};

}  // namespace

LogisticClassifier LogisticClassifier::fit(const Tensor& x, const Tensor& positive) {
  const c10::AutoGradMode no_grad(false);
  const int64_t count = x.size(0), size = x.size(1);
  const double positives = positive.sum().item<double>(), negatives = double(count) - positives;
  check(positives > 0 && negatives > 0, "a classifier of one class");
  const auto numbers = x.options();
  const Tensor rows = at::cat({x, at::ones({count, 1}, numbers)}, 1), target = positive.to(at::kDouble);
  const Tensor weight = double(count) / 2 * (target / positives + (1 - target) / negatives);
  Tensor penalty = at::ones({size + 1}, numbers);
  penalty[size].zero_();
  const auto loss = [&](const Tensor& at) {
    const Tensor score = at::mv(rows, at), signs = 2 * target - 1;
    return (0.5 * (penalty * at * at).sum() - (weight * at::log_sigmoid(signs * score)).sum()).item<double>();
  };
  // Newton's method; the loss is convex.
  Tensor found = at::zeros({size + 1}, numbers);
  double least = loss(found);
  for (int step = 0; step < 100; ++step) {
    const Tensor p = at::sigmoid(at::mv(rows, found));
    const Tensor gradient = at::mv(rows.t(), weight * (p - target)) + penalty * found;
    const Tensor curvature = rows.t().mm((weight * p * (1 - p)).unsqueeze(1) * rows) + at::diag(penalty + 1e-12);
    const Tensor way = at::linalg_solve(curvature, gradient);
    double part = 1;
    while (part > 1e-6 && loss(found - part * way) > least) part /= 2;
    found = found - part * way;
    least = loss(found);
    if ((part * way).abs().max().item<double>() < 1e-10) break;
  }
  return {found.slice(0, 0, size), found[size].item<double>()};
}

Tensor LogisticClassifier::probability(const Tensor& x) const {
  return at::sigmoid(at::mv(x, coefficients) + intercept);
}

void add_density_ratios(const DensityRatio& options, const Examination& of, const text::Tokenizer& tokenizer) {
  if (of.sets.empty()) return;
  const Embedder embed(options.model);
  std::vector<Prompts> sets;
  for (const data::Dataset* const set : of.sets) sets.emplace_back(*set, tokenizer);
  const std::vector<std::string> good = sets[0].sample(true, options.samples, options.seed),
                                 bad = sets[0].sample(false, options.samples, options.seed);
  if (good.empty() || bad.empty())
    refuse(embedding_key, good.empty() ? "no answer of the data is good" : "no answer of the data is bad",
           "give data with both, or leave the key out");
  const auto count_good = int64_t(good.size()), count_bad = int64_t(bad.size());
  const Tensor positive = at::cat({at::ones({count_good}, at::kBool), at::zeros({count_bad}, at::kBool)});
  const auto classifier = LogisticClassifier::fit(at::cat({embed(good), embed(bad)}), positive);
  for (size_t s = 0; s < sets.size(); ++s) {
    const std::vector<std::string> all_bad = sets[s].sample(false, INT64_MAX, 0);
    Tensor ratios = at::zeros({0}, at::kDouble);
    if (!all_bad.empty()) {
      const Tensor p = classifier.probability(embed(all_bad));
      ratios = (p / (1 - p + 1e-8)).clamp(options.min, options.max);
    }
    int64_t next = 0;
    for (size_t i = 0; i < sets[s].good.size(); ++i)
      of.sets[s]->add_numbers(int64_t(i), density_ratio_column,
                              std::vector<float>{sets[s].good[i] ? 1.0F : ratios[next++].item<float>()});
  }
  log::info(embedding_key, ": the ratio is estimated from ", counted(count_good, "prompt"), " of good answers and ",
            count_bad, " of bad ones");
}

}  // namespace easydel::train
