// Log-probabilities of given continuations, for evaluation: any number of requests at once, what they begin with in
// common computed once. score_text.h makes requests from texts by the rules of lm-evaluation-harness.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "easydel/generation/rank_state.h"
#include "easydel/generation/score_request.h"
#include "easydel/models/model.h"

namespace easydel::generation {

struct ScorerOptions {
  int64_t max_length = 0;              // tokens that the model reads of a request; 0: its positions, or 2048
  int64_t pass_tokens = 1024;          // tokens of a pass, if the requests are no longer
  int64_t pass_requests = 0;           // sequences of a pass; 0: no limit
  bool share = true;                   // compute beginnings that several requests share once
  double memory_share = 0.5;           // of the free memory, for the caches of shared beginnings
  int64_t memory_bytes = 0;            // instead, if it is not 0; ranks must have the same number
  const std::atomic<bool>* stop = {};  // set by another thread: run() throws Stopped after the current pass
  // With several ranks: gives the others this rank's state and returns the last one of all. Ranks may then have
  // different requests: one without any left computes a pass that nobody reads as long as others work, because a
  // forward over sharded weights is collective. If a rank ends, run() throws Stopped on the others.
  RankExchange exchange = {};
};

// What a scorer has done so far.
struct ScorerCounts {
  int64_t requests = 0;
  int64_t tokens = 0;    // that the model would have read, request by request
  int64_t computed = 0;  // that it read
  int64_t passes = 0;
};

// A log-probability has the bits of the trainer's forward over the request alone, whatever else is asked, however
// passes are filled, and with sharing or without.
class Scorer {
 public:
  // UserError: not a causal language model, or a max_length beyond the model's positions. The model must outlive it.
  explicit Scorer(const models::Model& model, ScorerOptions options = {});

  // Called when a request's answer is complete, with its index; in the order in which they are.
  using OnScore = std::function<void(size_t request, const TokenScores& scores)>;
  // In the order of the requests. UserError, before anything is computed: an empty context or continuation, an id
  // outside the vocabulary, a continuation longer than max_length; later: a log-probability that is not a number. Not
  // thread-safe. With several ranks collective: without `exchange` each gives the same requests.
  std::vector<TokenScores> run(const std::vector<ScoreRequest>& requests, const OnScore& on_score = {});

  int64_t max_length() const { return max_length_; }
  const ScorerCounts& counts() const { return counts_; }

  // What keeps this request from being scored; empty: nothing.
  std::string problem_of(const ScoreRequest& request) const;

  struct Stopped {};

 private:
  class Run;
  const models::Model& model_;
  ScorerOptions options_;
  int64_t max_length_;
  ScorerCounts counts_;
};

}  // namespace easydel::generation
