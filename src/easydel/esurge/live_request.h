// A request while the engine has it: its answers so far, and the results that they become. Used on the thread of steps
// alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "easydel/esurge/beam_answers.h"
#include "easydel/esurge/guided_rows.h"
#include "easydel/esurge/model_runner.h"
#include "easydel/esurge/prepared_request.h"
#include "easydel/esurge/prompt_lookup.h"
#include "easydel/esurge/results.h"
#include "easydel/esurge/step_engine.h"
#include "easydel/generation/answer_text.h"

namespace easydel::esurge {

class PooledText;

// How tokens are speculated: by a draft model, or by looking up what followed the same tokens earlier.
struct DraftOptions {
  int64_t max_drafts = 0;  // for a step; 0: nothing is speculated
  int64_t min_ngram = 2, max_ngram = 4;
  bool by_model = false;
  double price = 0;  // of a draft, as DraftCount takes it
};

// One choice.
class Answer {
 public:
  Answer(const PreparedRequest& prepared, int64_t choice, std::shared_ptr<const text::Tokenizer> tokenizer,
         int64_t vocabulary, const DraftOptions& lookup, bool measures);

  // The prompt, and the tokens that came.
  const std::vector<TokenId>& tokens() const { return tokens_; }
  int64_t generated() const { return int64_t(tokens_.size()) - prepared_.prompt_tokens(); }
  std::optional<FinishReason> reason() const { return reason_; }
  bool ended() const { return reason_.has_value(); }
  bool stopped() const { return reason_ == FinishReason::stop; }

  // Only in a beam search: the score of each possible next token. UserError: the row or the constraint allows none.
  std::vector<float> beam_scores(std::span<const float> logits) const;
  // Only in a beam search: the beam goes on from other tokens.
  void set_tokens(std::vector<TokenId> tokens) { tokens_ = std::move(tokens); }
  // Chooses the next token from a row and adds it. UserError: the constraint allows none.
  TokenId choose(std::span<const float> logits);
  // What follows from the token that was chosen last, where the model gave these scores: its log-probabilities, the
  // text, and whether it is the end. UserError: the scores are not numbers; the token is taken back then.
  void accept(std::span<const float> logits);
  // Makes the mask of the next token, if there is a constraint, so that choose() need not.
  void prepare_mask();
  // The tokens that are speculated for the next step, in which `rows` tokens are computed without any.
  const std::vector<TokenId>& propose(int64_t rows);
  const std::vector<TokenId>& drafts() const { return drafts_; }
  // Of a draft model: how many tokens it should guess for such a step, the choice of one from its scores after the
  // tokens so far and `drafts` (the way choose() does it, with the same draw), and what it guessed.
  int64_t wanted_drafts(int64_t rows);
  TokenId guess(std::span<const float> logits, std::span<const TokenId> drafts) const;
  void set_drafts(std::vector<TokenId> drafts) { drafts_ = std::move(drafts); }
  // The step verified `tried` of them, and the first `accepted` were right.
  void verified(int64_t tried, int64_t accepted) { draft_count_.record(tried, accepted); }
  // Ends it for a reason that its tokens do not have.
  void end(FinishReason reason);

  // What was measured since the last call: seconds of masks, and of each row, if that is wanted, the entropy and minus
  // the log-probability of the token that came.
  struct Measured {
    std::vector<double> mask_seconds, entropies, surprises;
  };
  Measured take_measured();

  double mean_logprob() const { return generated() == 0 ? 0 : cumulative_logprob_ / double(generated()); }
  // `all`: of the whole answer, else of what is new since the last call.
  CompletionOutput output(bool all);

 private:
  // What choose() looks at: `logits` themselves, or memory of this thread.
  std::span<const float> processed(std::span<const float> logits, std::span<const TokenId> history) const;
  TokenId pick(std::span<const float> scores, size_t position) const;

