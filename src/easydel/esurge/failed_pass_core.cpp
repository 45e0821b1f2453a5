// What becomes of the sequences of a pass that failed.
#include <algorithm>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/esurge/step_engine_parts.h"

namespace easydel::esurge {

std::string failure_text(const std::exception& error) {
  const std::string_view text = error.what();
  // The second one is what the tensor library's own allocator says.
  if (!dynamic_cast<const std::bad_alloc*>(&error) && text.find("can't allocate memory") == text.npos)
    return std::string(text);
  return "model: no memory is left to compute this request\n"
         "    shorten its prompt, or lower esurge.hbm_utilization or esurge.max_num_batched_tokens";
}

void StepEngine::Parts::run_one_by_one(Step& step) {
  const bool states = options.layout.state_group() >= 0;
  for (size_t i = 0; i < step.sequences.size(); ++i) try {
      // Keys are written once more with the same bits.
      states ? run_from_its_beginning(step, i) : run_entries(step, i, 1, {}, {});
    } catch (const std::exception& error) {
      if (has_lost_ranks()) return;
      fail(*step.requests[i], failure_text(error));
    }
  try {
    runner.run({}, {}, step.plan.after, {}, {});
  } catch (const std::exception&) {
    if (!has_lost_ranks()) throw;
  }
}

void StepEngine::Parts::end_without_ranks() {
  lost = setup.ranks->lost();
  due |= !live.empty();
  for (const auto& [id, request] : live) {
    fail(*request, lost);
    scheduler.abort(id);
  }
}

// A pass that fails may leave a state between two tokens, so all tokens of the sequence are computed again. Its pages
// get the bits that they have, which other sequences may share.
void StepEngine::Parts::run_from_its_beginning(Step& step, size_t index) {
  RunSequence& last = step.sequences[index];
  const auto passed = [](const std::vector<int32_t>& table) { return std::ranges::find(table, -1) != table.end(); };
  check(std::ranges::none_of(last.tables, passed), "a pass failed, and pages that the sequence needs to be computed ",
        "again have been passed by a window");
  const int state_group = options.layout.state_group();
  std::vector<PageOp> clear = {{PageOp::Kind::clear, state_group, -1, last.tables[size_t(state_group)].front(), 0}};
  const std::vector<TokenId> before = step.requests[index]->tokens_read(step.plan.entries[index].id, 0, last.begin);
  for (int64_t begin = 0; begin < last.begin;) {
    RunSequence part = last;
    part.begin = begin, part.draws = 0, part.scored_from = std::numeric_limits<int64_t>::max();
    const int64_t end = std::min(last.begin, begin + options.scheduler.max_num_batched_tokens);
    part.tokens.assign(before.begin() + begin, before.begin() + end);
    runner.run(std::exchange(clear, {}), {&part, 1}, {}, [](std::span<const ScoredRow>) {}, {});
    begin = end;
  }
  run_entries(step, index, 1, clear, {});
}

}  // namespace easydel::esurge
