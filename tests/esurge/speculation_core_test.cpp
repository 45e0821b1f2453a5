// What the scheduler is told of speculated tokens.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include "easydel/base/files.h"
#include "easydel/esurge/step_engine.h"
#include "easydel/models/model.h"
#include "esurge/same_bits.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

// The scheduler keeps a number of drafts until it plans them. A step without room for the sequence does not, and in the
// next one the sequence may have fewer drafts, or none. So every step says the number of every sequence anew.
TEST(Speculation, SaysInEveryStepHowManyDraftsASequenceHas) {
  const test::TemporaryFolder folder;
  const std::filesystem::path trace = folder / "trace";
  setenv("EASYDEL_ESURGE_TRACE", trace.c_str(), 1);
  EngineSetup setup;
  setup.model = models::load_model(test::test_data("models/stories260K-hf"), {});
  setup.config.silent_mode = true, setup.config.max_model_len = 128, setup.config.max_num_batched_tokens = 24;
  setup.config.page_size = 4, setup.pages = 30;
  setup.config.num_speculative_tokens = 6, setup.config.prompt_lookup_min = 1;
  StepEngine engine(setup);
  unsetenv("EASYDEL_ESURGE_TRACE");
  for (int i = 0; i < 6; ++i) {
    Request request;
    request.prompt = std::vector<TokenId>{1, 403, 407, TokenId(261 + i), 378, 403, 407};
    request.sampling.temperature = 0, request.sampling.max_tokens = 50, request.sampling.ignore_eos = true;
    request.sampling.n = 1;
    engine.add(std::move(request), {});
  }
  while (engine.step()) {
  }
  EXPECT_GT(engine.metrics().preemptions, 0);
  EXPECT_GT(engine.metrics().accepted_draft_tokens, 0);
  std::map<std::pair<int64_t, int64_t>, int64_t> told;  // since the last step, by request and choice
  std::istringstream lines(files::read(trace));
  int64_t drafted = 0;
  for (std::string text; std::getline(lines, text);) {
    const Value line = parse_json(text);
    const std::string call = line.find("call")->scalar;
    const auto number = [](const Value& value) { return *value.as_int(); };
    if (call == "propose")
      told[{number(*line.find("request")), number(*line.find("choice"))}] = number(*line.find("drafts"));
    if (call != "schedule") continue;
    for (const Value& entry : line.find("plan")->find("entries")->items) {
      const auto found = told.find({number(entry.items[0]), number(entry.items[1])});
      ASSERT_NE(found, told.end()) << text;
      EXPECT_LE(number(entry.items[4]), found->second) << text;
      drafted += number(entry.items[4]);
    }
    told.clear();
  }
  EXPECT_GT(drafted, 0);
}

// By GenerationConfig's fields, in an engine that does not speculate for others; the bits stay the same.
TEST(Speculation, IsForTheRequestThatAsksForIt) {
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), {});
  const auto run = [&](const char* extra_args, bool overlaps, EngineMetrics& metrics) {
    EngineSetup setup;
    setup.model = model;
    setup.config.silent_mode = true, setup.config.max_model_len = 128, setup.config.max_num_batched_tokens = 64;
    setup.config.overlap_execution = overlaps;
    setup.pages = 10;
    StepEngine engine(setup);
    Request request;
    request.prompt = std::vector<TokenId>{1, 403, 407, 261, 378, 403, 407, 261, 378, 403, 407};
    request.sampling.temperature = 0, request.sampling.max_tokens = 40, request.sampling.ignore_eos = true;
    request.sampling.logprobs = 1;
    request.sampling.extra_args = parse_json(extra_args);
    std::string bits;
    engine.add(std::move(request), [&](const RequestOutput& output) { bits = bits_of(output); });
    while (engine.step()) {
    }
    metrics = engine.metrics();
    return bits;
  };
  EngineMetrics plain, looked_up, ahead;
  const std::string expected = run("{}", false, plain);
  EXPECT_EQ(plain.draft_tokens, 0);
  const char* const asked = R"({"prompt_lookup_num_tokens": 4, "max_matching_ngram_size": 1})";
  EXPECT_EQ(run(asked, false, looked_up), expected);
  EXPECT_GT(looked_up.draft_tokens, 0);
  EXPECT_LT(looked_up.steps, plain.steps);
  EXPECT_EQ(looked_up.accepted_drafts.sum(), double(looked_up.accepted_draft_tokens));
  EXPECT_GT(looked_up.accepted_drafts.count(), 0);
  EXPECT_EQ(run(asked, true, ahead), expected);
  EXPECT_EQ(ahead.draft_tokens, 0) << "steps are planned ahead";
}

}  // namespace
}  // namespace easydel::esurge
