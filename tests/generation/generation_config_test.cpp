#include "easydel/generation/generation_config.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::generation {
namespace {

using test::refusal;

class FolderDefaults : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) { test::write_file(folder_ / name, text); }
  GenerationConfig read(const std::string& given = "{}") {
    return generation_config(folder_.path(), read_generation(parse_yaml(given)));
  }
  test::TemporaryFolder folder_;
};

TEST_F(FolderDefaults, ComeFromGenerationConfigAndOnlyWithoutItTheEndFromConfig) {
  EXPECT_EQ(read().temperature, 1.0);
  write("config.json", R"({"eos_token_id": 7, "bos_token_id": 1, "temperature": 0.3, "num_beams": 4})");
  EXPECT_EQ(read().eos_token_id, (config::Many<int64_t>{7}));
  EXPECT_EQ(read().num_beams, 1);  // an invalid token of the file is ignored
  write("generation_config.json",
        R"({"eos_token_id": [2, 9], "do_sample": true, "temperature": 0.6, "top_p": 0.9, "num_beams": 2,
    "early_stopping": "never", "pad_token_id": null, "transformers_version": "4.57.1", "chat_format": "x", "cache_implementation": "hybrid",
    "exponential_decay_length_penalty": [10, 1.1], "watermarking_config": {"bias": 3.0}})");
  const GenerationConfig config = read();
  EXPECT_EQ(config.eos_token_id, (config::Many<int64_t>{2, 9}));
  EXPECT_EQ(config.bos_token_id, std::nullopt);
  EXPECT_TRUE(config.do_sample);
  EXPECT_EQ(config.num_beams, 2);
  EXPECT_EQ(config.early_stopping, EarlyStopping::never);
  EXPECT_EQ(config.watermarking_config->bias, 3.0);
}

TEST_F(FolderDefaults, YieldToGivenSettings) {
  write("generation_config.json", R"({"temperature": 0.6, "penalty_alpha": 0.6, "top_k": 4})");
  EXPECT_EQ(refusal([&] { read(); }), (folder_ / "generation_config.json").string() +
                                          ":1:39: penalty_alpha: contrastive search is not built yet\n    leave the "
                                          "key out, or give its default null\n1 problem in " +
                                          (folder_ / "generation_config.json").string() + "; nothing was run.");
  EXPECT_EQ(read("{penalty_alpha: null, top_k: 9}").top_k, 9);
}

TEST_F(FolderDefaults, NamingALimitOfTheDrawWantsDraws) {
  write("generation_config.json", R"({"temperature": 0.6})");
  EXPECT_FALSE(read().do_sample);
  EXPECT_TRUE(read("{top_p: 0.5}").do_sample);
  EXPECT_FALSE(read("{temperature: 0}").do_sample);
  EXPECT_FALSE(read("{top_p: 0.5, do_sample: false}").do_sample);
}

TEST_F(FolderDefaults, LeaveWhatWasGivenEvenWhereItIsADefault) {
  write("generation_config.json", R"({"temperature": 0.6, "num_beams": 4, "stop_strings": ["END"]})");
  const GenerationConfig asked = read_generation(parse_yaml("{num_beams: 1, stop: []}"));
  EXPECT_EQ(asked.given, (std::set<std::string, std::less<>>{"num_beams", "stop_strings"}));
  const GenerationConfig config = generation_config(folder_.path(), asked);
  EXPECT_EQ(config.num_beams, 1);
  EXPECT_TRUE(config.stop_strings.empty());
  EXPECT_EQ(config.temperature, 0.6);
  EXPECT_EQ(config.given, asked.given) << "the file's keys were not asked for";
}

TEST_F(FolderDefaults, GiveWayToMembersThatCodeAssigns) {
  write("generation_config.json", R"({"temperature": 0.6, "top_k": 7, "num_beams": 4, "stop_strings": ["END"]})");
  GenerationConfig asked{.temperature = 0.25};
  asked.stop_strings = {"."};
  asked.set<&GenerationConfig::num_beams>(1).set<&GenerationConfig::top_k>(int64_t{50});
  const GenerationConfig config = generation_config(folder_.path(), asked);
  EXPECT_EQ(config.temperature, 0.25);
  EXPECT_EQ(config.stop_strings, std::vector<std::string>{"."});
  EXPECT_EQ(config.num_beams, 1) << "set to its default, it was asked for";
  EXPECT_EQ(config.top_k, 50);
  EXPECT_TRUE(config.do_sample) << "a temperature asks for draws";
  EXPECT_EQ(config.given, (std::set<std::string, std::less<>>{"num_beams", "stop_strings", "temperature", "top_k"}));
}

