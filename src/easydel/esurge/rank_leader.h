// The first rank's side of an engine on several ranks: it sends each step to the others, and reads what they answer;
// between steps it gives them orders. A rank that ends, fails in a step, is too slow or computed other scores is lost,
// and the engine with it. No torch. Used on the thread of steps alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "easydel/esurge/rank_channel.h"
#include "easydel/esurge/rank_order.h"
#include "easydel/esurge/saved_prefix_index.h"
#include "easydel/esurge/step_message.h"

namespace easydel::esurge {

struct RankLimits {
  double start_seconds = 600;  // until the others have loaded their models, and to wait for an order's answer
  double step_seconds = 30;    // to wait for another rank, each time
  bool verify = true;          // scores of ranks that compute the same are compared
  int64_t ranks_here = 1;      // on this machine, which share its memory
};

class RankLeader {
 public:
  // `others`: ranks 1, 2, ... `parts`: the data part of each rank, the first one's included; the first rank of each
  // part sends its scores.
  RankLeader(std::vector<RankConnection> others, std::vector<int64_t> parts, RankLimits limits);
  // Tells the others to end.
  ~RankLeader();
  RankLeader(const RankLeader&) = delete;

  int64_t size() const { return int64_t(parts_.size()); }
  RankPlace place() const { return {0, size(), 0, data_parts_}; }  // of this rank
  // Number of data parts, among which sequences are divided. This rank's is 0.
  int64_t data_parts() const { return data_parts_; }
  // Why no step can be made any more; empty: all ranks are there. From any thread.
  std::string lost() const;

  // Waits for the others. Returns the bytes that all data parts together have for pages, where this machine has `free`
  // bytes: as many as the rank with the least memory has, for each part. UserError: a rank computes another model.
  int64_t wait_for_ranks(const ModelFacts& own, int64_t free);
  void start(const StartMessage& message);
  // Has all other ranks carry an order out, between steps, while this one does `own`, its part of it. Returns what the
  // first one that could not says: "rank 1: ..."; empty: all did. UserError: a rank is lost, or `own` failed, without
  // which the others cannot go on.
  std::string give(const RankOrder& order, const std::function<void()>& own = {});
  // The same of an order that all ranks carry out or the engine ends. UserError as well: a rank could not.
  void give_to_all(const RankOrder& order, const std::function<void()>& own);
  struct Answer {
    std::string rank, text;  // "rank 1", and what it says
  };
  // The same of an order that asks for something. UserError as well: a rank cannot say it.
  std::vector<Answer> ask(const RankOrder& order, const std::function<void()>& own = {});
  // What the others keep as long as it lives here: an adapter that they were told to load, and a text that is pooled.
  void know_adapter(uint64_t number, std::weak_ptr<const void> adapter);
  void know_text(uint64_t number, std::weak_ptr<const void> text);

  // Before and after this rank computes a step. `shared`: of the sequences; empty: none has any. UserError: a rank is
  // lost.
  void begin_step(std::span<const PageOp> before, std::span<const RunSequence> sequences, std::span<const PageOp> after,
                  std::vector<SharedParts> shared);
  // on_rows is called with the scores and vectors of other data parts. Indices of sequences are those of begin_step().
  void end_step(uint64_t own_digest, const std::function<void(std::shared_ptr<const SentRows>)>& on_rows);
  // This rank's own pass failed: says what became of the others, which cannot go on without it.
  [[noreturn]] void fail_step(const std::string& error);

 private:
  std::vector<StepReply> exchange(const RankOrder& order, const std::function<void()>& own);
  [[noreturn]] void lose(const std::string& why, const std::string& remedy = {});
  void refuse_if_lost() const;
  using Known = std::map<uint64_t, std::weak_ptr<const void>>;
  static std::vector<uint64_t> take_gone(Known& known);

  std::vector<RankConnection> others_;
  std::vector<int64_t> parts_;
  int64_t data_parts_ = 1, step_ = 0;
  RankLimits limits_;
  Known adapters_, texts_;
  mutable std::mutex mutex_;  // of lost_
  std::string lost_;
};

}  // namespace easydel::esurge
