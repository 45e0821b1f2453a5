// `easydel perplexity`: figures of files, against the sums of `easydel score`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::run_program;

double number(const Value& line, const char* key) { return line.find(key)->as_double().value(); }

class Perplexity : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 12; ++i) text_ += "Once upon a time, there was a little girl named Lily.\n ";
    test::write_file(folder_ / "a.txt", text_);
    test::write_file(folder_ / "b.txt", "Tom had a ball.");
  }
  Value measured(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"perplexity", model_, (folder_ / "a.txt").string(), "--json"});
    const test::Ran ran = run_program(more);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return parse_json(ran.out);
  }
  test::TemporaryFolder folder_;
  std::string text_, model_ = test::test_data("models/stories260K-hf").string();
};

TEST_F(Perplexity, IsThatOfTheHarnessWindows) {
  Value request = Value::map();
  request.set("text", Value::text(text_));
  const Value scored =
      parse_json(run_program({"score", model_, "--max-length", "64"}, {.input = to_json(request)}).out);
  const Value found = measured({"--context", "64"});
  const double sum = number(scored, "logprob"), tokens = double(scored.find("token_logprobs")->items.size());
  EXPECT_EQ(number(found, "tokens"), tokens);
  EXPECT_NEAR(number(found, "perplexity"), std::exp(-sum / tokens), 1e-9);
  EXPECT_EQ(number(found, "words"), 12 * 11 + 1);
  EXPECT_EQ(number(found, "bytes"), double(text_.size()));
  EXPECT_NEAR(number(found, "word_perplexity"), std::exp(-sum / (12 * 11 + 1)), 1e-6);
  EXPECT_NEAR(number(found, "bits_per_byte"), -sum / double(text_.size()) / std::log(2), 1e-9);
  EXPECT_GT(number(found, "perplexity_error"), 0);
}

// The first token has no context; all others are predicted once, whatever the stride, and with more context than by
// windows that do not overlap.
TEST_F(Perplexity, PredictsAllButTheFirstTokenWithAStride) {
  const Value rolling = measured({"--context", "24"}), one = measured({"--context", "24", "--stride", "1"}),
              some = measured({"--context", "24", "--stride", "8"});
  EXPECT_EQ(number(one, "tokens"), number(rolling, "tokens") - 1);
  EXPECT_EQ(number(some, "tokens"), number(rolling, "tokens") - 1);
  EXPECT_NE(number(one, "perplexity"), number(some, "perplexity"));
}

TEST_F(Perplexity, AddsFilesUp) {
  const test::Ran ran = run_program({"perplexity", model_, (folder_ / "a.txt").string(), (folder_ / "b.txt").string()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("b.txt: "), std::string::npos);
  EXPECT_NE(ran.out.find("\nall: "), std::string::npos) << ran.out;
  EXPECT_EQ(run_program({"perplexity", model_, "/nowhere.txt"}).err,
            "/nowhere.txt: there is no such file\n    give files of text\n");
  EXPECT_EQ(run_program({"perplexity", model_, (folder_ / "b.txt").string(), "--stride", "513"}).err,
            (folder_ / "b.txt").string() + ": stride: 513 is not a number of tokens from 1 to 512\n");
}

TEST_F(Perplexity, ComparesWithAnotherModel) {
  const Value same = measured({"--compare", model_});
  EXPECT_EQ(number(same, "mean_kl"), 0);
  EXPECT_EQ(number(same, "top_agreement"), 1);
  EXPECT_EQ(number(same, "other_perplexity"), number(same, "perplexity"));

  test::write_file(folder_ / "a.txt", text_.substr(0, 40));
  const Value found = measured({"--compare", model_, "--compare-set", "loader.dtype=bf16"});
  EXPECT_NEAR(number(found, "perplexity"), number(measured(), "perplexity"), 1e-4);
  EXPECT_NEAR(number(found, "other_perplexity"), number(measured({"--dtype", "bf16"}), "perplexity"), 1e-4);
  // The divergence of the worst token, from both distributions token by token.
  const Value& worst = found.find("worst_tokens")->items.front();
  const auto at = size_t(number(worst, "token"));
  Value request = Value::map();
  request.set("text", Value::text(text_.substr(0, 40)));
  request.set("windows", Value::boolean(true));
  const Value windows = parse_json(run_program({"score", model_}, {.input = to_json(request)}).out);
  const Value& window = windows.find("windows")->items.front();
  Value context = *window.find("context_ids");
  for (size_t i = 0; i < at; ++i) context.items.push_back(window.find("continuation_ids")->items[i]);
  std::string lines;
  for (int id = 0; id < 512; ++id)
    lines += str("{\"context_ids\": ", to_json(context), ", \"continuation_ids\": [", id, "]}\n");
  const auto distribution = [&](const char* dtype) {
    std::vector<double> out;
    std::istringstream answers(run_program({"score", model_, "--dtype", dtype}, {.input = lines}).out);
    for (std::string line; std::getline(answers, line);) out.push_back(number(parse_json(line), "logprob"));
    return out;
  };
  const std::vector<double> p = distribution("fp32"), q = distribution("bf16");
  ASSERT_EQ(p.size(), 512u);
  double divergence = 0;
  for (size_t i = 0; i < p.size(); ++i) divergence += std::exp(p[i]) * (p[i] - q[i]);
  EXPECT_NEAR(number(worst, "kl"), divergence, 1e-5);
  EXPECT_GT(divergence, 0);
  EXPECT_EQ(number(worst, "top"), double(std::ranges::max_element(p) - p.begin()));
  EXPECT_GE(number(worst, "kl"), number(found, "mean_kl"));
}

TEST_F(Perplexity, SaysWhatIsWrongWithTheOtherModel) {
  const std::string file = (folder_ / "a.txt").string();
  EXPECT_EQ(run_program({"perplexity", model_, file, "--compare-set", "loader.dtype=bf16"}).err,
            "--compare-set: there is no second model\n    name it, or the same folder again, with --compare\n");
  Value config = parse_file(model_ + "/config.json");
  config.set("vocab_size", Value::integer(300));
  test::write_file(folder_ / "other/config.json", to_json(config));
  EXPECT_NE(run_program({"perplexity", model_, file, "--compare", (folder_ / "other").string(), "--random-weights"})
                .err.find("/other' has 300 tokens, and '" + model_ +
                          "' 512\n    only models with one vocabulary can be compared\n"),
            std::string::npos);
}

}  // namespace
}  // namespace easydel
