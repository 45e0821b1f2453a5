// Runs the model over what the scheduler has planned. Everything that is ATen happens here, on the thread that calls
// run(). No torch in this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "easydel/esurge/page_pools.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::models {
class Model;
}
namespace easydel::nn {
class LoadedAdapter;
}

namespace easydel::esurge {

class RankLeader;
using text::TokenId;
class PooledText;

// Tokens of one sequence that a step computes.
struct RunSequence {
  int64_t begin = 0;                              // position of the first one
  std::vector<TokenId> tokens = {};               // one after the other
  int64_t prompt = 0;                             // number of prompt tokens of the whole sequence
  int64_t known = 0;                              // tokens of the whole sequence that are known
  std::vector<std::vector<int32_t>> tables = {};  // by group, as SequencePages has them
  int64_t draws = 0;                              // of its last tokens: those whose scores are wanted
  // Prompt tokens from this position on have their scores computed as well.
  int64_t scored_from = std::numeric_limits<int64_t>::max();
  std::shared_ptr<const nn::LoadedAdapter> adapter = {};  // null: the model alone
  int64_t part = 0;                                       // of the ranks: the data part that computes it
  // Gets the hidden states of the tokens, and with the last one its vector; nothing is drawn then. Null: no text that
  // is pooled.
  std::shared_ptr<PooledText> pooled = {};
};

// The scores of one token of a sequence.
struct ScoredRow {
  size_t sequence = 0;            // index in the list that runs
  int64_t position = 0;           // of the token in its sequence; these are scores of the next one
  std::span<const float> logits;  // [vocabulary], valid as long as ModelRunner::run() says
};

// Of the bits of all rows, in their order: ranks that compute the same rows have the same.
uint64_t digest_of(std::span<const ScoredRow> rows);
// The vectors of texts of a data part that a step has pooled, in the place of scores. They are valid as long as the
// texts.
std::vector<ScoredRow> pooled_rows(std::span<const RunSequence> sequences, int64_t part);

struct ModelFacts {
  CacheLayout layout = {};
  int64_t vocabulary = 0;
  int64_t max_positions = 0;  // 0: no limit
  // As models::Model has them.
  int64_t restart_length = 0, turning_length = 0;
  std::string cache_format = {};  // of keys and values: "bf16"
  std::string order = {};         // class of the order of additions: equal ones give equal bits
  bool whole_texts = false;       // as ModelRunner has it
  bool operator==(const ModelFacts&) const = default;
};

class ModelRunner {
 public:
  // whole_texts: sequences are pooled texts that a pass computes whole, and no pages are kept. Throws UserError as
  // model_cache(). The model must outlive the runner.
  ModelRunner(const models::Model& model, int64_t page_size, bool whole_texts = false);
  ~ModelRunner();

  const ModelFacts& facts() const { return facts_; }
  // UserError: the runner cannot go on with this model, because it has other facts.
  void check_fits(const models::Model& model) const;
  // Goes on with it; it must outlive the runner. UserError as check_fits().
  void use(const models::Model& model);
  const std::string& pooling_refusal() const;  // as Pooler has it
  // With several ranks, before reserve(): on the first one, so that each run() is sent to the others and returns when
  // all have computed it; it throws as RankLeader then. On all of them: the data part whose sequences this rank
  // computes.
  void lead(std::shared_ptr<RankLeader> ranks);
  void compute_part(int64_t part);
  // Reserves addresses for the pages. Called once, before run().
  void reserve(const CacheBudget& budget);
  // The contents of a page or state, page_bytes of its group. Between two run().
  void read_page(int group, int32_t page, std::span<std::byte> to) const;
  void write_page(int group, int32_t page, std::span<const std::byte> from);

  using OnRows = std::function<void(std::span<const ScoredRow> rows)>;
  // Applies `before`, runs the sequences in one pass (a few, if frequencies of positions depend on lengths), applies
  // `after`. on_prompt gets the rows of prompts, some at a time; then on_draws, unless it is empty, gets all rows that
  // tokens are drawn from, in the order of the sequences. Those of on_prompt are valid during the call, those of
  // on_draws as long as what run() returns lives.
  std::shared_ptr<const void> run(std::span<const PageOp> before, std::span<const RunSequence> sequences,
                                  std::span<const PageOp> after, const OnRows& on_prompt, const OnRows& on_draws);

  // Seconds of a pass over a prompt of so many tokens, which uses the first pages of each group and gives their memory
  // back. Between two run().
  double seconds_of_prompt(int64_t tokens);

  // Calls work(task) for each task in [0, tasks), on the threads of the kernels.
  void share(int64_t tasks, const std::function<void(int64_t task)>& work) const;

 private:
  struct Parts;
  struct Kept;
  void compute(std::span<const PageOp> before, std::span<const RunSequence> sequences, std::span<const PageOp> after,
               const OnRows& on_prompt, Kept& kept);

  std::unique_ptr<Parts> parts_;
  ModelFacts facts_;
};

}  // namespace easydel::esurge
