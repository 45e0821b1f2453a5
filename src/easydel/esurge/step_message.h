// What the first rank sends to the others for a step: everything that a pass depends on. Sampling is not part of it,
// because the first rank alone chooses tokens; the tokens that it chose, speculated ones included, are in the next
// step. What it asks of them between steps is in rank_order.h. No torch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/esurge/cache_layout.h"
#include "easydel/esurge/model_runner.h"
#include "easydel/esurge/request.h"

namespace easydel::esurge {

// What the ranks must have in common before the first step.
struct StartMessage {
  ModelFacts facts;
  int64_t budget_bytes = 0;  // of pages and states, on each rank; from a rank to the first one: its free memory
};
std::string encode(const StartMessage& message);
// UserError: damaged bytes.
StartMessage decode_start(std::string_view bytes);
// UserError that names the first difference: the other rank has another model, or computes it otherwise.
void refuse_other_facts(const ModelFacts& first_rank, const ModelFacts& other, const std::string& other_rank);

// What a sequence refers to besides its pages, by numbers that all ranks know.
struct SharedParts {
  uint64_t adapter = 0;  // LoadAdapter::number; 0: none
  // Of a text that is pooled: a number that it has in all of its steps, its tokens, and how it is pooled. 0: none.
  uint64_t text = 0;
  std::vector<TokenId> ids = {};
  PooledPrompt asked = {};
};
// What a step says of the parts that ranks have in common.
struct StepShared {
  std::vector<SharedParts> of_sequences = {};                 // empty: none refers to any
  std::vector<uint64_t> gone_adapters = {}, gone_texts = {};  // no later step refers to them
};
struct StepMessage {
  int64_t number = 0;  // of the step, from 1; 0: there are no more
  std::vector<PageOp> before, after;
  std::vector<RunSequence> sequences;  // without adapters and texts, which are in `shared`
  StepShared shared = {};
};
std::string encode_step(int64_t number, std::span<const PageOp> before, std::span<const RunSequence> sequences,
                        std::span<const PageOp> after, const StepShared& shared = {});

// What numbers of a message may be, so that a pass never reads or writes outside of its storage.
struct StepBounds {
  int64_t vocabulary = 0;
  CacheLayout layout = {};
  std::vector<int64_t> ids = {};  // number of page ids, by group
};
StepBounds step_bounds(const StartMessage& start);
// UserError: damaged bytes, or numbers beyond the bounds.
StepMessage decode_step(std::string_view bytes, const StepBounds& bounds);

// What a rank answers when it has computed a step.
struct StepReply {
  int64_t number = 0;
  uint64_t digest = 0;     // of the scores that tokens are drawn from
  std::string error = {};  // the rank failed, and ends
  std::string text = {};   // what an order asks for
};
std::string encode(const StepReply& reply);
StepReply decode_reply(std::string_view bytes);  // UserError: damaged bytes

// Scores and vectors that the first rank of another data part sends before its reply.
struct SentRows {
  enum class Kind : uint8_t {
    prompt,  // scores of prompts
    draw,    // scores that tokens are drawn from
    vector,  // of texts that are pooled
  };
  Kind kind = Kind::draw;
  std::vector<ScoredRow> rows;  // they refer to `values`
  std::vector<float> values;    // [rows, vocabulary], or [rows, size of a vector]
};
std::string encode_rows(std::span<const ScoredRow> rows, SentRows::Kind kind);
bool is_rows(std::string_view bytes);
// UserError: damaged bytes.
SentRows decode_rows(std::string_view bytes);

}  // namespace easydel::esurge
