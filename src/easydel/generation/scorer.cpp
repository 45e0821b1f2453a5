#include "easydel/generation/scorer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/free_memory.h"
#include "easydel/generation/score_tree.h"
#include "easydel/models/not_finite.h"
#include "easydel/models/prefixes.h"
#include "easydel/nn/cache.h"

namespace easydel::generation {
namespace {

using text::TokenId;

constexpr int64_t default_length = 2048;  // of models without positions, as the harness
// A shorter common beginning is computed again: a pass of its own would cost more than its tokens.
constexpr int64_t min_shared = 8;
constexpr int64_t page_tokens = 64;  // sequences that end in a pass leave less of a page empty than with 128
constexpr size_t max_slots = 256;

int64_t count_of(const std::vector<TokenId>& tokens) { return int64_t(tokens.size()); }

// What the model reads of a request: all tokens but the last, at most max_length of them.
std::vector<TokenId> input_of(const ScoreRequest& request, int64_t max_length) {
  std::vector<TokenId> out = request.context;
  out.insert(out.end(), request.continuation.begin(), request.continuation.end() - 1);
  if (count_of(out) > max_length) out.erase(out.begin(), out.end() - max_length);
  return out;
}

int64_t state_bytes(const models::Model& model) {
  int64_t bytes = 0;
  for (const nn::CacheLayer& layer : model.cache_layers())
    for (const std::vector<int64_t>& shape : layer.states) {
      int64_t elements = 1;
      for (const int64_t size : shape) elements *= size;
      bytes += elements * int64_t(sizeof(float));
    }
  return bytes;
}

}  // namespace

class Scorer::Run {
 public:
  Run(Scorer& scorer, const std::vector<ScoreRequest>& requests, const OnScore& on_score)
      : model_(scorer.model_),
        options_(scorer.options_),
        counts_(scorer.counts_),
        requests_(requests),
        on_score_(on_score),
        left_(requests.size()),
        out_(requests.size()) {
    std::vector<size_t> shared;
    const int64_t alike = models::alike_length(model_);
    for (size_t i = 0; i < requests.size(); ++i) {
      inputs_.push_back(input_of(requests[i], scorer.max_length_));
      left_[i] = requests[i].continuation.size();
      out_[i].each.resize(left_[i]);
      counts_.tokens += count_of(inputs_[i]);
      const bool too_long = alike > 0 && count_of(inputs_[i]) > alike;
      if (options_.share && !too_long)
        shared.push_back(i);
      else
        add_whole(i);
    }
    counts_.requests += int64_t(requests.size());
    plan_shared(shared);
    const auto run_own = [&] {
      run_whole(options_.pass_requests);
      run_tree();
    };
    if (options_.exchange)
      run_with_others(run_own);
    else
      run_own();
  }

  std::vector<TokenScores> take() { return std::move(out_); }

 private:
  // Tokens of a pass, and the labels that are due after them.
  struct Part {
    std::span<const TokenId> tokens;
    std::span<const ScoredRow> rows;
    int64_t position = 0;  // of the first token
  };
  // A sequence that is computed in one piece, without a cache.
  struct Whole {
    size_t sequence;
    std::vector<ScoredRow> rows;
  };

  std::vector<ScoredRow> rows_of(size_t request) const {
    const std::vector<TokenId>& labels = requests_[request].continuation;
    std::vector<ScoredRow> rows;
    const int64_t first = count_of(inputs_[request]) - count_of(labels);
    for (size_t i = 0; i < labels.size(); ++i) rows.push_back({first + int64_t(i), labels[i], request, i});
    return rows;
  }

  void add_whole(size_t request) { whole_.push_back({request, rows_of(request)}); }