TEST_F(FolderDefaults, SayWhereTheyAreWrong) {
  write("generation_config.json", "{\n  \"top_p\": 1.5\n}");
  const std::string file = (folder_ / "generation_config.json").string();
  EXPECT_EQ(refusal([&] { read(); }),
            file + ":2:12: top_p: 1.5 is out of range\n    expected a number from 0 to 1 (default 1.0)\n1 problem in " +
                file + "; nothing was run.");
}

TEST_F(FolderDefaults, AbsurdNumbersOfAFileAreRefused) {
  for (const char* const key : {"num_beams", "num_return_sequences"}) {
    test::write_file(folder_ / "generation_config.json", str("{\"", key, "\": 1000000000}"));
    const std::string text = test::refusal([&] { generation_config(folder_.path()); });
    EXPECT_NE(text.find(key), std::string::npos) << text;
    EXPECT_NE(text.find("1000000000"), std::string::npos) << text;
    EXPECT_NE(test::refusal([&] { read_generation(parse_yaml(str("{", key, ": 1000000000}"))); }).find(key),
              std::string::npos);
  }
}

TEST(GenerationConfigRules, EachHasOneClearError) {
  const auto said = [](const GenerationConfig& config) {
    const std::string text = refusal([&] { check_together(config); });
    const std::string end = "\n1 problem in generation; nothing was run.";
    return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
  };
  EXPECT_EQ(said({.num_return_sequences = 2}),
            "generation: num_return_sequences: 2 continuations of the likeliest tokens would all be equal\n    set "
            "do_sample, or raise num_beams to at least this number");
  EXPECT_EQ(said({.num_return_sequences = 3, .num_beams = 2}),
            "generation: num_return_sequences: 3 is more than num_beams 2\n    raise num_beams or lower "
            "num_return_sequences");
  EXPECT_EQ(said({.forced_eos_token_id = {4}, .suppress_tokens = {3, 4}}),
            "generation: forced_eos_token_id: token 4 is forced, and suppress_tokens forbids it\n"
            "    take it out of one of them; to put off the end, use min_new_tokens");
  EXPECT_EQ(said({.typical_p = 0.0}),
            "generation: typical_p: 0 leaves no token\n    give more than 0; 1 switches it off");
  EXPECT_EQ(said({.top_h = 0.0}),
            "generation: top_h: 0 leaves no entropy\n    give more than 0, or null to switch it off");
  EXPECT_EQ(said({.exponential_decay_length_penalty = std::array{1.5, 2.0}}),
            "generation: exponential_decay_length_penalty: [1.5, 2] is not a number of tokens with a factor above 0\n  "
            "  give such as [100, 1.01]");
  EXPECT_EQ(said({.sequence_bias = {{{}, 1.0}}}),
            "generation: sequence_bias: an entry has no tokens\n    give such as [[[12, 7], -2.5]]");
  EXPECT_EQ(said({.bad_words_ids = {{}}}),
            "generation: bad_words_ids: an entry has no tokens\n    give such as [[12, 7], [9]]");
  EXPECT_EQ(said({.watermarking_config = WatermarkingConfig{.greenlist_ratio = 1.0}}),
            "generation: watermarking_config: a greenlist_ratio of 1 selects either no tokens or all tokens\n    give "
            "more than 0 and less than 1");
  EXPECT_EQ(said({}), "(nothing was refused)");
}

TEST(GenerationConfigKeys, ReadAndWriteASequenceBias) {
  GenerationConfig config;
  config::read(parse_yaml("{sequence_bias: [[[4], 2.5], [[7, 9], -3]], stop: END, eos_token_id: 3}"), config)
      .throw_if_any();
  ASSERT_EQ(config.sequence_bias.size(), 2u);
  EXPECT_EQ(config.sequence_bias[1].tokens, (std::vector<int64_t>{7, 9}));
  EXPECT_EQ(config.sequence_bias[1].bias, -3.0);
  EXPECT_EQ(config.stop_strings, (config::Many<std::string>{"END"}));
  EXPECT_EQ(to_yaml_flow(*config::write(config).find("sequence_bias")), "[[[4], 2.5], [[7, 9], -3.0]]");
  EXPECT_EQ(
      refusal([] {
        GenerationConfig other;
        config::read(parse_yaml("{sequence_bias: [[4, 2.5, 1]]}"), other).throw_if_any();
      }),
      "config:1:18: sequence_bias[0]: a list is not [[token ids], a number]\n"
      "    expected a list, each item [[token ids], a number] (default [])\n1 problem in config; nothing was run.");
}

}  // namespace
}  // namespace easydel::generation
