// The answers of a beam search, whose beams are the sequences of one request.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "easydel/esurge/prepared_request.h"
#include "easydel/esurge/results.h"
#include "easydel/generation/answer_text.h"
#include "easydel/generation/beams.h"

namespace easydel::esurge {

class BeamAnswers {
 public:
  // `prepared` must outlive it.
  BeamAnswers(const PreparedRequest& prepared, std::shared_ptr<const text::Tokenizer> tokenizer);

  // The scores of each token after the tokens of a choice: log-probabilities that the request's processors have
  // changed. `logits`: as the model gave them. For different choices from several threads.
  void add_scores(int64_t choice, std::vector<float> scores, std::span<const float> logits);
  bool has_all_scores() const;  // of the beams that run
  // Chooses, when all scores are there. Returns how each choice goes on; none: the search is done.
  std::vector<BeamStep> advance();
  // Prompt and tokens of a choice.
  const std::vector<TokenId>& tokens(int64_t choice) const { return beam(choice).tokens; }
  // The best answers, as many as the request asks for. All end for `reason`; if it is empty, each ends for its own.
  std::vector<CompletionOutput> outputs(std::optional<FinishReason> reason) const;

 private:
  // Choices beyond the beams that run repeat the first one.
  const generation::Beam& beam(int64_t choice) const {
    return beams_.running()[size_t(choice) < beams_.running().size() ? size_t(choice) : 0];
  }
  bool is_end(const std::vector<TokenId>& tokens) const;
  void keep_logprobs();                                                   // of the tokens that advance() has added
  generation::AnswerText text_of(std::span<const TokenId> tokens) const;  // of prompt and answer, the answer's

  const PreparedRequest& prepared_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  generation::Beams beams_;
  std::vector<std::vector<float>> scores_;  // by choice; empty: they are missing, or there are fewer beams
  // By choice: whether its row has come. Those without a beam are computed, too, so they are waited for.
  std::vector<uint8_t> came_;
  size_t steps_ = 0;  // that advance() has made
  // With logprobs: what they are taken from, by choice; and those of each token that a beam has taken, by its index in
  // the answer, the index of the beam that it continued, and its id.
  std::vector<std::vector<float>> rows_;
  std::map<std::tuple<size_t, int64_t, TokenId>, TokenLogprobs> logprobs_;
};

}  // namespace easydel::esurge