  void plan_shared(const std::vector<size_t>& requests) {
    std::vector<std::vector<TokenId>> sequences;
    for (const size_t request : requests) sequences.push_back(inputs_[request]);
    tree_ = make_score_tree(sequences, min_shared);
    for (ScoreNode& node : tree_.nodes) node.sequence = requests[node.sequence];
    for (size_t i = 0; i < requests.size(); ++i) {
      auto node = int64_t(tree_.last[i]);
      const std::vector<ScoredRow> rows = rows_of(requests[i]);
      for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
        while (row->position < tree_.nodes[size_t(node)].begin) node = tree_.nodes[size_t(node)].parent;
        tree_.nodes[size_t(node)].rows.push_back(*row);
      }
    }
    for (ScoreNode& node : tree_.nodes) std::ranges::stable_sort(node.rows, {}, &ScoredRow::position);
    // What nothing else begins with needs no cache.
    std::erase_if(tree_.roots, [this](size_t root) {
      ScoreNode& node = tree_.nodes[root];
      if (node.height > 0) return false;
      whole_.push_back({node.sequence, std::move(node.rows)});
      return true;
    });
    std::ranges::stable_sort(whole_, std::greater(), [this](const Whole& one) { return inputs_[one.sequence].size(); });
  }

  void begin_pass() {
    if (options_.stop && options_.stop->load(std::memory_order_relaxed)) throw Stopped();
    if (options_.exchange) exchange(RankState::works);
  }

  RankState exchange(RankState own) {
    const RankState all = options_.exchange(own);
    if (all == RankState::ended) others_know_ = true;
    if (all == RankState::ended && own != RankState::ended) throw Stopped();
    return all;
  }

  void run_with_others(const auto& run_own) {
    try {
      run_own();
      const std::vector<TokenId> token(1, 0);
      while (exchange(RankState::done) == RankState::works) {
        nn::Pass pass = nn::Pass::over({0, 1});
        compute(pass, {{token, {}}});
      }
    } catch (...) {
      if (!others_know_) exchange(RankState::ended);
      throw;
    }
  }

  // Whole sequences, longest first.
  void run_whole(int64_t most) {
    for (size_t first = 0; first < whole_.size();) {
      begin_pass();
      std::vector<int64_t> begins{0};
      std::vector<Part> parts;
      size_t end = first;
      for (; end < whole_.size() && (most == 0 || int64_t(end - first) < most); ++end) {
        const std::vector<TokenId>& tokens = inputs_[whole_[end].sequence];
        if (end > first && begins.back() + count_of(tokens) > options_.pass_tokens) break;
        begins.push_back(begins.back() + count_of(tokens));
        parts.push_back({tokens, whole_[end].rows});
      }
      nn::Pass pass = nn::Pass::over(std::move(begins));
      compute(pass, parts);
      first = end;
    }
  }

  // Nodes of the tree, depth first, as many in a pass as it holds.
  void run_tree() {
    if (tree_.roots.empty()) return;
    make_cache();
    ready_ = tree_.roots;
    slots_.assign(tree_.nodes.size(), -1);
    done_.assign(tree_.nodes.size(), 0);
    waiting_.resize(tree_.nodes.size());
    for (size_t i = 0; i < tree_.nodes.size(); ++i) waiting_[i] = tree_.nodes[i].children.size();
    while (!ready_.empty()) {
      begin_pass();
      run_pass();
    }
  }

  void make_cache() {
    int64_t height = 0, longest = 0;
    for (const size_t root : tree_.roots) {
      height = std::max(height, tree_.nodes[root].height);
      longest = std::max(longest, tree_.nodes[root].longest);
    }
    const auto memory = options_.memory_bytes > 0 ? std::nullopt : free_memory();
    limit_ = options_.memory_bytes > 0 ? options_.memory_bytes
             : memory                  ? int64_t(options_.memory_share * double(memory->bytes))
                                       : int64_t(1) << 32;
    int64_t slots = std::min<int64_t>(int64_t(std::min(tree_.nodes.size(), max_slots)),
                                      std::max<int64_t>(2, limit_ / 2 / std::max<int64_t>(1, state_bytes(model_))));
    slots = std::max(slots, height + 2);  // a sequence and all that it goes on from
    cache_ = std::make_unique<nn::Cache>(model_.make_cache(1, 1)->shape(), slots, 2 * page_tokens, page_tokens);
    for (int64_t slot = slots; slot-- > 0;) free_.push_back(slot);
    page_bytes_ = nn::PagePool(cache_->shape(), page_tokens, 0).page_bytes();
  }

