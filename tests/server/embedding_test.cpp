// /v1/embeddings, /v1/rerank, /v1/score and /v1/classify: bodies, arithmetic and answers.
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/server/embedding_json.h"
#include "easydel/server/embedding_request.h"
#include "easydel/server/pair_activation.h"
#include "server/read_request.h"

namespace easydel::server {
namespace {

using test::read;
using test::wrong;

TEST(EmbeddingRequests, RefuseWhatIsWrong) {
  EXPECT_EQ(read<EmbeddingsRequest>(R"({"input": ["a", "b"], "dimensions": 3})").dimensions, 3);
  EXPECT_EQ(wrong<EmbeddingsRequest>(R"({"input": ["a", 1], "encoding_format": "int8"})"),
            "input[1]: '1' is not a string\nencoding_format: 'int8' is not float or base64\n");
  EXPECT_EQ(wrong<EmbeddingsRequest>(R"({"input": []})"), "input: a list is not a text or a list of texts\n");
  EXPECT_EQ(wrong<RerankRequest>(R"({"query": "q"})"), "documents: is missing\n");
  EXPECT_EQ(wrong<RerankRequest>(R"({"query": 1, "documents": ["a", {"text": "b"}, {"title": "c"}]})"),
            "query: '1' is not a string\ndocuments[2]: is not a string, or an object with text\n");
  EXPECT_EQ(read<RerankRequest>(R"({"query": "q", "documents": ["a", {"text": "b"}]})").texts(),
            (std::vector<std::string>{"a", "b"}));
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(read<ScoreRequest>(R"({"text_1": "a", "text_2": ["b", "c"]})").pairs(), (Pairs{{"a", "b"}, {"a", "c"}}));
  EXPECT_EQ(read<ScoreRequest>(R"({"queries": ["a", "d"], "documents": ["b", "c"]})").pairs(),
            (Pairs{{"a", "b"}, {"d", "c"}}));
  EXPECT_EQ(wrong<ScoreRequest>(R"({"text_1": ["a", "b"], "text_2": ["c"]})"),
            "text_2: has another number of texts than text_1\n");
  std::string many = "\"a\"";
  for (int i = 0; i < 2048; ++i) many += ",\"a\"";
  EXPECT_EQ(wrong<ClassifyRequest>("{\"input\": [" + many + "]}"), "input: has more than 2048 texts\n");
}

TEST(EmbeddingNumbers, AreCutAndScaled) {
  EXPECT_EQ(cut_embedding({3, 4, 12}, 2), (Vector{0.6f, 0.8f}));
  EXPECT_EQ(cut_embedding({0, 0}, 5), (Vector{0, 0}));
  EXPECT_DOUBLE_EQ(cosine({1, 0}, {1, 1}), 1 / std::sqrt(2.0));
  EXPECT_EQ(cosine({0, 0}, {1, 1}), 0);
  EXPECT_EQ(activated({0}, ClassActivation::sigmoid), Vector{0.5f});
  EXPECT_EQ(activated({1000, 1000}, ClassActivation::softmax), (Vector{0.5f, 0.5f}));
  EXPECT_EQ(activated({1000, -1000}, ClassActivation::sigmoid), (Vector{1, 0}));
  EXPECT_EQ(activated({3, -4}, ClassActivation::identity), (Vector{3, -4}));
  EXPECT_EQ(base64("abcd"), "YWJjZA==");
}

// Values of torch 2.13.0 in fp64.
TEST(PairActivations, AreThoseOfTorch) {
  const std::vector<double> x = {-25, -4, -0.75, 0.3, 7, 25};
  const std::vector<std::pair<std::string, std::vector<double>>> expected = {
      {"CELU", {-0.999999999986, -0.981684361111, -0.527633447259, 0.3, 7, 25}},
      {"ELU", {-0.999999999986, -0.981684361111, -0.527633447259, 0.3, 7, 25}},
      {"GELU", {-0, -0.000126684967332, -0.169970514283, 0.185373426657, 6.99999999999, 25}},
      {"Hardshrink", {-25, -4, -0.75, 0, 7, 25}},
      {"Hardsigmoid", {0, 0, 0.375, 0.55, 1, 1}},
      {"Hardswish", {-0, -0, -0.28125, 0.165, 7, 25}},
      {"Hardtanh", {-1, -1, -0.75, 0.3, 1, 1}},
      {"Identity", {-25, -4, -0.75, 0.3, 7, 25}},
      {"LeakyReLU", {-0.25, -0.04, -0.0075, 0.3, 7, 25}},
      {"LogSigmoid", {-25, -4.01814992792, -1.13687100611, -0.554355244469, -0.000911466453774, -1.38879438649e-11}},
      {"Mish", {-3.47198596622e-10, -0.072591740792, -0.276494714505, 0.208001372348, 6.99998837981, 25}},
      {"ReLU", {0, 0, 0, 0.3, 7, 25}},
      {"ReLU6", {0, 0, 0, 0.3, 6, 6}},
      {"SELU", {-1.75809934082, -1.72589862819, -0.927632015835, 0.315210296207, 7.35490691149, 26.2675246839}},
      {"SiLU", {-3.47198596619e-10, -0.0719448398484, -0.240615975618, 0.172332755043, 6.99362264164, 24.9999999997}},
      {"Sigmoid", {1.38879438648e-11, 0.0179862099621, 0.320821300825, 0.574442516812, 0.999088948806, 0.999999999986}},
      {"Softplus", {1.38879438649e-11, 0.0181499279178, 0.386871006115, 0.854355244469, 7.00091146645, 25}},
      {"Softshrink", {-24.5, -3.5, -0.25, 0, 6.5, 24.5}},
      {"Softsign", {-0.961538461538, -0.8, -0.428571428571, 0.230769230769, 0.875, 0.961538461538}},
      {"Tanh", {-1, -0.999329299739, -0.635148952387, 0.291312612452, 0.999998336944, 1}},
      {"Tanhshrink", {-24, -3.00067070026, -0.114851047613, 0.00868738754841, 6.00000166306, 24}},
  };
  std::vector<std::string> names;
  for (const auto& [name, values] : expected) {
    names.push_back(name);
    const PairActivation activation = find_pair_activation(name);
    ASSERT_TRUE(activation) << name;
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(activation(x[i]), values[i], 1e-11 * std::abs(values[i])) << name << "(" << x[i] << ")";
  }
  EXPECT_EQ(pair_activation_names(), names);
  EXPECT_FALSE(find_pair_activation("Softmax"));
}

const CompletionHead head{.id = "x-1", .created = 7, .model = "m"};
const std::string usage = R"("usage":{"prompt_tokens":4,"total_tokens":4,"completion_tokens":0})";

TEST(EmbeddingAnswers, AreWrittenByteForByte) {
  EXPECT_EQ(embeddings_answer("m", {{0.5f, -1}, {2}}, false, 4),
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1]},)"
            R"({"object":"embedding","index":1,"embedding":[2]}],"model":"m",)" +
                usage + "}");
  EXPECT_EQ(embeddings_answer("m", {{1, -2}}, true, 4),
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":"AACAPwAAAMA="}],"model":"m",)" +
                usage + "}");
  EXPECT_EQ(rerank_answer(head, {{0, 0.1, "a"}, {1, 0.9, "b"}, {2, 0.1, "c"}}, 2, true, 4),
            R"({"id":"x-1","object":"list","created":7,"model":"m","results":[{"index":1,"relevance_score":0.9,)"
            R"("document":{"text":"b"}},{"index":0,"relevance_score":0.1,"document":{"text":"a"}}],)" +
                usage + R"(,"meta":{"billed_units":{"search_units":1}}})");
  EXPECT_EQ(
      score_answer(head, {0.25}, 4),
      R"({"id":"x-1","object":"list","created":7,"model":"m","data":[{"index":0,"object":"score","score":0.25}],)" +
          usage + "}");
  EXPECT_EQ(classify_answer(head, {{0.25f, 0.75f}, {1}}, {"no"}, 4),
            R"({"id":"x-1","object":"list","created":7,"model":"m","data":[{"index":0,"label":"LABEL_1",)"
            R"("probs":[0.25,0.75],"num_classes":2},{"index":1,"label":"no","probs":[1],"num_classes":1}],)" +
                usage + "}");
}

}  // namespace
}  // namespace easydel::server
