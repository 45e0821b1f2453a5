// A request as steps need it: tokens instead of text, what the context's rules left of it, and its settings for
// choosing tokens.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "easydel/esurge/constraint_cache.h"
#include "easydel/esurge/request.h"
#include "easydel/esurge/scheduler.h"
#include "easydel/generation/generation_config.h"
#include "easydel/generation/processors.h"
#include "easydel/text/constrain/constraint.h"
#include "easydel/text/output/output_parser.h"
#include "easydel/text/render_chat.h"

namespace easydel::esurge {

// The masks of one answer's constraint.
class AllowedMasks {
 public:
  // The seconds that each mask took are appended to `seconds`, which must outlive it.
  AllowedMasks(generation::AllowedTokens make, std::vector<double>& seconds)
      : make_(std::move(make)), seconds_(seconds) {}
  // As generation::AllowedTokens; valid until the next call.
  std::span<const uint64_t> allowed(std::span<const TokenId> before);
  // Makes the mask that the next allowed() is asked for.
  void prepare(std::span<const TokenId> before);

 private:
  generation::AllowedTokens make_;
  std::vector<double>& seconds_;
  std::optional<size_t> prepared_for_;  // number of tokens before the mask that is made; none: it is not
  std::span<const uint64_t> prepared_;
};

struct PreparedRequest {
  Request request;
  std::string prompt = {};          // its text, if there is a tokenizer
  SchedulerRequest scheduled = {};  // without its deadline
  generation::GenerationConfig config = {};
  std::vector<std::string> stops = {};
  int64_t truncated_tokens = 0, capped_tokens = 0;
  std::vector<uint64_t> allowed = {};  // a bit for each token; empty: all are allowed
  std::shared_ptr<const text::constrain::Constraint> constraint = nullptr;
  std::vector<TokenId> negative_prompt = {};  // of a guided request
  std::shared_ptr<const text::Tokenizer> tokenizer = nullptr;
  // Of a conversation: how its answer is parsed, and the part of the answer that the prompt ends with.
  text::OutputFormat format = {};
  std::string begun = {};
  std::optional<text::ReasoningWatch> reasoning = {};  // stop strings count only outside of it; none: everywhere

  int64_t prompt_tokens() const { return int64_t(scheduled.prompt.size()); }
  // Of a continuation that is scored: its last token is not among the prompt's, and the first of its scores is the row
  // of this position.
  bool is_scored() const { return request.continuation.has_value(); }
  int64_t first_score() const { return prompt_tokens() - int64_t(request.continuation->size()); }
  bool is_pooled() const { return request.pooled.has_value(); }
  bool is_end(TokenId token) const;
  bool is_beam_search() const { return config.num_beams > 1; }
  bool is_guided() const { return config.guidance_scale != 1; }
  // Every answer has its own. Null: nothing limits which tokens may follow.
  std::shared_ptr<AllowedMasks> masks(int64_t vocabulary, std::vector<double>& mask_seconds) const;
  // What changes the scores of one answer, with its masks. Every answer has its own.
  generation::Chain chain(int64_t vocabulary, const std::shared_ptr<AllowedMasks>& masks) const;
};

// Which texts an engine pools.
struct PoolingRules {
  bool only = false;                       // nothing is generated, and a text is computed whole in one step
  std::optional<int64_t> max_tokens = {};  // of a text; nullopt: the context
  std::string refusal = {};                // why the model pools none; empty: it does
};

// What requests are prepared with. Thread-safe.
class RequestPreparer {
 public:
  // `defaults`: the model's own generation config. The tokenizer may be null. UserError: a tool or reasoning parser
  // that is not known.
  RequestPreparer(std::shared_ptr<const text::Tokenizer> tokenizer, const EsurgeConfig& config, int64_t max_model_len,
                  int64_t vocabulary, generation::GenerationConfig defaults,
                  const std::optional<std::string>& chat_template, PoolingRules pooling = {});

  // UserError: everything that keeps the request from being served.
  PreparedRequest prepare(Request request) const;

 private:
  std::vector<TokenId> tokens_of(const Prompt& prompt) const;
  void settle_format(PreparedRequest& prepared) const;
  void settle_config(PreparedRequest& prepared) const;
  void settle_guidance(PreparedRequest& prepared) const;  // after its prompt and max_tokens
  void settle_constraint(PreparedRequest& prepared) const;
  void prepare_scores(PreparedRequest& prepared) const;
  void prepare_pooled(PreparedRequest& prepared) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  EsurgeConfig config_;
  int64_t max_model_len_, vocabulary_;
  generation::GenerationConfig defaults_;
  PoolingRules pooling_;
  std::optional<text::ChatRenderer> renderer_;
  text::OutputFormat format_;                     // of answers to conversations
  std::unique_ptr<ConstraintCache> constraints_;  // null: there is no tokenizer
};

}  // namespace easydel::esurge