  // Whether a node may begin now: it and the nodes below it have slots, and its tokens have memory.
  bool may_begin(const ScoreNode& node, int64_t planned_bytes, bool is_first) const {
    const bool takes_over = node.parent >= 0 && waiting_[size_t(node.parent)] == 1;
    if (int64_t(free_.size()) + (takes_over ? 1 : 0) < node.height + 1) return false;
    return is_first || cache_->bytes() + planned_bytes <= limit_;
  }

  void begin(size_t index) {
    const ScoreNode& node = tree_.nodes[index];
    if (node.parent >= 0 && --waiting_[size_t(node.parent)] == 0) {
      slots_[index] = std::exchange(slots_[size_t(node.parent)], -1);
      return;
    }
    slots_[index] = free_.back();
    free_.pop_back();
    if (node.parent >= 0) cache_->copy(slots_[size_t(node.parent)], slots_[index]);
  }

  void run_pass() {
    std::vector<size_t> chosen;
    std::vector<int64_t> slots, counts, prompts;
    std::vector<Part> parts;
    int64_t room = options_.pass_tokens, planned = 0;
    while (!ready_.empty() && room > 0) {
      if (options_.pass_requests > 0 && int64_t(chosen.size()) == options_.pass_requests) break;
      const size_t index = ready_.back();
      const ScoreNode& node = tree_.nodes[index];
      const int64_t count = std::min(room, node.end - node.begin - done_[index]);
      if (slots_[index] < 0) {
        const int64_t bytes = ((node.end - node.begin) / page_tokens + 2) * page_bytes_;
        if (!may_begin(node, planned + bytes, chosen.empty())) break;
        planned += bytes;
        begin(index);
      }
      ready_.pop_back();
      const int64_t from = node.begin + done_[index];
      chosen.push_back(index);
      slots.push_back(slots_[index]), counts.push_back(count), prompts.push_back(node.longest);
      const auto first = std::ranges::lower_bound(node.rows, from, {}, &ScoredRow::position),
                 end = std::ranges::lower_bound(node.rows, from + count, {}, &ScoredRow::position);
      parts.push_back({std::span(inputs_[node.sequence]).subspan(size_t(from), size_t(count)), {first, end}, from});
      room -= count;
    }
    check(!chosen.empty(), "scorer: no node can begin");
    const auto memory = cache_->next(slots, counts);
    nn::Pass pass = nn::Pass::next(*memory, prompts);
    pass.stream().lengths = std::move(prompts);
    compute(pass, parts);
    // What began last goes on first, so that nodes get their slots back in the order of may_begin.
    std::vector<size_t> unfinished;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const size_t index = chosen[i];
      const ScoreNode& node = tree_.nodes[index];
      done_[index] += counts[i];
      if (node.begin + done_[index] < node.end) {
        unfinished.push_back(index);
      } else if (node.height == 0) {
        cache_->truncate(slots_[index], 0);
        free_.push_back(slots_[index]);
      } else {
        ready_.insert(ready_.end(), node.children.begin(), node.children.end());
      }
    }
    ready_.insert(ready_.end(), unfinished.begin(), unfinished.end());
  }

  // One forward over the parts.
  void compute(nn::Pass& pass, const std::vector<Part>& parts) {
    const at::NoGradGuard no_gradient;
    int64_t total = 0;
    for (const Part& part : parts) total += int64_t(part.tokens.size());
    const Tensor tokens = at::empty({total}, at::kLong);
    int64_t* to = tokens.data_ptr<int64_t>();
    std::vector<int64_t> requested, picked, labels;
    int64_t before = 0;  // requested rows of the parts before
    for (const auto& [ids, rows, position] : parts) {
      to = std::ranges::copy(ids, to).out;
      const int64_t end = position + int64_t(ids.size());
      const int64_t first = rows.empty() ? end : rows.front().position;
      for (const ScoredRow& row : rows) {
        picked.push_back(before + row.position - first);
        labels.push_back(row.label);
      }
      requested.push_back(end - first);
      before += requested.back();
    }
    const bool is_idle = labels.empty();
    if (is_idle && options_.exchange) {  // the output layer is collective, too
      requested.back() = 1;
      picked = {0}, labels = {0};
    }
    pass.stream().requested = std::move(requested);
    const Tensor hidden = model_.forward({.tokens = tokens.to(model_.device())}, pass).hidden;
    counts_.computed += total, ++counts_.passes;
    if (labels.empty()) return;
    const Tensor due = hidden.index_select(0, at::tensor(picked, at::kLong).to(hidden.device()));
    const nn::Scores scores =
        model_.head().score(due, at::tensor(labels, at::kLong).to(hidden.device()), pass, {.correct = true});
    if (is_idle) return;
    const Tensor logps = scores.logps.to(at::kCPU).contiguous(), correct = scores.correct.to(at::kCPU).contiguous();
    const auto* const logp = logps.const_data_ptr<float>();
    const auto* const is_best = correct.const_data_ptr<bool>();
    size_t next = 0;
    for (const Part& part : parts)
      for (const ScoredRow& row : part.rows) {
        answer(row, logp[next], is_best[next]);
        ++next;
      }
  }

  void answer(const ScoredRow& row, float logp, bool is_best) {
    if (std::isnan(logp)) {
      const std::string broken = models::first_not_finite(model_);
      refuse("score", "the model's log-probabilities are not numbers",
             broken.empty() ? "its weights are numbers; try loader.dtype: fp32"
                            : str("the weight ", broken, " holds NaN or infinity"));
    }
    TokenScores& scores = out_[row.request];
    scores.each[row.index] = logp;
    scores.is_greedy &= is_best;
    if (--left_[row.request] > 0) return;
    for (const float each : scores.each) scores.logprob += double(each);
    if (on_score_) on_score_(row.request, scores);
  }

  const models::Model& model_;
  const ScorerOptions& options_;
  ScorerCounts& counts_;
  const std::vector<ScoreRequest>& requests_;
  const OnScore& on_score_;
  std::vector<std::vector<TokenId>> inputs_;  // by request
  std::vector<size_t> left_;                  // labels of each request that have no score yet
  std::vector<TokenScores> out_;
  std::vector<Whole> whole_;
  bool others_know_ = false;  // that this rank has ended, or another one

  ScoreTree tree_;
  std::unique_ptr<nn::Cache> cache_;
  int64_t limit_ = 0, page_bytes_ = 0;  // bytes that the caches may take; of a page
  std::vector<int64_t> free_;           // slots
  std::vector<int64_t> slots_, done_;   // of each node its slot, and how many of its tokens are computed
  std::vector<size_t> waiting_;         // of each node the children that have not begun
  std::vector<size_t> ready_;           // nodes whose parent is computed; the next one last
};

