// /v1/embeddings, /v1/rerank, /v1/score and /v1/classify: bodies, arithmetic and answers.
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/server/embedding_json.h"
#include "easydel/server/embedding_request.h"
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
