#include "easydel/generation/search.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/generation/answer_text.h"
#include "easydel/generation/sampler.h"
#include "easydel/ops/score.h"

namespace easydel::generation {
namespace {

float log_probability(std::span<const float> scores, TokenId token, double temperature = 1) {
  const Tensor row = at::from_blob(const_cast<float*>(scores.data()), {1, std::ssize(scores)}, at::kFloat);
  return ops::label_logps(temperature == 1 ? row : row.div(temperature), at::full({1}, int64_t(token), at::kLong))
      .item<float>();
}

// The tokens that may still be drawn; empty: all.
std::vector<TokenId> tokens_left(std::span<const float> scores) {
  std::vector<TokenId> out;
  for (size_t id = 0; id < scores.size(); ++id)
    if (scores[id] != never_drawn) out.push_back(TokenId(id));
  if (out.size() == scores.size()) out.clear();
  return out;
}

class SingleSearch final : public Search {
 public:
  SingleSearch(const Request& request, size_t first, size_t choice, int64_t max_length, const Surroundings& around)
      : Search(request, first, max_length, 1, around),
        choice_(choice),
        text_(around.tokenizer, {request.config.stop_strings.begin(), request.config.stop_strings.end()},
              request.prompt) {
    results_.resize(1);
  }

  void cancel() override { end(StopReason::cancelled); }

  void draw_ahead() override {
    // Constraints are the caller's; what results keep and what guidance changes is done in advance().
    if (request_.allowed || sequences_.size() != 1 || request_.config.output_logits) return;
    const Tensor& scores = sequences_[0].scores;
    const std::span<float> row(scores.data_ptr<float>(), size_t(scores.numel()));
    if (!std::isnan(row.front()) || !std::isnan(row.back())) drawn_ = drawn(row);
  }

 private:
  void choose(std::span<const std::span<float>> rows, nn::Cache&) override {
    if (request_.config.output_logits) results_[0].logits.push_back(std::move(logits_[0]));
    const TokenId token = drawn_ ? *std::exchange(drawn_, std::nullopt) : drawn(rows[0]);
    for (Sequence& sequence : sequences_) sequence.tokens.push_back(token);
    accept(token);
  }

  // The next token; what results keep of the scores, which are changed.
  TokenId drawn(std::span<float> scores) {
    const GenerationConfig& config = request_.config;
    const std::vector<TokenId>& tokens = sequences_[0].tokens;
    Result& result = results_[0];
    std::vector<float> logits;
    if (request_.logps && !chain_.empty()) logits.assign(scores.begin(), scores.end());
    apply(chain_, {tokens, request_.prompt.size()}, scores);
    if (config.output_scores) result.scores.emplace_back(scores.begin(), scores.end());
    const TokenId token = config.greedy() ? likeliest(scores) : pick(scores, draw(config.seed, choice_, tokens.size()));
    if (!request_.logps) return token;
    const double temperature = config.temperature > 0 ? config.temperature : 1;
    result.kept_logps.push_back(log_probability(scores, token));
    // Without a chain the scores are the logits.
    result.logps.push_back(
        chain_.empty() && temperature == 1
            ? result.kept_logps.back()
            : log_probability(chain_.empty() ? scores : std::span<float>(logits), token, temperature));
    if (request_.kept) result.kept.push_back(tokens_left(scores));
    return token;
  }

  void accept(TokenId token) {
    Result& result = results_[0];
    if (is_end(token)) {
      result.end = token;
      return finish(StopReason::end, token);
    }
    result.tokens.push_back(token);
    const std::string piece = text_.push(token);
    const bool go_on = !around_.on_text || around_.on_text(first_, token, piece);
    if (text_.stopped()) return end(StopReason::stop_string);
    if (!go_on) return end(StopReason::cancelled);
    if (int64_t(sequences_[0].tokens.size()) >= max_length_) return finish(StopReason::length, token);
    if (out_of_time()) finish(StopReason::max_time, token);
  }
  // The rest of the text is emitted only when nothing more can follow it.
  void finish(StopReason reason, TokenId token) {
    const std::string rest = text_.finish();
    if (around_.on_text && !rest.empty()) around_.on_text(first_, token, rest);
    end(text_.stopped() ? StopReason::stop_string : reason);
  }
  void end(StopReason reason) { results_[0].text = text_.text(), results_[0].reason = reason, done_ = true; }

