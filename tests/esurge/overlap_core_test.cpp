// Steps that overlap: what follows from one is found out while the next one computes.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/esurge/side_thread.h"
#include "easydel/esurge/step_engine.h"
#include "esurge/wrapped_model.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

// Runs `during` in the pass of that number, counted from 1.
class Watched final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  models::Outputs forward(const models::Inputs& inputs, nn::Pass& pass) const override {
    if (++passes_ == at && during) during();
    return WrappedModel::forward(inputs, pass);
  }

  std::function<void()> during = {};
  int64_t at = 0;

 private:
  mutable int64_t passes_ = 0;
};

std::shared_ptr<Watched> story() {
  return std::make_shared<Watched>(models::load_model(test::test_data("models/stories260K-hf"), {}));
}

EngineSetup setup(std::shared_ptr<const models::Model> model, bool async_scheduling) {
  EngineSetup out;
  out.model = std::move(model);
  out.tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  out.config.max_model_len = 256, out.config.max_num_batched_tokens = 256;
  out.config.overlap_execution = true, out.config.async_scheduling = async_scheduling;
  out.pages = 40;
  return out;
}

Request request(std::string prompt, int64_t max_tokens = 20) {
  Request out;
  out.prompt = std::move(prompt);
  out.sampling.temperature = 0, out.sampling.max_tokens = max_tokens;
  return out;
}

int64_t run(StepEngine& engine) {
  while (engine.step()) {
  }
  return engine.counts().steps;
}

TEST(OverlappedSteps, SendTheTokensOfOneWhileTheNextComputes) {
  for (const bool async : {false, true}) {
    const auto model = story();
    StepEngine engine(setup(model, async));
    std::atomic<int64_t> tokens = 0, seen = -1;
    std::thread::id sender;
    engine.add(request("Once upon a time", 5), [&](const RequestOutput& output) {
      tokens = output.num_generated_tokens;
      sender = std::this_thread::get_id();
    });
    model->at = 3;
    // The third pass waits until the second token has come.
    model->during = [&] {
      for (int i = 0; i < 2000 && tokens < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      seen = tokens.load();
      EXPECT_NE(sender, std::this_thread::get_id());
    };
    EXPECT_EQ(run(engine), 5) << "no step is made for nothing";
    EXPECT_EQ(seen, 2) << async;
    EXPECT_EQ(tokens, 5);
  }
}

TEST(OverlappedSteps, ComputeASequenceThatHasStoppedOnceMore) {
  std::string text;
  int64_t in_turn = 0;
  for (const bool async : {false, true}) {
    StepEngine engine(setup(story(), async));
    std::vector<RequestOutput> ends;
    Request asked = request("Once upon a time", 30);
    asked.sampling.stop = config::Many<std::string>{"girl"};
    engine.add(asked, [&](RequestOutput output) {
      if (output.finished) ends.push_back(std::move(output));
    });
    const int64_t steps = run(engine);
    ASSERT_EQ(ends.size(), 1u);
    EXPECT_EQ(ends[0].outputs.at(0).finish_reason, FinishReason::stop);
    const EngineMetrics metrics = engine.metrics();
    EXPECT_EQ(metrics.generated_tokens, ends[0].num_generated_tokens);
    if (!async) {
      text = ends[0].outputs.at(0).text, in_turn = steps;
      EXPECT_EQ(text, ", there was a little ");
    } else {
      EXPECT_EQ(ends[0].outputs.at(0).text, text);
      EXPECT_EQ(steps, in_turn + 1);
    }
  }
}

// Two tokens are allowed, so three beams are at first two; a step computes one of them.
TEST(OverlappedSteps, WaitForAllChoicesOfFewerBeams) {
  const auto answer = [](int64_t step_tokens) {
    EngineSetup own = setup(story(), true);
    own.config.max_num_batched_tokens = step_tokens;
    StepEngine engine(own);
    Request asked = request("Tom", 6);
    asked.sampling.n = 3;
    asked.sampling.allowed_token_ids = {300, 310};
    asked.sampling.extra_args = Value::map();
    asked.sampling.extra_args.set("num_beams", Value::integer(3));
    std::string text;
    engine.add(asked, [&](const RequestOutput& output) {
      for (const CompletionOutput& one : output.outputs) text += one.text + "|";
    });
    run(engine);
    return text;
  };
  const std::string together = answer(64);
  EXPECT_GT(together.size(), 10u);
  EXPECT_EQ(answer(1), together);
}

TEST(OverlappedSteps, LoseOnlyTheRequestOfAPassThatFails) {
  const auto model = story();
  StepEngine engine(setup(model, true));
  std::vector<std::string> texts(2), errors(2);
  for (size_t i = 0; i < 2; ++i)
    engine.add(request(i == 0 ? "Once upon a time" : "Tom", 20), [&, i](const RequestOutput& output) {
      if (output.finished) texts[i] = output.outputs.at(0).text, errors[i] = output.error;
    });
  model->at = 4;
  int64_t left = 2;  // the pass of both, and that of the first alone
  model->during = [&] {
    if (--left > 0) ++model->at;
    throw std::bad_alloc();
  };
  run(engine);
  EXPECT_EQ(errors[0],
            "model: no memory is left to compute this request\n"
            "    shorten its prompt, or lower esurge.hbm_utilization or esurge.max_num_batched_tokens");
  EXPECT_EQ(errors[1], "");
  StepEngine alone(setup(story(), true));
  std::string right;
  alone.add(request("Tom", 20), [&](const RequestOutput& output) { right = output.outputs.at(0).text; });
  run(alone);
  EXPECT_EQ(texts[1], right);
  // Nothing of the pages that the pass has not written is left.
  std::string again;
  engine.add(request("Once upon a time", 20), [&](const RequestOutput& output) {
    again = output.outputs.at(0).text;
    EXPECT_LE(output.cached_tokens, 1) << "the token that both prompts begin with";
  });
  run(engine);
  EXPECT_EQ(again.substr(0, 20), ", there was a little");
}

TEST(SideThread, GivesBackWhatItsWorkThrows) {
  SideThread side;
  side.finish();
  int done = 0;
  side.start([&] { ++done; });
  side.finish();
  side.start([] { refuse("here", "it fails"); });
  side.wait();
  EXPECT_THROW(side.finish(), UserError);
  side.start([&] { ++done; });
  side.finish();
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace easydel::esurge
