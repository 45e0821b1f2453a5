// The state of one request from its prompt to its results: the sequences that the model reads for it, and the use of
// the scores that it returns. The generator runs the passes over the model.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "easydel/generation/generator.h"
#include "easydel/nn/cache.h"

namespace easydel::generation {

// A sequence in a slot of the cache.
struct Sequence {
  std::vector<TokenId> tokens;  // none: not in use
  int64_t slot = -1;
  size_t prompt = 0;                                      // number of prompt tokens among them
  size_t seen = 0;                                        // tokens in the cache
  size_t known = 0;                                       // tokens it had when those were first computed
  std::shared_ptr<const nn::LoadedAdapter> adapter = {};  // Request::adapter
  Tensor scores;  // fp32 [vocabulary] after its last token, its own storage; undefined: not computed yet

  bool waiting() const { return !tokens.empty() && !scores.defined(); }
  size_t unseen() const { return tokens.size() - seen; }
  bool decoding() const { return seen > 0 && unseen() == 1; }
};

// What searches of one run share.
struct Surroundings {
  std::shared_ptr<const text::Tokenizer> tokenizer;  // may be null
  int64_t vocabulary = 0;
  OnText on_text;
  std::chrono::steady_clock::time_point begin;
  std::function<std::string()> broken_weight = {};  // the name of a weight with NaN or infinity; empty: none
};

class Search {
 public:
  // `first`: index of its first result in the run. `max_length`: tokens at most, including the prompt. `width`: number
  // of sequences.
  Search(const Request& request, size_t first, int64_t max_length, size_t width, const Surroundings& around);
  virtual ~Search() = default;

  // The sequences, followed by as many with the negative prompt if there is guidance.
  std::span<Sequence> sequences() { return sequences_; }
  // Call it when all sequences have scores: chooses tokens. Sequences that continue have one more token afterwards.
  void advance(nn::Cache& cache);
  // The part of advance() that changes nothing but this search and calls nobody, where there is one: searches that are
  // ready can do it at the same time.
  virtual void draw_ahead() {}
  virtual void cancel() = 0;
  bool done() const { return done_; }
  bool ready() const;
  bool keeps_cache() const { return request_.config.use_cache; }
  size_t first() const { return first_; }
  // Takes over what a search of the same request has computed of the prompt, if this one has computed nothing. Returns
  // whether it has.
  bool adopt_prompt(Search& from, nn::Cache& cache);
  // Whether `other` will be able to adopt this one's prompt.
  bool shares_prompt(const Search& other) const { return &request_ == &other.request_ && keeps_cache(); }
  bool untouched() const;              // nothing has been computed for it
  std::vector<Result> take_results();  // once done

  double prefill_seconds = 0, decode_seconds = 0;

 protected:
  // rows[i] are the scores of sequence i (of the prompt's), guided, to be changed in place.
  virtual void choose(std::span<const std::span<float>> rows, nn::Cache& cache) = 0;
  bool is_end(TokenId token) const;
  bool out_of_time() const;

  const Request& request_;
  size_t first_, width_;
  int64_t max_length_;
  const Surroundings& around_;
  Chain chain_;
  std::vector<Sequence> sequences_;
  std::vector<std::vector<float>> logits_;  // the rows as the model gave them, where results keep them
  std::vector<Result> results_;
  bool done_ = false;
};

// Greedy or sampled: one sequence. `choice` is its index among the results of its request; draws depend on it.
std::unique_ptr<Search> make_single_search(const Request& request, size_t first, size_t choice, int64_t max_length,
                                           const Surroundings& around);
// Beam search and beam sampling: config.num_beams sequences.
std::unique_ptr<Search> make_beam_search(const Request& request, size_t first, int64_t max_length,
                                         const Surroundings& around);

}  // namespace easydel::generation