  size_t choice_;                 // index among the results of its request
  std::optional<TokenId> drawn_;  // by draw_ahead
  AnswerText text_;
};

}  // namespace

Search::Search(const Request& request, size_t first, int64_t max_length, size_t width, const Surroundings& around)
    : request_(request),
      first_(first),
      width_(width),
      max_length_(max_length),
      around_(around),
      chain_(make_chain(request.config, {request.prompt, max_length, around.vocabulary, request.allowed})),
      sequences_(request.config.guidance_scale == 1 ? width : 2 * width) {
  sequences_[0].tokens = request.prompt;
  if (sequences_.size() > width)
    sequences_[width].tokens =
        request.negative_prompt.empty() ? std::vector{request.prompt.back()} : request.negative_prompt;
  for (Sequence& sequence : sequences_) sequence.prompt = sequence.tokens.size(), sequence.adapter = request.adapter;
}

bool Search::untouched() const {
  return !done_ && std::ranges::all_of(sequences_, [](const Sequence& sequence) {
    return sequence.seen == 0 && sequence.tokens.size() == sequence.prompt && !sequence.scores.defined();
  });
}

bool Search::adopt_prompt(Search& from, nn::Cache& cache) {
  if (!untouched() || !from.shares_prompt(*this) || !from.ready()) return false;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const Sequence& made = from.sequences_[i];
    if (made.tokens.size() != made.prompt) return false;  // it has gone on already
    cache.copy(made.slot, sequences_[i].slot);
    sequences_[i].seen = made.seen, sequences_[i].known = made.known;
    sequences_[i].scores = made.scores.clone();
  }
  return true;
}

bool Search::ready() const { return !done_ && std::ranges::none_of(sequences_, &Sequence::waiting); }

void Search::advance(nn::Cache& cache) {
  std::vector<std::span<float>> rows;
  std::vector<Tensor> used;  // sequences that continue without scores have none
  for (Sequence& sequence : sequences_) {
    used.push_back(std::exchange(sequence.scores, {}));
    if (used.back().defined()) rows.emplace_back(used.back().data_ptr<float>(), size_t(used.back().numel()));
  }
  // A NaN in a hidden state makes every score of its row a NaN.
  for (const auto& row : rows)
    if (std::isnan(row.front()) && std::isnan(row.back()) && !request_.config.remove_invalid_values) {
      // The weights are looked through only now: reading all of them before would take as long as loading them.
      const std::string weight = around_.broken_weight ? around_.broken_weight() : "";
      if (!weight.empty())
        refuse(weight, "holds values that are not finite (NaN or infinity), so the model's scores are NaN",
               "fetch the weights again, or go back to a checkpoint from before the training diverged");
      refuse(str("prompt ", first_ + 1), "the model's scores are not numbers (NaN), though its weights are finite",
             "values overflow the dtype: set dtype to fp32");
    }
  logits_.clear();
  if (request_.config.output_logits)
    for (const auto& row : rows) logits_.emplace_back(row.begin(), row.end());
  if (sequences_.size() > width_) {
    const size_t half = rows.size() / 2;
    for (size_t i = 0; i < half; ++i) {
      log_softmax(rows[i]);
      log_softmax(rows[half + i]);
      guide(rows[i], rows[half + i], request_.config.guidance_scale);
    }
    rows.resize(half);
  }
  choose(rows, cache);
}

bool Search::is_end(TokenId token) const {
  return std::ranges::find(request_.config.eos_token_id, token) != request_.config.eos_token_id.end();
}

bool Search::out_of_time() const {
  if (!request_.config.max_time) return false;
  return seconds_since(around_.begin) >= *request_.config.max_time;
}

std::vector<Result> Search::take_results() {
  for (Result& result : results_) {
    result.prompt_tokens = int64_t(request_.prompt.size());
    result.prefill_seconds = prefill_seconds, result.decode_seconds = decode_seconds;
  }
  return std::move(results_);
}

std::unique_ptr<Search> make_single_search(const Request& request, size_t first, size_t choice, int64_t max_length,
                                           const Surroundings& around) {
  return std::make_unique<SingleSearch>(request, first, choice, max_length, around);
}

}  // namespace easydel::generation
