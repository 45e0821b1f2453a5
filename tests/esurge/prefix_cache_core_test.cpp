// The prefix cache over a restart: the same bits as without it, with as much of it as fits.
#include <gtest/gtest.h>

#include <functional>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/esurge/engine.h"
#include "esurge/same_bits.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

class PrefixCacheOverARestart : public SameBits {};

TEST_P(PrefixCacheOverARestart, GivesTheSameBits) {
  const test::TemporaryFolder folder;
  Random random(77);
  const std::vector<Request> all = requests(random, 16);
  const std::vector<std::string> expected = alone(all);
  // Many pages in the first engine; then all of them, and only a part.
  for (const int64_t pages : {200, 200, 18}) {
    EngineSetup own = setup(16, pages);
    own.config.prefix_cache_path = (folder / "cache").string();
    own.fingerprint = "fp_" + GetParam().name, own.config.silent_mode = true;
    own.config.max_num_batched_tokens = 16;  // states are kept where a part of a prompt ends with a page
    StepEngine engine(own);
    const bool restarted = test::fs::exists(folder / "cache/manifest.json");
    EXPECT_EQ(engine.metrics().cache_bytes_used > 0, restarted);
    // One after the other, so that what is cached when one begins comes from before the restart or from those before.
    for (size_t i = 0; i < all.size(); ++i) {
      std::string found;
      try {
        found = answers(engine, {all[i]}).front();
      } catch (const UserError&) {
        EXPECT_EQ(pages, 18) << "too long for so few pages";
        continue;
      }
      EXPECT_EQ(found, expected[i]) << "request " << i;
    }
    if (pages == 200) {
      EXPECT_GT(engine.metrics().cached_prompt_tokens, 0);
    }
  }
}

TEST_P(PrefixCacheOverARestart, FindsWhatWasThere) {
  const test::TemporaryFolder folder;
  Random random(78);
  const std::vector<Request> all = requests(random, 8);
  EngineSetup own = setup(16, 200);
  own.fingerprint = "fp", own.config.silent_mode = true;
  own.config.prefix_cache_path = (folder / "cache").string();
  const auto cached = [&] {
    StepEngine engine(own);
    answers(engine, all);
    return engine.metrics().cached_prompt_tokens;
  };
  const int64_t before = cached(), after = cached();
  EXPECT_GT(after, before);
  own.fingerprint = "another";
  std::string lines;
  log::set_level(log::Level::info);
  log::set_sink([&](log::Level, std::string_view line) { lines += str(line, "\n"); });
  EXPECT_EQ(cached(), before);
  log::set_sink({});
  EXPECT_NE(lines.find("is not used: it belongs to other weights (fp instead of another)"), std::string::npos) << lines;
  EXPECT_GT(cached(), before) << "it was replaced";
}

INSTANTIATE_TEST_SUITE_P(Models, PrefixCacheOverARestart, testing::ValuesIn([] {
                           std::vector<Subject> out;
                           for (const Subject& subject : subjects())
                             for (const char* name : {"story_bf16", "gemma3_windows", "deepseek_v3_mla",
                                                      "qwen3_next_hybrid", "mamba2_states"})
                               if (subject.name == name) out.push_back(subject);
                           return out;
                         }()),
                         [](const auto& info) { return info.param.name; });

TEST(PrefixCacheWhileRequestsRun, IsSavedBetweenTwoSteps) {
  const test::TemporaryFolder folder;
  const auto model_folder = test::test_data("models/stories260K-hf");
  EngineSetup setup;
  setup.model = models::load_model(model_folder, {});
  setup.tokenizer = text::Tokenizer::load(model_folder);
  setup.config.max_model_len = 256, setup.config.page_size = 16;
  setup.pages = 40, setup.fingerprint = "fp";
  Request request;
  request.prompt = "Once upon a time";
  request.sampling.temperature = 0, request.sampling.max_tokens = 150;
  std::string text;
  {
    Engine engine(setup);
    // Only whole pages of a sequence that runs are in the index.
    engine.stream(request, [&, saved = false](const RequestOutput& output) mutable {
      if (output.num_generated_tokens >= 30 && !std::exchange(saved, true)) engine.save_prefix_cache(folder / "cache");
      return true;
    });
    text = engine.generate(request).outputs.at(0).text;
    const test::fs::path file = folder / "file";
    test::write_file(file, "x");
    EXPECT_THROW(engine.save_prefix_cache(file), UserError);
  }
  setup.config.prefix_cache_path = (folder / "cache").string();
  Engine engine(setup);
  const RequestOutput output = engine.generate(request);
  EXPECT_EQ(output.outputs.at(0).text, text);
  EXPECT_GT(output.cached_tokens, 0);
}

}  // namespace
}  // namespace easydel::esurge
