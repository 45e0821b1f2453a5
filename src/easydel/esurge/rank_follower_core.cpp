#include "easydel/esurge/rank_follower.h"

#include <exception>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/esurge/model_runner.h"
#include "easydel/esurge/step_message.h"
#include "easydel/models/model.h"

namespace easydel::esurge {
namespace {

// Of the message's sequences those that this rank computes, whose rows have the message's indices.
StepReply compute(ModelRunner& runner, const RankConnection& first, const FollowerOptions& options,
                  const StepMessage& step) {
  const auto send = [&](std::span<const ScoredRow> rows, bool prompt) {
    if (options.sends_rows && !rows.empty()) first.send(encode_rows(rows, prompt), options.step_seconds);
  };
  StepReply reply{step.number, 0, {}};
  runner.run(
      step.before, step.sequences, step.after, [&](std::span<const ScoredRow> rows) { send(rows, true); },
      [&](std::span<const ScoredRow> rows) {
        reply.digest = digest_of(rows);
        send(rows, false);
      });
  return reply;
}

}  // namespace

void follow_steps(const models::Model& model, const RankConnection& first, const FollowerOptions& options) {
  model.head();
  ModelRunner runner(model, options.page_size);
  runner.compute_part(options.part);
  first.send(encode(StartMessage{runner.facts(), options.memory}), options.step_seconds);
  const std::string bytes = first.receive(std::nullopt);
  if (bytes == encode_step(0, {}, {}, {})) return;  // the first rank could not make its engine
  const StartMessage start = decode_start(bytes);
  refuse_other_facts(start.facts, runner.facts(), "this rank");
  runner.reserve({start.budget_bytes, false});
  const StepBounds bounds = step_bounds(start);
  while (true) {
    const StepMessage step = decode_step(first.receive(std::nullopt), bounds);
    if (step.number == 0) return;
    StepReply reply;
    const auto fail = [&](const std::string& error) {
      first.send(encode(StepReply{step.number, 0, error}), options.step_seconds);
    };
    try {
      reply = compute(runner, first, options, step);
    } catch (const UserError& error) {
      fail(error.headline());
      throw;
    } catch (const std::exception& error) {
      fail(error.what());
      throw;
    }
    first.send(encode(reply), options.step_seconds);
  }
}

}  // namespace easydel::esurge
