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
  test::Ran run(const std::string& action, const std::vector<std::string>& before = {},
                const std::vector<std::string>& after = {}) {
    test::write_file(
        work_ / "run.yaml",
        str("model: {name_or_path: ", story(), "}\nloader: {dtype: fp32, param_dtype: fp32}\nadapters: {loud: ",
            folder("loud"), ", soft: ", folder("soft"),
            ", mix: {cat: {loud: 1}}, both: {cat: {loud: 0.5, soft: 0.4}}}\nactions:\n- generate: ", action, "\n"));
    std::vector<std::string> words = before;
    words.insert(words.end(), {"elarge", (work_ / "run.yaml").string()});
    words.insert(words.end(), after.begin(), after.end());
    return test::run_program(words, {.environment = {{"OMP_NUM_THREADS", "1"}, {"OMP_WAIT_POLICY", "PASSIVE"}}});
  }
  // Of out.jsonl.
  std::vector<std::string> texts() const {
    const std::string lines = test::read_file(work_ / "out.jsonl");
    std::vector<std::string> out;
    for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1)
      out.push_back(parse_json(lines.substr(begin, end - begin)).find("text")->scalar + "\n");
    return out;
  }

  test::TemporaryFolder work_;
};

TEST_F(NamedAdapters, AreChosenByPrompt) {
  const std::string prompt = "Once upon a time";
  const std::string plain = continued(prompt, {}), loud = continued(prompt, {"--adapter", folder("loud")}),
                    soft = continued(prompt, {"--adapter", folder("soft")});
  EXPECT_NE(plain, loud);
  EXPECT_NE(loud, soft);
  const std::vector<std::string> by_name = {"--set", "adapters.loud=" + folder("loud"), "--adapter", "loud"};
  EXPECT_EQ(loud, continued(prompt, by_name));
  std::vector<std::string> by_engine = by_name;
  by_engine.insert(by_engine.end(), {"--engine", "esurge"});
  EXPECT_EQ(loud, continued(prompt, by_engine));
  const test::Ran ran =
      run(str("{prompts: [", prompt, ", ", prompt, ", ", prompt,
              "], max_new_tokens: 12, adapter: [mix, '', soft], output_path: ", folder("out.jsonl"), "}"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(texts(), (std::vector<std::string>{loud, plain, soft}));
}

TEST_F(NamedAdapters, AreChosenByPromptOnRanks) {
  const std::string action =
      str("{prompts: [Once upon a time, Once upon a time, Once upon a time], max_new_tokens: 12, adapter: [both, '', ",
          "soft], output_path: ", folder("out.jsonl"), "}");
  ASSERT_EQ(run(action).status, 0);
  const std::vector<std::string> one = texts();
  EXPECT_NE(one[0], one[1]);
  EXPECT_NE(one[0], one[2]);
  for (const char* const dims : {"[1, 2, 1, 1, 1]", "[1, 1, 1, 2, 1]"}) {
    std::filesystem::remove(work_ / "out.jsonl");
    const test::Ran ran = run(action, {"--nproc", "2"}, {"--set", std::string("sharding.axis_dims=") + dims});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(texts(), one) << dims;
  }
}

TEST_F(NamedAdapters, ThatAreNotThereAreNamedBeforeAnythingRuns) {
  const auto refused = [&](const std::string& action) {
    const test::Ran ran = run(action);
    EXPECT_EQ(ran.status, 2);
    return test::replaced(ran.err, work_.path().string(), "W");
  };
  EXPECT_EQ(
      refused("{prompts: [a, b], adapter: quiet}"),
      "W/run.yaml:5:40: actions[0].generate.adapter: no adapter is called 'quiet'\n    known: loud, soft, mix, both\n1 "
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

// easydel merge over codes: the bytes of the base that was trained over, of the original one, and codes again.
TEST_F(NamedAdapters, AreMergedOverCodes) {
  const auto merged = [&](const std::string& model, const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"merge", model, "--adapter", folder("soft"), "--out", folder(out)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::Ran ran = test::run_program(arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return std::pair(test::read_file(work_ / out / "model.safetensors"), ran.err);
  };
  const std::vector<std::string> nf4{"--set", "quantization.model.quantization_method=nf4"};
  const auto with = [&](const std::string& flag) {
    std::vector<std::string> out = nf4;
    out.push_back(flag);
    return out;
  };
  const auto [plain, of_plain] = merged(story(), "plain", {});
  const auto [trained, of_trained] = merged(story(), "trained", nf4);
  const auto [original, of_original] = merged(story(), "original", with("--merge-base=original"));
  const auto [codes, of_codes] = merged(story(), "codes", with("--merge-to-codes"));
  EXPECT_EQ(original, plain);
  EXPECT_NE(trained, plain);
  EXPECT_LT(codes.size(), trained.size() / 2);
  EXPECT_NE(of_plain.find("merged into 3 weights, which change by "), std::string::npos) << of_plain;
  EXPECT_NE(of_codes.find("; rounding them to nf4 changes them by "), std::string::npos) << of_codes;
  EXPECT_NE(of_original.find("; the original weights differ from those that the adapter was trained over by "),
            std::string::npos)
      << of_original;
  // A checkpoint in these codes needs no key.
  const test::Ran ran = test::run_program({"quantize", story(), "--to", "nf4", "--out", folder("coded")});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(merged(folder("coded"), "again", {}).first, trained);
  EXPECT_EQ(merged(folder("coded"), "codes again", {"--merge-to-codes"}).first, codes);
}

TEST_F(NamedAdapters, SayWhatCannotBeMerged) {
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"merge", story(), "--adapter", folder("soft"), "--out", folder("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::Ran ran = test::run_program(arguments);
    EXPECT_EQ(ran.status, 2);
    EXPECT_FALSE(std::filesystem::exists(work_ / "out"));
    return ran.err;
  };
  EXPECT_EQ(refused({"--merge-base", "plain"}),
            "--merge-base: 'plain' is not a base of merging\n    known: trained, original\n");
  EXPECT_EQ(refused({"--merge-to-codes"}),
            "--merge-to-codes: the model has no weights in codes, so an adapter cannot be merged into codes\n    leave "
            "it out, or give the format of its codes in quantization.model\n");
  EXPECT_EQ(refused({"--set", "loader.dtype=bf16"}),
            "--set: loader.dtype has no effect on merging\n    quantization.* has\n");
}

}  // namespace
}  // namespace easydel
