#include "esurge/fake_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "easydel/esurge/saved_prefix_index.h"

namespace easydel::test {
namespace {

constexpr uint64_t garbage = 0xdeadbeefdeadbeef;

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

CacheGroup full_group(int64_t bytes) { return {CacheGroup::Kind::full, bytes, 0}; }
CacheGroup window_group(int64_t span, int64_t bytes) { return {CacheGroup::Kind::window, bytes, span}; }
CacheGroup chunk_group(int64_t span, int64_t bytes) { return {CacheGroup::Kind::chunk, bytes, span}; }
CacheGroup state_group(int64_t bytes) { return {CacheGroup::Kind::state, bytes, 0}; }

std::vector<TokenId> text_of(int64_t size, TokenId first) {
  std::vector<TokenId> text(static_cast<size_t>(size));
  std::iota(text.begin(), text.end(), first);
  return text;
}

SchedulerRequest request_of(std::vector<TokenId> prompt, int64_t max_tokens) {
  SchedulerRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

uint64_t FakeModel::begin(const CacheRoot& root) const {
  uint64_t hash = 1;
  for (const std::string& part : {root.weights, root.adapter, root.format, root.salt})
    for (const char c : part + "|") hash = mix(hash, uint64_t(c));
  return mix(hash, uint64_t(root.adapter_version * 31 + root.frequency_class));
}
uint64_t FakeModel::next(uint64_t hash, TokenId token, bool generated) const {
  return mix(hash, uint64_t(token) * 2 + (roles_matter && generated ? 1 : 0));
}
TokenId FakeModel::draw(uint64_t hash, int64_t choice) const {
  return TokenId(mix(hash, 1000 + uint64_t(choice)) % uint64_t(vocabulary));
}
bool FakeModel::stops(uint64_t hash, int64_t choice) const {
  return stop_every > 0 && mix(hash, 2000 + uint64_t(choice)) % uint64_t(stop_every) == 0;
}

std::vector<TokenId> FakeModel::answer(const SchedulerRequest& request, int64_t choice) const {
  uint64_t hash = begin(request.root);
  for (const TokenId token : request.prompt) hash = next(hash, token, false);
  std::vector<TokenId> out;
  while (int64_t(out.size()) < request.max_tokens) {
    out.push_back(draw(hash, choice));
    if (stops(hash, choice)) break;
    hash = next(hash, out.back(), true);
  }
  return out;
}

// The second most likely token is often the one that comes.
TokenLogprobs FakeModel::scores(uint64_t hash, TokenId next, int64_t count) const {
  const auto logprob = [&](TokenId id) { return -float(mix(hash, uint64_t(id)) % 4096) / 64; };
  TokenLogprobs out;
  for (TokenId i = 0; i < TokenId(count); ++i) out.token_ids.push_back(10000 + i);
  if (count > 1 && hash % 2 == 0) out.token_ids[1] = next;
  out.chosen = size_t(std::ranges::find(out.token_ids, next) - out.token_ids.begin());
  if (out.chosen == out.token_ids.size()) out.token_ids.push_back(next);
  for (const TokenId id : out.token_ids) out.logprobs.push_back(logprob(id));
  return out;
}

std::vector<TokenLogprobs> FakeModel::prompt_scores(const SchedulerRequest& request) const {
  std::vector<TokenLogprobs> out;
  uint64_t hash = begin(request.root);
  for (size_t i = 0; i + 1 < request.prompt.size(); ++i) {
    hash = next(hash, request.prompt[i], false);
    out.push_back(scores(hash, request.prompt[i + 1], request.prompt_scores->count));
  }
  return out;
}

FakeEngine::FakeEngine(SchedulerConfig config, CacheLayout shape, int64_t budget_bytes, FakeModel fake)
    : layout(shape),
      model(fake),
      scheduler(config, shape, {budget_bytes, false}),
      config_(config),
      storage_(shape.groups.size()) {
  model.roles_matter = layout.roles_matter;
}

RequestId FakeEngine::add(SchedulerRequest request) {
  const RequestId id = scheduler.add(request);
  asked[id] = std::move(request);
  return id;
}

uint64_t& FakeEngine::row(int group, int32_t page, int64_t row) {
  auto& pages = storage_[size_t(group)];
  if (size_t(page) >= pages.size()) pages.resize(size_t(page) + 1);
  if (pages[size_t(page)].empty()) pages[size_t(page)].assign(size_t(layout.page_size), garbage);
  return pages[size_t(page)][size_t(row)];
}

void FakeEngine::apply(const std::vector<PageOp>& ops) {
  for (const PageOp& op : ops) {
    const bool state = layout.groups[size_t(op.group)].kind == CacheGroup::Kind::state;
    if (op.kind == PageOp::Kind::copy) {
      ++copies;
      for (int64_t i = 0; i < (state ? 1 : op.rows); ++i) row(op.group, op.to, i) = row(op.group, op.from, i);
    } else if (op.kind == PageOp::Kind::clear) {
      ++clears;
      row(op.group, op.to, 0) = 0;
    } else {
      ++releases;
      for (int64_t i = 0; i < layout.page_size; ++i) row(op.group, op.to, i) = garbage;
    }
  }
}

StepPlan FakeEngine::step(double now) {
  Planned next;
  if (drafts)
    for (const auto& [id, request] : asked)
      for (int64_t choice = 0; choice < request.choices; ++choice)
        if (const SequenceId sequence{id, choice}; scheduler.known(sequence)) {
          next.drafts[{id, choice}] = drafts(sequence);
          scheduler.propose(sequence, int64_t(next.drafts[{id, choice}].size()));
        }
  next.plan = scheduler.schedule(now);
  ++steps;
  for (const StepEntry& entry : next.plan.entries) {
    next.tables.push_back(scheduler.pages(entry.id).tables);
    for (size_t g = 0; g < layout.groups.size(); ++g) {
      const auto held = std::ranges::count_if(next.tables.back()[g], [](int32_t page) { return page >= 0; });
      windows_are_bounded &= held <= layout.max_pages(layout.groups[g], entry.begin + entry.tokens,
                                                      config_.max_num_batched_tokens * config_.steps_in_flight);
    }
    digest = mix(digest, uint64_t(entry.id.request * 64 + entry.id.choice));
    digest = mix(digest, uint64_t(entry.begin * 4096 + entry.tokens * 8 + entry.draws));
    for (const auto& table : next.tables.back())
      for (const int32_t page : table) digest = mix(digest, uint64_t(page + 1));
  }
  preemptions += int64_t(next.plan.preempted.size());
  StepPlan plan = next.plan;
  const bool empty = plan.entries.empty();
  planned_.push_back(std::move(next));
  if (int64_t(planned_.size()) >= config_.steps_in_flight || empty) run_oldest();
  collect();
  return plan;
}

void FakeEngine::finish_all() {
  while (!planned_.empty()) run_oldest();
  collect();
}

void FakeEngine::run_oldest() {
  const Planned now = std::move(planned_.front());
  planned_.pop_front();
  apply(now.plan.before);
  std::vector<StepResult> results;
  for (size_t e = 0; e < now.plan.entries.size(); ++e) {
    const StepEntry& entry = now.plan.entries[e];
    const auto& tables = now.tables[e];
    const SchedulerRequest& request = asked.at(entry.id.request);
    std::vector<TokenId> tokens = scheduler.tokens(entry.id);
    const int64_t end = entry.begin + entry.tokens, real = end - entry.drafts;
    if (int64_t(tokens.size()) < real) continue;  // it has ended, and what was to come did not
    tokens.resize(size_t(real));
    if (entry.drafts > 0) {
      const auto& guess = now.drafts.at({entry.id.request, entry.id.choice});
      tokens.insert(tokens.end(), guess.begin(), guess.begin() + entry.drafts);
    }
    std::vector<uint64_t> hashes;
    uint64_t hash = model.begin(request.root);
    for (size_t i = 0; i < tokens.size(); ++i)
      hashes.push_back(hash = model.next(hash, tokens[i], i >= request.prompt.size()));
    computed_tokens += entry.tokens;
    if (PromptScores* const scores = request.prompt_scores.get())
      for (auto at = int64_t(scores->rows.size()); at < end && at + 1 < int64_t(request.prompt.size()); ++at) {
        EXPECT_GE(at, entry.begin) << "the scores of a token that is not computed are not there";
        scores->rows.push_back(model.scores(hashes[size_t(at)], request.prompt[size_t(at) + 1], scores->count));
        ++scored_tokens;
      }
    std::vector<StepResult> drawn;
    for (int64_t c = 0; c < entry.draws; ++c) {
      StepResult result{{entry.id.request, entry.id.choice + c}, {}};
      for (int64_t at = real - 1; at < end; ++at) {
        const TokenId token = model.draw(hashes[size_t(at)], result.id.choice);
        result.tokens.push_back(token);
        result.stopped = model.stops(hashes[size_t(at)], result.id.choice);
        const bool goes_on = at + 1 < end && tokens[size_t(at) + 1] == token && !result.stopped;
        if (at + 1 < end) ++(goes_on ? accepted : rejected);
        if (!goes_on) break;
      }
      drawn.push_back(std::move(result));
    }
    for (size_t g = 0; g < tables.size(); ++g) {
      const CacheGroup& group = layout.groups[g];
      const auto& table = tables[g];
      if (group.kind == CacheGroup::Kind::state) {
        uint64_t& state = row(int(g), table[0], 0);
        EXPECT_EQ(state, entry.begin == 0 ? 0 : hashes[size_t(entry.begin) - 1]) << "state before " << entry.begin;
        state = hashes[size_t(end) - 1];
        continue;
      }
      const auto at = [&](int64_t position) -> uint64_t& {
        const int32_t page = table.at(size_t(position / layout.page_size));
        EXPECT_GE(page, 0) << "position " << position << " of group " << g << " has no page";
        return row(int(g), std::max(page, 0), position % layout.page_size);
      };
      for (int64_t i = entry.begin; i < end; ++i) at(i) = hashes[size_t(i)];
      for (const int64_t query : {entry.begin, end - 1})
        for (int64_t i = group.first_visible(query); i <= query; ++i)
          ASSERT_EQ(at(i), hashes[size_t(i)]) << "group " << g << ", query " << query << ", position " << i;
    }
    for (StepResult& result : drawn) results.push_back(std::move(result));
  }
  apply(now.plan.after);
  // Results come in the plan's order; what has ended meanwhile gives none.
  collect();
  for (const StepResult& result : results) {
    FakeAnswer& out = answers[{result.id.request, result.id.choice}];
    if (out.ended) continue;
    out.tokens.insert(out.tokens.end(), result.tokens.begin(), result.tokens.end());
    out.steps.insert(out.steps.end(), result.tokens.size(), now.plan.step);
  }
  scheduler.finish(results);
}

void FakeEngine::collect() {
  for (const SequenceEnd& end : scheduler.take_ended()) {
    FakeAnswer& out = answers[{end.id.request, end.id.choice}];
    EXPECT_FALSE(out.ended) << "request " << end.id.request << " ends twice";
    out.ended = true, out.end = end;
  }
}

void FakeEngine::run(int64_t most) {
  for (int64_t i = 0; i < most && scheduler.requests() > 0; ++i) step();
  finish_all();
  EXPECT_EQ(scheduler.requests(), 0) << "after " << most << " steps";
}

void FakeEngine::restore_index(const FakeEngine& from) {
  std::vector<std::vector<int32_t>> ids;
  const std::string bytes = from.scheduler.cache().index().save(ids).encode(from.layout);
  for (const auto& [group, number, page] : scheduler.restore_index(decode_prefix_index(bytes, layout)))
    for (int64_t i = 0; i < layout.page_size; ++i)
      row(group, page, i) = from.storage_[size_t(group)][size_t(ids[size_t(group)][size_t(number)])][size_t(i)];
}

int64_t FakeEngine::tokens_of(const StepPlan& plan, RequestId id) const {
  int64_t sum = 0;
  for (const StepEntry& entry : plan.entries)
    if (entry.id.request == id) sum += entry.tokens;
  return sum;
}

}  // namespace easydel::test
