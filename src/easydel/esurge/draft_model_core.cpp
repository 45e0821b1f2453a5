#include "easydel/esurge/draft_model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/models/model.h"

namespace easydel::esurge {

DraftModel::DraftModel(std::shared_ptr<const models::Model> model, int64_t page_size)
    : model_(std::move(model)), runner_(*model_, page_size) {
  model_->head();
}

void DraftModel::reserve(const CacheBudget& budget) {
  runner_.reserve(budget);
  pools_ = std::make_unique<PagePools>(layout(), budget.bytes);
}

bool DraftModel::take(int group, int32_t& page) {
  while (!pools_->fits(group)) {
    // What was used least recently, but nothing that this call uses.
    const auto oldest = std::ranges::min_element(sequences_, {}, [](const auto& entry) {
      return entry.second.tables.empty() ? std::numeric_limits<int64_t>::max() : entry.second.used;
    });
    if (oldest == sequences_.end() || oldest->second.tables.empty() || oldest->second.used == clock_) return false;
    give_back(oldest->second);
    sequences_.erase(oldest);
  }
  page = pools_->take(group, ops_);
  return true;
}

bool DraftModel::take_pages(Sequence& sequence, int64_t from, int64_t tokens) {
  const int state_group = layout().state_group();
  sequence.tables.resize(layout().groups.size());
  for (int g = 0; g < int(layout().groups.size()); ++g) {
    auto& table = sequence.tables[size_t(g)];
    const CacheGroup& group = layout().groups[size_t(g)];
    const int64_t wanted = g == state_group ? 1 : layout().pages_of(tokens);
    // What is read never goes back behind `from` again.
    const int64_t first = group.bounded() ? group.first_visible(from) / layout().page_size : 0;
    for (int64_t i = 0; i < std::min(first, int64_t(table.size())); ++i)
      if (const int32_t passed = std::exchange(table[size_t(i)], -1); passed >= 0) pools_->give_back(g, passed);
    while (int64_t(table.size()) < wanted) {
      if (int64_t(table.size()) < first) {
        table.push_back(-1);
        continue;
      }
      int32_t page = -1;
      if (!take(g, page)) return false;
      table.push_back(page);
      if (g == state_group) ops_.push_back({PageOp::Kind::clear, g, -1, page, 0});
    }
  }
  return state_group < 0 || sequence.scratch >= 0 || take(state_group, sequence.scratch);
}

void DraftModel::give_back(Sequence& sequence) {
  for (size_t g = 0; g < sequence.tables.size(); ++g)
    for (const int32_t page : sequence.tables[g])
      if (page >= 0) pools_->give_back(int(g), page);
  if (sequence.scratch >= 0) pools_->give_back(layout().state_group(), sequence.scratch);
  sequence = {};
}

void DraftModel::forget(RequestId request) {
  const auto first = sequences_.lower_bound({request, 0}), last = sequences_.lower_bound({request + 1, 0});
  for (auto at = first; at != last; ++at) give_back(at->second);
  sequences_.erase(first, last);
}

void DraftModel::release() {
  for (auto& [id, sequence] : sequences_) give_back(sequence);
  sequences_.clear();
  pools_->release_free(ops_);
  runner_.run(std::exchange(ops_, {}), {}, {}, {}, {});
}

void DraftModel::run(std::vector<RunSequence> sequences, std::vector<Run*> runs) {
  const auto on_draws = [&](std::span<const ScoredRow> rows) {
    runner_.share(int64_t(rows.size()), [&](int64_t task) {
      const ScoredRow& row = rows[size_t(task)];
      Run& own = *runs[row.sequence];
      try {
        own.wish->drafts.push_back(own.wish->choose(row.logits, own.wish->drafts));
      } catch (const UserError&) {
        own.goes_on = false;
      }
    });
  };
  runner_.run(std::exchange(ops_, {}), sequences, {}, {}, on_draws);
}

void DraftModel::draft(std::span<Wish> wishes, int64_t tokens) {
  ++clock_;
  const int state_group = layout().state_group();
  const int64_t most = runner_.facts().max_positions, vocabulary = runner_.facts().vocabulary;
  const int64_t restart = runner_.facts().restart_length;
  std::vector<Run> all;
  all.reserve(wishes.size());
  std::vector<RunSequence> reads;
  std::vector<Run*> readers;
  for (Wish& wish : wishes) {
    const auto size = int64_t(wish.tokens.size());
    if (most > 0) wish.count = std::min(wish.count, most - size);
    if (size <= restart) wish.count = std::min(wish.count, restart - size + 1);
    if (wish.count <= 0) continue;
    Sequence& sequence = sequences_[{wish.id.request, wish.id.choice}];
    if (sequence.known <= restart && size > restart) give_back(sequence);  // its keys have other frequencies now
    sequence.used = clock_;
    if (sequence.drafted_at == wish.tokens.size()) {  // it was not computed since
      wish.drafts.assign(sequence.drafts.begin(),
                         sequence.drafts.begin() + std::min(wish.count, int64_t(sequence.drafts.size())));
      continue;
    }
    auto& read = sequence.read;
    read.resize(size_t(std::ranges::mismatch(read, wish.tokens).in1 - read.begin()));
    read.resize(std::min(read.size(), wish.tokens.size() - 1));
    const auto begin = int64_t(read.size()), count = std::min(size - begin, tokens);
    const auto unread = wish.tokens.subspan(size_t(begin), size_t(count));
    if (count == 0 || std::ranges::any_of(unread, [&](TokenId id) { return id >= vocabulary; })) continue;
    if (!take_pages(sequence, begin, size + wish.count - 1)) {
      give_back(sequence);
      sequence.used = clock_;
      continue;
    }
    tokens -= count;
    sequence.known = size;
    Run& run = all.emplace_back(Run{&wish, &sequence});
    run.goes_on = begin + count == size;
    if (run.goes_on) sequence.drafted_at = wish.tokens.size(), sequence.drafts.clear();
    read.insert(read.end(), unread.begin(), unread.end());
    readers.push_back(&run);
    reads.push_back({begin, {unread.begin(), unread.end()}, wish.prompt, size, sequence.tables, run.goes_on ? 1 : 0});
  }
  if (!reads.empty()) run(std::move(reads), std::move(readers));
  for (int64_t guessed = 1;; ++guessed) {
    std::vector<RunSequence> guesses;
    std::vector<Run*> runs;
    for (Run& run : all) {
      if (!run.goes_on || int64_t(run.wish->drafts.size()) >= run.wish->count) continue;
      const auto size = int64_t(run.wish->tokens.size());
      RunSequence next{size + guessed - 1, {run.wish->drafts.back()}, run.wish->prompt,
                       size + guessed,     run.sequence->tables,      1};
      if (state_group >= 0) {
        // The state after the tokens that have come stays for those that will.
        int32_t& slot = next.tables[size_t(state_group)][0];
        if (guessed == 1) ops_.push_back({PageOp::Kind::copy, state_group, slot, run.sequence->scratch, 0});
        slot = run.sequence->scratch;
      } else {
        run.sequence->read.push_back(run.wish->drafts.back());
      }
      guesses.push_back(std::move(next));
      runs.push_back(&run);
    }
    if (guesses.empty()) break;
    run(std::move(guesses), std::move(runs));
  }
  for (const Run& run : all) run.sequence->drafts = run.wish->drafts;
}

}  // namespace easydel::esurge
