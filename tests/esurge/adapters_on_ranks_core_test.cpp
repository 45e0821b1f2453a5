// Adapters of requests on several ranks: the tokens of one rank, each request with the version that it began with, and
// all ranks have an adapter or none.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "easydel/base/error.h"
#include "easydel/models/adapter.h"
#include "esurge/on_ranks.h"

namespace easydel::esurge {
namespace {

// DoRA where the output of a layer is cut, plain LoRA on all linear layers and on the embedding, and one of zeros.
const std::map<std::string, std::pair<const char*, uint64_t>>& adapter_configs() {
  static const std::map<std::string, std::pair<const char*, uint64_t>> all = {
      {"one", {"{r: 3, alpha: 12, init: random}", 1}},
      {"other", {"{r: 2, alpha: 8, init: random, use_dora: true, target_modules: [q_proj, v_proj, up_proj]}", 2}},
      {"words", {"{r: 4, alpha: 16, init: random, target_modules: [embed_tokens, lm_head, down_proj]}", 3}},
      {"zeros", {"{r: 4}", 4}}};
  return all;
}

void write_adapter(const fs::path& model, const std::string& name, const fs::path& to) {
  const auto& [yaml, seed] = adapter_configs().at(name);
  models::LoadOptions options;
  options.dtype = models::DTypeSetting::fp32;
  options.seed = 7;
  models::AdapterOptions& adapter = options.adapters.emplace_back();
  config::read(parse_yaml(yaml), adapter.config, "lora").throw_if_any();
  adapter.seed = seed;
  const auto made = models::load_model(model, options);
  models::save_adapter(*made, *made->adapters().front(), to, "base");
}

fs::path write_adapters(const fs::path& model) {
  for (const auto& [name, config] : adapter_configs()) write_adapter(model, name, model / name);
  return model;
}

std::vector<Request> with_adapters(std::vector<Request> all) {
  for (size_t i = 0; i < all.size(); ++i)
    if (const char* const name = std::array{"one", "", "other", "words", "one", "zeros"}[i % 6]; *name)
      all[i].sampling.adapter = name;
  return all;
}

void load_all(StepEngine& engine, const fs::path& folder) {
  for (const auto& [name, config] : adapter_configs()) engine.load_adapter(name, folder / name);
}

Answers alone_with(const fs::path& folder, std::vector<Request> asked) {
  StepEngine engine(setup_of(load(folder, Team::alone()), config_of()));
  load_all(engine, folder);
  return run(engine, std::move(asked));
}

// `loaded_as`: the layout in which the weights are in memory before they get the engine's; empty: that.
void expect_answers_of_one(const std::vector<int64_t>& sizes, const std::vector<int64_t>& loaded_as = {}) {
  test::TemporaryFolder folder;
  const fs::path path = write_model(folder, llama);
  const int ranks = int(mesh::Mesh(mesh::default_axes(), sizes).ranks());
  test::run_ranks(ranks, [&](const Meeting& meeting) {
    if (meeting.world.rank == 0) write_adapters(path);
    auto team = join(meeting, 20, loaded_as.empty() ? sizes : loaded_as);
    std::shared_ptr<models::Model> model = load(path, team);
    if (!loaded_as.empty()) {
      team = team->on_mesh(mesh::Mesh(mesh::default_axes(), sizes), 20);
      model = models::lay_out_anew(*model, team, {});
    }
    on_ranks(*team, meeting, model, config_of(), [&](EngineSetup setup) {
      StepEngine engine(std::move(setup));
      load_all(engine, path);
      const Answers found = run(engine, with_adapters(requests()));
      const Answers expected = alone_with(path, with_adapters(requests()));
      EXPECT_EQ(found.tokens, expected.tokens);
      EXPECT_EQ(found.errors, expected.errors);
      EXPECT_EQ(run(engine, with_adapters(requests())).tokens, found.tokens) << "from the prefix cache";
      const Answers base = run(engine, requests());
      EXPECT_EQ(base.tokens, alone(path).tokens);
      EXPECT_NE(base.tokens, found.tokens);
      ASSERT_EQ(found.prompt_logprobs.size(), expected.prompt_logprobs.size());
      for (size_t i = 0; i < found.prompt_logprobs.size(); ++i)
        EXPECT_NEAR(found.prompt_logprobs[i], expected.prompt_logprobs[i], 1e-4);
      if (team->mesh().size("tp") == 1) {
        EXPECT_EQ(found.prompt_logprobs, expected.prompt_logprobs);  // bit by bit
      }
    });
  });
}

TEST(AdaptersOnRanks, GiveTheTokensOfOneRankWhereLayersAreCut) { expect_answers_of_one(by_tensor); }
TEST(AdaptersOnRanks, GiveTheBitsOfOneRankInDataParts) { expect_answers_of_one(by_data); }
TEST(AdaptersOnRanks, GiveTheTokensOfOneRankOnFour) { expect_answers_of_one(by_both); }
TEST(AdaptersOnRanks, GiveTheTokensOfOneRankOverWeightsThatWereInAnotherLayout) {
  expect_answers_of_one(by_tensor, {1, 2, 1, 1, 1});
}

// Of layers that are cut, and in data parts.
TEST(AdaptersOnRanks, AreAddedUp) {
  using Kind = models::AdapterSum::Kind;
  const std::vector<models::AdapterSum::Share> shares = {{"one", 1.5}, {"words", -0.5}, {"zeros", 1}};
  for (const std::vector<int64_t>& sizes : {by_tensor, by_data}) {
    test::TemporaryFolder folder;
    const fs::path path = write_model(folder, llama);
    test::run_ranks(2, [&](const Meeting& meeting) {
      if (meeting.world.rank == 0) write_adapters(path);
      const auto team = join(meeting, 20, sizes);
      on_ranks(*team, meeting, load(path, team), config_of(), [&](EngineSetup setup) {
        std::vector<Request> asked = requests();
        for (size_t i = 0; i < asked.size(); i += 2) asked[i].sampling.adapter = "sum";
        StepEngine engine(std::move(setup)), alone(setup_of(load(path, Team::alone()), config_of()));
        for (StepEngine* one : {&engine, &alone}) {
          load_all(*one, path);
          one->add_adapter_sum("sum", Kind::cat, shares);
        }
        EXPECT_EQ(test::refusal([&] {
                    engine.add_adapter_sum("x", Kind::linear, {{"one", 1}, {"other", 1}});
                  }),
                  "adapters.x: adds up more than products of A and B (model.layers.0.self_attn.q_proj has DoRA, "
                  "lora_bias, or a weight of its own)\n    merge such adapters: easydel merge");
        const Answers found = run(engine, asked);
        EXPECT_EQ(found.tokens, run(alone, asked).tokens);
        EXPECT_NE(found.tokens, run(engine, requests()).tokens);
        engine.unload_adapter("sum");
        EXPECT_EQ(run(engine, requests()).tokens, run(alone, requests()).tokens);
      });
    });
  }
}

TEST(AdaptersOnRanks, KeepTheVersionThatARequestBeganWith) {
  test::TemporaryFolder folder;
  const fs::path path = write_model(folder, llama);
  test::run_ranks(2, [&](const Meeting& meeting) {
    if (meeting.world.rank == 0) write_adapters(path);
    const auto team = join(meeting);
    on_ranks(*team, meeting, load(path, team), config_of(), [&](EngineSetup setup) {
      Request asked = requests()[0];
      const auto expected = [&](const char* adapter) {
        Request own = asked;
        own.sampling.adapter = adapter;
        return alone_with(path, {own}).tokens;
      };
      StepEngine engine(std::move(setup));
      asked.sampling.adapter = "mine";
      engine.load_adapter("mine", path / "one");
      RequestOutput first;
      engine.add(asked, [&](RequestOutput output) { first = std::move(output); });
      engine.step();
      engine.load_adapter("mine", path / "other", /*replace=*/true);
      EXPECT_EQ(run(engine, {asked}).tokens, expected("other"));
      ASSERT_TRUE(first.finished) << "beside the other one";
      EXPECT_EQ(first.outputs.at(0).token_ids, expected("one").at(0));
      // One that is dropped finishes what uses it, and can be loaded again.
      engine.add(asked, [&](RequestOutput output) { first = std::move(output); });
      engine.step();
      engine.unload_adapter("mine");
      EXPECT_THROW(engine.add(asked, {}), UserError);
      while (engine.step()) {
      }
      EXPECT_EQ(first.outputs.at(0).token_ids, expected("other").at(0));
      engine.load_adapter("mine", path / "words");
      EXPECT_EQ(run(engine, {asked}).tokens, expected("words"));
    });
  });
}

// The second rank's folder of this name is not there, or has another adapter.
TEST(AdaptersOnRanks, AreLoadedByAllRanksOrByNone) {
  test::TemporaryFolder folder;
  const fs::path path = write_model(folder, llama);
  for (const char* const name : {"here", "elsewhere"}) fs::create_directory(path / name);
  test::run_ranks(2, [&](const Meeting& meeting) {
    fs::current_path(path / (meeting.world.rank == 0 ? "here" : "elsewhere"));
    if (meeting.world.rank == 0) {
      write_adapter(path, "one", path / "here/missing");
      write_adapter(path, "one", path / "here/changed");
      write_adapter(path, "words", path / "elsewhere/changed");
      write_adapter(path, "one", path / "here/fine");
      write_adapter(path, "one", path / "elsewhere/fine");
    }
    const auto team = join(meeting);
    on_ranks(*team, meeting, load(path, team), config_of(), [&](EngineSetup setup) {
      StepEngine engine(std::move(setup));
      const std::string remedy = "\n    every rank reads the folder itself: give all of them the same one";
      EXPECT_EQ(test::refusal([&] { engine.load_adapter("mine", "missing"); }),
                "adapters.mine: rank 1: missing: has no adapter_config.json" + remedy);
      EXPECT_EQ(test::refusal([&] { engine.load_adapter("mine", "changed"); }),
                "adapters.mine: rank 1: changed: has other files than on the first rank" + remedy);
      EXPECT_TRUE(engine.adapters().empty());
      Request asked = requests()[0];
      asked.sampling.adapter = "mine";
      EXPECT_THROW(engine.add(asked, {}), UserError);
      // The ranks go on, and what was refused is no obstacle.
      EXPECT_EQ(run(engine, requests()).tokens, alone(path).tokens);
      engine.load_adapter("mine", "fine");
      const Answers found = run(engine, {asked});
      EXPECT_EQ(found.errors, std::vector<std::string>{""});
      engine.load_adapter("mine", "fine", true);
      EXPECT_EQ(test::refusal([&] { engine.load_adapter("mine", "changed", true); }),
                "adapters.mine: rank 1: changed: has other files than on the first rank" + remedy);
      EXPECT_EQ(run(engine, {asked}).tokens, found.tokens) << "the one that was there stays";
    });
  });
}

}  // namespace
}  // namespace easydel::esurge
