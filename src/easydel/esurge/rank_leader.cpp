#include "easydel/esurge/rank_leader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"

namespace easydel::esurge {

RankLeader::RankLeader(std::vector<RankConnection> others, std::vector<int64_t> parts, RankLimits limits)
    : others_(std::move(others)), parts_(std::move(parts)), limits_(limits) {
  check(parts_.size() == others_.size() + 1 && parts_[0] == 0, "ranks: ", parts_.size(), " data parts for ",
        others_.size() + 1, " ranks");
  data_parts_ = std::ranges::max(parts_) + 1;
}

RankLeader::~RankLeader() {
  const std::string end = encode_step(0, {}, {}, {});
  for (const RankConnection& other : others_) try {
      other.send(end, std::min(limits_.step_seconds, 1.0));
    } catch (const UserError&) {
      // It has ended already.
    }
}

void RankLeader::lose(const std::string& why, const std::string& remedy) {
  {
    const std::lock_guard lock(mutex_);
    lost_ = why;
  }
  refuse("esurge", why, remedy.empty() ? "see the errors of the other ranks, and start all of them again" : remedy);
}

std::string RankLeader::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void RankLeader::refuse_if_lost() const {
  if (const std::string why = lost(); !why.empty()) refuse("esurge", why);
}

int64_t RankLeader::wait_for_ranks(const ModelFacts& own, int64_t free) {
  int64_t memory = free / limits_.ranks_here;
  start({own, memory});
  for (const RankConnection& other : others_) {
    const StartMessage hello = decode_start(other.receive(limits_.start_seconds));
    refuse_other_facts(own, hello.facts, other.peer());
    memory = std::min(memory, hello.budget_bytes);
  }
  return memory * data_parts_;
}

void RankLeader::start(const StartMessage& message) {
  const std::string bytes = encode(message);
  for (const RankConnection& other : others_) other.send(bytes, limits_.start_seconds);
}

std::vector<StepReply> RankLeader::exchange(const RankOrder& order, const std::function<void()>& own) {
  refuse_if_lost();
  const std::string bytes = encode(order);
  std::vector<StepReply> out;
  try {
    for (const RankConnection& other : others_) other.send(bytes, limits_.step_seconds);
  } catch (const UserError& error) {
    lose(error.problem);
  }
  try {
    if (own) own();
  } catch (const UserError& error) {
    fail_step(error.headline());
  } catch (const std::exception& error) {
    fail_step(error.what());
  }
  try {
    for (const RankConnection& other : others_) out.push_back(decode_reply(other.receive(limits_.start_seconds)));
  } catch (const UserError& error) {
    lose(error.problem);
  }
  return out;
}

std::string RankLeader::give(const RankOrder& order, const std::function<void()>& own) {
  const std::vector<StepReply> replies = exchange(order, own);
  for (size_t i = 0; i < replies.size(); ++i)
    if (!replies[i].error.empty()) return str(others_[i].peer(), ": ", replies[i].error);
  return "";
}

void RankLeader::give_to_all(const RankOrder& order, const std::function<void()>& own) {
  if (const std::string why = give(order, own); !why.empty()) lose(why);
}

std::vector<RankLeader::Answer> RankLeader::ask(const RankOrder& order, const std::function<void()>& own) {
  std::vector<Answer> out;
  for (StepReply& reply : exchange(order, own)) {
    const std::string& rank = others_[out.size()].peer();
    if (!reply.error.empty()) refuse("esurge", str(rank, ": ", reply.error));
    out.push_back({rank, std::move(reply.text)});
  }
  return out;
}

void RankLeader::know_adapter(uint64_t number, std::weak_ptr<const void> adapter) {
  adapters_[number] = std::move(adapter);
}

void RankLeader::know_text(uint64_t number, std::weak_ptr<const void> text) { texts_[number] = std::move(text); }

std::vector<uint64_t> RankLeader::take_gone(Known& known) {
  std::vector<uint64_t> out;
  for (const auto& [number, thing] : known)
    if (thing.expired()) out.push_back(number);
  for (const uint64_t number : out) known.erase(number);
  return out;
}

void RankLeader::begin_step(std::span<const PageOp> before, std::span<const RunSequence> sequences,
                            std::span<const PageOp> after, std::vector<SharedParts> shared) {
  refuse_if_lost();
  const std::string bytes =
      encode_step(++step_, before, sequences, after, {std::move(shared), take_gone(adapters_), take_gone(texts_)});
  for (const RankConnection& other : others_) try {
      other.send(bytes, limits_.step_seconds);
    } catch (const UserError& error) {
      lose(error.problem);
    }
}

void RankLeader::end_step(uint64_t own_digest, const std::function<void(std::shared_ptr<const SentRows>)>& on_rows) {
  struct First {
    std::string peer;
    uint64_t digest;
  };
  std::map<int64_t, First> firsts = {{0, {"the first rank", own_digest}}};  // of each data part
  for (size_t i = 0; i < others_.size(); ++i) {
    const RankConnection& other = others_[i];
    StepReply reply;
    try {
      std::string bytes = other.receive(limits_.step_seconds);
      for (; is_rows(bytes); bytes = other.receive(limits_.step_seconds))
        on_rows(std::make_shared<const SentRows>(decode_rows(bytes)));
      reply = decode_reply(bytes);
    } catch (const UserError& error) {
      lose(error.problem);
    }
    if (!reply.error.empty()) lose(str(other.peer(), " failed: ", reply.error));
    if (reply.number != step_) lose(str(other.peer(), " answers step ", reply.number, " instead of step ", step_));
    const auto& [part, first] = *firsts.try_emplace(parts_[i + 1], First{other.peer(), reply.digest}).first;
    if (limits_.verify && first.digest != reply.digest)
      lose(str(other.peer(), " computed other scores than ", first.peer, " in step ", step_),
           "give every rank the same program, weights and kind of processor; "
           "esurge.distributed_verify_sampling_digest: false goes on regardless");
  }
}

void RankLeader::fail_step(const std::string& error) {
  // What ended this rank's pass is most often the end of another one, which says more of itself.
  constexpr double moment = 0.5;
  std::string silent;
  for (const RankConnection& other : others_) {
    std::string why;
    try {
      const StepReply reply = decode_reply(other.receive(moment));
      if (!reply.error.empty()) why = str(other.peer(), " failed: ", reply.error);
    } catch (const UserError& ended) {
      if (ended.problem.ends_with("has ended"))
        why = ended.problem;
      else
        silent += str("; ", other.peer(), " does not answer");
    }
    if (!why.empty()) lose(why);
  }
  lose(str("the first rank failed: ", error, silent));
}

}  // namespace easydel::esurge
