// Embeddings and scores of classes on several ranks: the vectors of one rank, also of texts that are cut into steps and
// beside generation.
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "esurge/on_ranks.h"

namespace easydel::esurge {
namespace {

const char* const encoder =
    R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128,
        "type_vocab_size": 2, "initializer_range": 0.3})";
const char* const classifier =
    R"({"model_type": "llama", "architectures": ["LlamaForSequenceClassification"], "vocab_size": 96,
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 512, "initializer_range": 0.3, "num_labels": 3,
        "id2label": {"0": "a", "1": "b", "2": "c"}, "pad_token_id": 0})";

// `both`: every second one has two types of tokens.
std::vector<Request> texts(bool both) {
  std::vector<Request> out;
  for (int i = 0; i < 9; ++i) {
    Request& text = out.emplace_back();
    std::vector<TokenId> ids;
    for (int t = 0; t < 3 + (i * 17) % 40; ++t) ids.push_back((t * 5 + i * 7 + 3) % 96);
    text.pooled.emplace();
    if (both && i % 2 == 1) {
      text.pooled->type_ids.assign(ids.size(), 0);
      text.pooled->type_ids.back() = 1;
    }
    text.prompt = std::move(ids);
  }
  return out;
}

std::vector<std::vector<float>> vectors(StepEngine& engine, const std::vector<Request>& asked,
                                        const std::vector<Request>& beside) {
  std::vector<std::vector<float>> out(asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    if (i < beside.size()) engine.add(beside[i], {});
    engine.add(asked[i], [&out, i](const RequestOutput& output) {
      EXPECT_EQ(output.error, "");
      if (output.vector) out[i] = *output.vector;
    });
    if (i % 3 == 1) engine.step();
  }
  while (engine.step()) {
  }
  return out;
}

void expect_vectors_of_one(const char* config, bool pools_only, const std::vector<int64_t>& sizes) {
  SCOPED_TRACE(testing::PrintToString(sizes));
  test::TemporaryFolder folder;
  const fs::path path = write_model(folder, config);
  const int ranks = int(mesh::Mesh(mesh::default_axes(), sizes).ranks());
  test::run_ranks(ranks, [&](const Meeting& meeting) {
    const auto team = join(meeting, 20, sizes);
    EsurgeConfig own = config_of();
    if (pools_only) own.max_num_batched_tokens = 64;
    const std::vector<Request> asked = texts(config == encoder),
                               beside = pools_only ? std::vector<Request>() : requests();
    on_ranks(*team, meeting, load(path, team), own, [&](EngineSetup setup) {
      setup.pools_only = pools_only;
      StepEngine engine(std::move(setup));
      EngineSetup single = setup_of(load(path, Team::alone()), own);
      single.pools_only = pools_only;
      StepEngine one(std::move(single));
      const auto found = vectors(engine, asked, beside), expected = vectors(one, asked, beside);
      EXPECT_GT(engine.metrics().steps, 3);
      for (size_t i = 0; i < asked.size(); ++i) {
        ASSERT_EQ(found[i].size(), expected[i].size());
        ASSERT_GE(found[i].size(), 3u);
        for (size_t k = 0; k < found[i].size(); ++k)
          if (team->mesh().size("tp") == 1)
            EXPECT_EQ(found[i][k], expected[i][k]) << i;
          else
            EXPECT_NEAR(found[i][k], expected[i][k], 1e-4) << i;
      }
      EXPECT_NE(found[0], found[1]);
      EXPECT_EQ(vectors(engine, asked, beside), found) << "once more";
      // A text that is aborted between its steps leaves nothing behind.
      if (pools_only) return;
      const RequestId id = engine.add(asked[2], [](const RequestOutput&) {});
      engine.step();
      engine.abort(id);
      EXPECT_EQ(vectors(engine, asked, {}), found);
    });
  });
}

TEST(PooledTextsOnRanks, AreThoseOfOneRankBesideGeneration) {
  for (const auto& sizes : std::vector{by_tensor, by_data, by_both}) expect_vectors_of_one(llama, false, sizes);
}
TEST(PooledTextsOnRanks, AreThoseOfOneRankOfAnEncoder) {
  for (const auto& sizes : {by_tensor, by_data}) expect_vectors_of_one(encoder, true, sizes);
}
TEST(PooledTextsOnRanks, AreThoseOfOneRankOfAClassifier) {
  for (const auto& sizes : {by_tensor, by_data}) expect_vectors_of_one(classifier, true, sizes);
}

}  // namespace
}  // namespace easydel::esurge
