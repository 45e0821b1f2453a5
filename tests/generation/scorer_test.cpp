#include "easydel/generation/scorer.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "easydel/base/error.h"
#include "easydel/generation/score_text.h"
#include "easydel/generation/score_tree.h"
#include "easydel/tensor/executor.h"
#include "support/data.h"

namespace easydel::generation {
namespace {

using text::TokenId;

std::shared_ptr<models::Model> loaded(const std::string& name, models::DTypeSetting dtype) {
  models::LoadOptions options;
  options.dtype = dtype;
  return models::load_model(test::test_data(name), options);
}

std::shared_ptr<const text::Tokenizer> story_tokenizer() {
  static const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  return tokenizer;
}

std::vector<TokenId> drawn_ids(std::mt19937& random, int64_t count, int64_t vocabulary) {
  std::vector<TokenId> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(TokenId(random() % uint64_t(vocabulary - 3)) + 3);
  return out;
}

// Requests as tasks have them: a few beginnings that many share, questions below them, and several continuations of
// each; some continuations begin alike, some requests are alone, some are twice there, some are longer than `longest`.
std::vector<ScoreRequest> drawn_requests(size_t count, int64_t vocabulary, int64_t longest) {
  std::mt19937 random(5);
  const auto length = [&](int64_t most) { return 1 + int64_t(random() % uint64_t(std::min(most, longest))); };
  std::vector<std::vector<TokenId>> shots;
  for (int i = 0; i < 3; ++i) shots.push_back(drawn_ids(random, length(longest / 2), vocabulary));
  std::vector<ScoreRequest> out;
  while (out.size() < count) {
    ScoreRequest request;
    if (random() % 5 > 0) request.context = shots[random() % shots.size()];
    const auto question = drawn_ids(random, length(40), vocabulary);
    request.context.insert(request.context.end(), question.begin(), question.end());
    const auto alike = drawn_ids(random, length(12), vocabulary);
    for (uint64_t choices = 1 + random() % 4; choices > 0 && out.size() < count; --choices) {
      request.continuation = random() % 3 ? alike : std::vector<TokenId>();
      const auto own = drawn_ids(random, length(20), vocabulary);
      request.continuation.insert(request.continuation.end(), own.begin(), own.end());
      if (int64_t(request.continuation.size()) > longest) request.continuation.resize(size_t(longest));
      out.push_back(request);
    }
    if (random() % 7 == 0 && out.size() < count) out.push_back(out.back());
  }
  return out;
}

// What the trainer's forward gives for one request.
TokenScores by_whole_sequence(const models::Model& model, const ScoreRequest& request, int64_t max_length) {
  const at::NoGradGuard no_gradient;
  std::vector<int64_t> ids(request.context.begin(), request.context.end());
  ids.insert(ids.end(), request.continuation.begin(), request.continuation.end() - 1);
  if (int64_t(ids.size()) > max_length) ids.erase(ids.begin(), ids.end() - max_length);
  const std::vector<int64_t> labels(request.continuation.begin(), request.continuation.end());
  nn::Pass pass = nn::Pass::over({0, int64_t(ids.size())});
  const Tensor hidden = model.forward({at::tensor(ids, at::kLong)}, pass).hidden;
  const nn::Scores scores = model.head().score(hidden.slice(0, int64_t(ids.size() - labels.size())),
                                               at::tensor(labels, at::kLong), pass, {.correct = true});
  TokenScores out;
  for (size_t i = 0; i < labels.size(); ++i) {
    out.each.push_back(scores.logps[int64_t(i)].item<float>());
    out.is_greedy &= scores.correct[int64_t(i)].item<bool>();
    out.logprob += double(out.each.back());
  }
  return out;
}

uint64_t hash_of(const std::vector<TokenScores>& all) {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  };
  for (const TokenScores& scores : all) {
    add(&scores.logprob, sizeof scores.logprob);
    add(&scores.is_greedy, 1);
    add(scores.each.data(), scores.each.size() * sizeof(float));
  }
  return hash;
}

void expect_equal(const TokenScores& found, const TokenScores& expected, const std::string& what) {
  ASSERT_EQ(found.each.size(), expected.each.size()) << what;
  EXPECT_EQ(std::memcmp(found.each.data(), expected.each.data(), found.each.size() * sizeof(float)), 0) << what;
  EXPECT_EQ(found.logprob, expected.logprob) << what;
  EXPECT_EQ(found.is_greedy, expected.is_greedy) << what;
}

TEST(Scorer, GivesOneSetOfBitsInTwentyCutsAndOrdersWithSharingAndWithout) {
  const auto model = loaded("models/stories260K-hf", models::DTypeSetting::fp32);
  const std::vector<ScoreRequest> requests = drawn_requests(1000, model->vocabulary(), 60);
  std::vector<TokenScores> first(requests.size());
  uint64_t expected = 0;
  std::mt19937 random(11);
  for (int cut = 0; cut < 20; ++cut) {
    std::vector<size_t> order(requests.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::ranges::shuffle(order, random);
    ScorerOptions options;
    options.share = cut % 4 != 3;
    options.pass_tokens = 40 + int64_t(random() % 3000);
    options.pass_requests = cut % 3 == 0 ? 1 + int64_t(random() % 40) : 0;
    options.memory_share = cut % 5 == 0 ? 1e-9 : 0.3;
    const auto pool = kernels::make_pool(1 + cut % 3);
    const tensor::UseExecutor use(*pool);
    Scorer scorer(*model, options);
    std::vector<TokenScores> found(requests.size());
    // several runs of a scorer, each with a part of the requests
    const size_t runs = 1 + random() % 3;
    for (size_t run = 0; run < runs; ++run) {
      std::vector<ScoreRequest> part;
      std::vector<size_t> places;
      for (size_t i = run; i < order.size(); i += runs) part.push_back(requests[order[i]]), places.push_back(order[i]);
      const std::vector<TokenScores> answers = scorer.run(part);
      for (size_t i = 0; i < part.size(); ++i) found[places[i]] = answers[i];
    }
    if (cut == 0) expected = hash_of(found), first = found;
    EXPECT_EQ(hash_of(found), expected) << "cut " << cut << ", " << options.pass_tokens << " tokens in a pass";
    EXPECT_EQ(scorer.counts().requests, int64_t(requests.size()));
    if (options.share) {
      EXPECT_LT(scorer.counts().computed, scorer.counts().tokens * (runs == 1 ? 2 : 3) / 3);
    } else {
      EXPECT_EQ(scorer.counts().computed, scorer.counts().tokens);
    }
  }
  for (size_t i = 0; i < requests.size(); i += 37)
    expect_equal(first[i], by_whole_sequence(*model, requests[i], model->max_positions()), str("request ", i));
}

class ScoredFamily : public testing::TestWithParam<const char*> {};

TEST_P(ScoredFamily, HasTheBitsOfTheTrainersForward) {
  for (const auto dtype : {models::DTypeSetting::fp32, models::DTypeSetting::bf16}) {
    const auto model = loaded(std::string("hf_goldens/") + GetParam(), dtype);
    const int64_t longest = model->max_positions() > 0 ? std::min<int64_t>(model->max_positions(), 100) : 100;
    const std::vector<ScoreRequest> requests = drawn_requests(40, model->vocabulary(), longest);
    for (const bool share : {true, false}) {
      Scorer scorer(*model, {.max_length = longest, .pass_tokens = 300, .share = share});
      const std::vector<TokenScores> found = scorer.run(requests);
      for (size_t i = 0; i < requests.size(); ++i)
        expect_equal(found[i], by_whole_sequence(*model, requests[i], longest),
                     str(GetParam(), ", request ", i, share ? ", shared" : ""));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ScoredFamily,
                         testing::Values("llama", "qwen3", "gemma3_text", "gpt2", "mixtral", "mamba2", "deepseek_v32",
                                         "minimax", "falcon_alibi", "llama_rope_dynamic"));

TEST(Scorer, CutsTheLeftEndOfALongContextAndRefusesALongContinuation) {
  const auto model = loaded("models/stories260K-hf", models::DTypeSetting::fp32);
  std::mt19937 random(3);
  const ScoreRequest request{drawn_ids(random, 30, 512), drawn_ids(random, 10, 512)};
  ScoreRequest cut = request;
  cut.context.erase(cut.context.begin(), cut.context.end() - 11);
  const auto found = Scorer(*model, {.max_length = 20}).run({request})[0];
  expect_equal(found, Scorer(*model).run({cut})[0], "21 tokens, the last of them only predicted");
  // A continuation as long as the window has one token of context.
  cut.context.erase(cut.context.begin(), cut.context.end() - 1);
  expect_equal(Scorer(*model, {.max_length = 10}).run({request})[0], Scorer(*model).run({cut})[0], "10 tokens");
  EXPECT_EQ(test::refusal([&] { Scorer(*model, {.max_length = 9}).run({request}); }),
            "request 1: the continuation has 10 tokens; the model reads at most 9");
}

TEST(Scorer, RefusesWhatItCannotScore) {
  const auto model = loaded("models/stories260K-hf", models::DTypeSetting::fp32);
  Scorer scorer(*model);
  EXPECT_EQ(test::refusal([&] { scorer.run({{{}, {5}}}); }), "request 1: the context has no tokens");
  EXPECT_EQ(test::refusal([&] { scorer.run({{{1}, {5}}, {{1}, {}}}); }), "request 2: the continuation has no tokens");
  EXPECT_EQ(test::refusal([&] {
              scorer.run({{{1}, {512}}});
            }),
            "request 1: there is no token 512; the model's vocabulary has 512");
  const std::string bert = test::test_data("hf_goldens/bert_mlm").string();
  EXPECT_EQ(test::refusal([&] { Scorer{*loaded("hf_goldens/bert_mlm", models::DTypeSetting::fp32)}; }),
            "score: '" + bert +
                "' is not a causal language model\n    give one whose config.json names a ...ForCausalLM architecture");
}

TEST(Scorer, SaysWhichWeightIsNotANumber) {
  const auto model = loaded("models/stories260K-hf", models::DTypeSetting::fp32);
  nn::Entry& norm = *model->parameters().find("model.norm.weight");
  norm.shard.fill_(std::numeric_limits<float>::quiet_NaN());
  norm.written();
  EXPECT_EQ(test::refusal([&] {
              Scorer(*model).run({{{1, 5}, {6, 7}}});
            }),
            "score: the model's log-probabilities are not numbers\n    the weight model.norm.weight holds NaN or "
            "infinity");
}

TEST(ScoreTree, HasEachSharedBeginningOnce) {
  const std::vector<TokenId> shot(20, 7), question(10, 8);
  std::vector<std::vector<TokenId>> sequences;
  for (const TokenId own : {3, 4, 5}) {
    std::vector<TokenId> sequence = shot;
    if (own > 3) sequence.insert(sequence.end(), question.begin(), question.end());
    sequence.push_back(own);
    sequences.push_back(sequence);
  }
  sequences.push_back(shot);       // ends where the others go on
  sequences.push_back({9, 9});     // shares nothing
  sequences.push_back({9, 9});     // but is there twice
  sequences.push_back({9, 9, 1});  // and goes on after too little to be shared
  const ScoreTree tree = make_score_tree(sequences, 8);
  EXPECT_EQ(tree.tokens(), 20 + 1 + 10 + 1 + 1 + 2 + 3);
  EXPECT_EQ(tree.last[4], tree.last[5]);
  for (size_t i = 0; i < sequences.size(); ++i) {
    std::vector<TokenId> tokens;
    for (auto at = int64_t(tree.last[i]); at >= 0; at = tree.nodes[size_t(at)].parent) {
      const ScoreNode& node = tree.nodes[size_t(at)];
      const auto& source = sequences[node.sequence];
      tokens.insert(tokens.begin(), source.begin() + node.begin, source.begin() + node.end);
      EXPECT_GE(node.longest, int64_t(sequences[i].size()));
    }
    EXPECT_EQ(tokens, sequences[i]) << i;
  }
  EXPECT_EQ(tree.nodes[tree.roots.back()].longest, 31);
}

TEST(ScoreText, MovesWhiteSpaceAndBeginsAsTheHarnessDoes) {
  const ScoreText texts(story_tokenizer());
  const auto encode = [&](const char* text) { return story_tokenizer()->encode(text); };
  ScoreRequest request = texts.pair("Once upon \n", "a time");
  EXPECT_EQ(request.context, encode("Once upon"));
  std::vector<TokenId> whole = request.context;
  whole.insert(whole.end(), request.continuation.begin(), request.continuation.end());
  EXPECT_EQ(whole, encode("Once upon \na time"));
  // U+2003 is a blank for Python, U+200B is not.
  EXPECT_EQ(texts.pair("Tom\xe2\x80\x83", "x").context, encode("Tom"));
  EXPECT_EQ(texts.pair("Tom\xe2\x80\x8b", "x").context, encode("Tom\xe2\x80\x8b"));
  // An empty context is the prefix token, which a continuation does not repeat.
  request = texts.pair("", "Tom");
  EXPECT_EQ(request.context, std::vector<TokenId>{1});
  EXPECT_EQ(request.continuation, story_tokenizer()->encode("Tom", {.add_special_tokens = false}));
  EXPECT_EQ(texts.pair("", "<s>Tom").continuation.front(), request.continuation.front());
  // BOS is added once.
  EXPECT_EQ(texts.encode("<s>Tom"), encode("Tom"));
  EXPECT_EQ(ScoreText(story_tokenizer(), 2).pair("", "Tom").context, std::vector<TokenId>{2});
}

TEST(ScoreText, RollsOverATextWithDisjointPredictions) {
  const ScoreText texts(story_tokenizer());
  const std::vector<ScoreRequest> windows =
      texts.rolling(std::vector<TokenId>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, 4);
  ASSERT_EQ(windows.size(), 3u);  // the example of the harness' documentation
  EXPECT_EQ(windows[0].context, (std::vector<TokenId>{1}));
  EXPECT_EQ(windows[0].continuation, (std::vector<TokenId>{10, 11, 12, 13}));
  EXPECT_EQ(windows[1].context, (std::vector<TokenId>{13}));
  EXPECT_EQ(windows[1].continuation, (std::vector<TokenId>{14, 15, 16, 17}));
  EXPECT_EQ(windows[2].context, (std::vector<TokenId>{15, 16, 17}));
  EXPECT_EQ(windows[2].continuation, (std::vector<TokenId>{18, 19}));
  EXPECT_TRUE(texts.rolling(std::vector<TokenId>(), 4).empty());
}

TEST(ScoreText, StridesOverATextWithContextBeforeEachPrediction) {
  const ScoreText texts(story_tokenizer());
  const std::string text = "Once upon a time, there was a little girl named Lily.";
  const std::vector<TokenId> ids = texts.encode(text);
  for (const int64_t length : {4, 7, 100})
    for (const int64_t stride : {int64_t(1), length / 2, length}) {
      std::vector<bool> predicted(ids.size(), false);
      int64_t begin = 0;
      for (const ScoreRequest& window : texts.strided(text, length, stride)) {
        std::vector<TokenId> all = window.context;
        all.insert(all.end(), window.continuation.begin(), window.continuation.end());
        EXPECT_TRUE(std::equal(all.begin(), all.end(), ids.begin() + begin)) << length << " " << stride;
        EXPECT_LE(int64_t(all.size()), length);
        for (size_t i = 0; i < window.continuation.size(); ++i) {
          const size_t place = size_t(begin) + window.context.size() + i;
          EXPECT_FALSE(predicted[place]) << "twice " << place;
          predicted[place] = true;
        }
        begin += stride;
      }
      // Windows that do not overlap predict no token that begins one.
      for (size_t i = 0; i < ids.size(); ++i)
        EXPECT_EQ(predicted[i], stride < length ? i > 0 : int64_t(i) % length > 0)
            << length << " " << stride << " " << i;
    }
}

TEST(ScoreText, CutsAnswersOneStopAfterTheOther) {
  EXPECT_EQ(cut_at("abcabd", {"", "ca", "ab"}), "");
  EXPECT_EQ(cut_at("xabcd", {"bcd", "abc"}), "xa");  // after the first cut the second stop is not there
  EXPECT_EQ(cut_at("x", {"y"}), "x");
}

}  // namespace
}  // namespace easydel::generation
