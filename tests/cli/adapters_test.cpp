// The section adapters: prompts of one run with adapters of their own, against one adapter for all.
#include <gtest/gtest.h>

#include "cli/story_adapter.h"
#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

class NamedAdapters : public testing::Test {
 protected:
  NamedAdapters() {
    test::write_story_adapter(work_ / "loud", 0.8f);
    test::write_story_adapter(work_ / "soft", 1.5f);
  }
  static std::string story() { return test::test_data("models/stories260K-hf").string(); }
  std::string folder(const std::string& name) const { return (work_ / name).string(); }

  // What `easydel generate` continues the prompt with.
  std::string continued(const std::string& prompt, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"generate", story(),     "-p",      prompt, "--max-new-tokens",
                                       "12",       "--no-echo", "--dtype", "fp32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::Ran ran = test::run_program(arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  }
  test::Ran run(const std::string& action) {
    test::write_file(work_ / "run.yaml",
                     str("model: {name_or_path: ", story(),
                         "}\nloader: {dtype: fp32, param_dtype: fp32}\nadapters: {loud: ", folder("loud"),
                         ", soft: ", folder("soft"), ", mix: {cat: {loud: 1}}}\nactions:\n- generate: ", action, "\n"));
    return test::run_program({"elarge", (work_ / "run.yaml").string()});
  }

  test::TemporaryFolder work_;
};

TEST_F(NamedAdapters, AreChosenByPrompt) {
  const std::string prompt = "Once upon a time";
  const std::string plain = continued(prompt, {}), loud = continued(prompt, {"--adapter", folder("loud")}),
                    soft = continued(prompt, {"--adapter", folder("soft")});
  EXPECT_NE(plain, loud);
  EXPECT_NE(loud, soft);
  EXPECT_EQ(loud, continued(prompt, {"--set", "adapters.loud=" + folder("loud"), "--adapter", "loud"}));
  const test::Ran ran =
      run(str("{prompts: [", prompt, ", ", prompt, ", ", prompt,
              "], max_new_tokens: 12, adapter: [mix, '', soft], output_path: ", folder("out.jsonl"), "}"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::string lines = test::read_file(work_ / "out.jsonl");
  std::vector<std::string> texts;
  for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1)
    texts.push_back(parse_json(lines.substr(begin, end - begin)).find("text")->scalar + "\n");
  EXPECT_EQ(texts, (std::vector<std::string>{loud, plain, soft}));
}

TEST_F(NamedAdapters, ThatAreNotThereAreNamedBeforeAnythingRuns) {
  const auto refused = [&](const std::string& action) {
    const test::Ran ran = run(action);
    EXPECT_EQ(ran.status, 2);
    return test::replaced(ran.err, work_.path().string(), "W");
  };
  EXPECT_EQ(refused("{prompts: [a, b], adapter: quiet}"),
            "W/run.yaml:5:40: actions[0].generate.adapter: no adapter is called 'quiet'\n    known: loud, soft, mix\n1 "
            "problem in "
            "W/run.yaml; nothing was run.\n");
  EXPECT_EQ(refused("{prompts: [a, b, c], adapter: [loud, soft]}"),
            "W/run.yaml:5:43: actions[0].generate.adapter: names 2 adapters for 3 prompts\n    give one for all "
            "prompts, or one for "
            "each\n1 problem in W/run.yaml; nothing was run.\n");
  const std::string yaml = test::read_file(work_ / "run.yaml");
  const auto with_sum = [&](const std::string& sum) {
    test::write_file(work_ / "run.yaml", test::replaced(yaml, "adapters: {", "adapters: {more: " + sum + ", "));
    const test::Ran ran = test::run_program({"validate", (work_ / "run.yaml").string()});
    return test::replaced(ran.err, work_.path().string(), "W");
  };
  EXPECT_NE(with_sum("{ties: {loud: 1}}").find("adapters.more: is neither a folder nor a sum"), std::string::npos);
  EXPECT_NE(with_sum("{cat: {lout: 1}}").find("adapters.more: no adapter with a folder is called 'lout'"),
            std::string::npos);
  EXPECT_NE(with_sum("{cat: {loud: much}}").find("adapters.more: the weight of 'loud' is not a number"),
            std::string::npos);
  std::filesystem::remove(work_ / "soft" / "adapter_config.json");
  EXPECT_NE(refused("{prompts: [a], adapter: soft}").find("adapter_config.json"), std::string::npos);
}

}  // namespace
}  // namespace easydel