Scorer::Scorer(const models::Model& model, ScorerOptions options) : model_(model), options_(options) {
  if (!model.causal() || model.task() != models::Task::causal_lm)
    refuse("score", str("'", model.folder().string(), "' is not a causal language model"),
           "give one whose config.json names a ...ForCausalLM architecture");
  check(options_.pass_tokens > 0 && options_.pass_requests >= 0, "scorer: pass_tokens is at least 1");
  const int64_t positions = model.max_positions();
  if (positions > 0 && options_.max_length > positions)
    refuse("max_length", str(options_.max_length, " is more than the model's ", positions, " positions"));
  max_length_ = options_.max_length > 0 ? options_.max_length : positions > 0 ? positions : default_length;
}

std::string Scorer::problem_of(const ScoreRequest& request) const {
  if (request.context.empty()) return "the context has no tokens";
  if (request.continuation.empty()) return "the continuation has no tokens";
  if (count_of(request.continuation) > max_length_)
    return str("the continuation has ", request.continuation.size(), " tokens; the model reads at most ", max_length_);
  for (const std::vector<TokenId>* const ids : {&request.context, &request.continuation})
    for (const TokenId id : *ids)
      if (id < 0 || id >= model_.vocabulary())
        return str("there is no token ", id, "; the model's vocabulary has ", model_.vocabulary());
  return {};
}

std::vector<TokenScores> Scorer::run(const std::vector<ScoreRequest>& requests, const OnScore& on_score) {
  for (size_t i = 0; i < requests.size(); ++i)
    if (const std::string problem = problem_of(requests[i]); !problem.empty()) refuse(str("request ", i + 1), problem);
  return Run(*this, requests, on_score).take();
}

}  // namespace easydel::generation