  const PreparedRequest& prepared_;
  int64_t choice_, vocabulary_;
  bool measures_;
  Measured measured_;
  std::shared_ptr<AllowedMasks> masks_;  // null: there is no constraint
  generation::Chain chain_;
  std::vector<TokenId> tokens_;
  std::optional<generation::AnswerText> text_;  // if the request wants text
  struct Reasoning {
    text::ReasoningWatch watch;
    text::DecodeStream text;  // with special tokens, which its markers may be
  };
  std::optional<Reasoning> reasoning_;  // if stop strings do not count there
  std::vector<TokenLogprobs> logprobs_;
  double cumulative_logprob_ = 0;
  std::optional<PromptLookup> lookup_;  // nothing: no token is speculated
  DraftCount draft_count_;
  std::vector<TokenId> drafts_;
  std::optional<FinishReason> reason_;
  std::variant<std::monostate, std::string, TokenId> stop_reason_;
  size_t shown_tokens_ = 0, shown_bytes_ = 0;
};

struct LiveRequest {
  LiveRequest(RequestId id, PreparedRequest prepared, OnOutput on_output,
              const std::shared_ptr<const text::Tokenizer>& tokenizer, int64_t vocabulary, const DraftOptions& lookup,
              bool measures, double now);

  RequestId id;
  const PreparedRequest prepared;
  OnOutput on_output;
  std::vector<std::unique_ptr<Answer>> answers;  // by choice
  std::unique_ptr<BeamAnswers> beams;            // what `answers` become in a beam search; else null
  std::unique_ptr<GuidedRows> guided;            // with guidance; else null
  RequestId negative_id = 0;                     // of the scheduler's request that reads the negative prompt; 0: none
  generation::TokenScores scores = {};           // of the continuation
  std::shared_ptr<PooledText> pooled = {};       // null: it is not pooled
  std::string error = {};
  std::string fingerprint = {};                           // of what answers it
  std::shared_ptr<const nn::LoadedAdapter> adapter = {};  // that it began with; null: none
  int64_t part = 0;                                       // of the ranks: the data part that computes it
  int64_t unended = 0, preemptions = 0, recomputed_tokens = 0, cached_tokens = 0, update_seq = 0;
  int64_t accepted_drafts = 0, rejected_drafts = 0;  // speculated tokens that were right, and that were not
  bool timed_out = false, changed = false, prompt_shown = false, end_shown = false;
  double arrived = 0;
  std::optional<double> admitted, first_token, last_token;

  // Tokens [begin, end) of a sequence that the scheduler has for it, as far as they are known: of a choice after the
  // prompt, or after the negative one.
  std::vector<TokenId> tokens_read(SequenceId id, int64_t begin, int64_t end) const;
  int64_t prompt_read(RequestId of) const {
    return of == negative_id ? int64_t(prepared.negative_prompt.size()) : prepared.prompt_tokens();
  }
  // When all rows of a guided request are there: chooses the next token of each choice, or hands the rows on to
  // `beams`. Returns how the choices go on; nothing if `beams` decide, or all are done. UserError as Answer::choose and
  // accept.
  std::vector<BeamStep> advance_guided();
  // The first position whose scores are requested although no token is drawn from them (prompt_logprobs, a continuation
  // that is scored); nullopt: there is none.
  std::optional<int64_t> scored_from() const;
  // What is kept of a row whose scores are requested although no token is drawn from it: of the prompt token after
  // row.position the log-probabilities, of a token of the continuation its own and whether it is the likeliest.
  struct ReadRow {
    TokenLogprobs logprobs = {};
    float logprob = 0;
    bool is_greedy = false;
  };
  ReadRow read_row(const ScoredRow& row) const;  // on any thread, while nothing changes
  void add_row(int64_t position, ReadRow row);
  // The token of the continuation after a position.
  TokenId continuation_token(int64_t position) const {
    return (*prepared.request.continuation)[size_t(position - prepared.first_score())];
  }
  void end(const SequenceEnd& end);
  // Whether there is something for its listener now.
  bool has_output() const;
  RequestOutput output(double now);

 private:
  // What the parsers of a conversation have taken out of an answer so far.
  struct Parsed {
    text::OutputParser parser;
    text::Message message = {};
    size_t read = 0;  // bytes of the answer that the parser has
    bool finished = false;
  };

  std::vector<CompletionOutput> outputs(bool finished);
  void parse(CompletionOutput& output, size_t answer);

  std::vector<Parsed> parsed_;  // by choice, of a beam search by rank; empty: the prompt is not a conversation
};

}  // namespace easydel::esurge
