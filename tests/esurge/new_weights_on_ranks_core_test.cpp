// Weights that change while an engine on several ranks runs: all ranks answer with the new ones, or all with the old.
#include <gtest/gtest.h>

#include <map>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/models/adapter.h"
#include "esurge/on_ranks.h"

namespace easydel::esurge {
namespace {

// Folders without weights, whose values come from a seed.
uint64_t seed_of(const fs::path& folder) { return folder.filename() == "new" ? 8 : 7; }

class NewWeightsOnRanks : public testing::Test {
 protected:
  NewWeightsOnRanks() {
    for (const char* const name : {"old", "new", "wide"}) {
      fs::create_directory(folder_ / name);
      test::write_file(folder_ / name / "config.json", llama);
    }
    test::write_file(folder_ / "wide/config.json", test::replaced(llama, "\"vocab_size\": 96", "\"vocab_size\": 97"));
  }

  Answers expected(const char* name) const {
    const fs::path path = folder_ / name;
    StepEngine engine(setup_of(load(path, Team::alone(), seed_of(path)), config_of()));
    return run(engine, requests());
  }
  // `lead` on the first of two ranks; the second one reads `instead` of a folder of this name, if it is given.
  void on_two_ranks(const std::vector<int64_t>& sizes,
                    const std::function<void(StepEngine& engine, const std::shared_ptr<const Team>& team)>& lead,
                    const std::map<std::string, std::string>& instead = {}) {
    test::run_ranks(2, [&](const Meeting& meeting) {
      const auto team = join(meeting, 20, sizes);
      const auto read = [&](const fs::path& asked) {
        const auto other = instead.find(asked.filename().string());
        const fs::path path = other == instead.end() ? asked : folder_ / other->second;
        return load(path, team, seed_of(path));
      };
      on_ranks(
          *team, meeting, load(folder_ / "old", team), config_of(),
          [&](EngineSetup setup) {
            setup.fingerprint = "old";
            StepEngine engine(std::move(setup));
            lead(engine, team);
          },
          read);
    });
  }
  // As Engine::update_model_weights does it.
  void update(StepEngine& engine, const std::shared_ptr<const Team>& team, const char* name,
              bool names_folder = true) const {
    const fs::path path = folder_ / name;
    const auto model = load(path, team, seed_of(path));
    engine.await_new_weights(KnownRequests::finish);
    while (!engine.has_left_weights()) engine.step();
    engine.take_new_weights([&] { return NewWeights{model, name, names_folder ? path : fs::path()}; });
  }

  test::TemporaryFolder folder_;
};

TEST_F(NewWeightsOnRanks, AnswerWhatComesLater) {
  for (const auto& sizes : {by_tensor, by_data}) {
    on_two_ranks(sizes, [&](StepEngine& engine, const std::shared_ptr<const Team>& team) {
      EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
      RequestOutput running;
      engine.add(requests()[5], [&](RequestOutput output) { running = std::move(output); });
      engine.step();
      update(engine, team, "new");
      EXPECT_EQ(running.fingerprint, "old");
      EXPECT_EQ(running.outputs.at(0).token_ids, expected("old").tokens.back());
      EXPECT_EQ(run(engine, requests()).tokens, expected("new").tokens) << "and not from pages of the old ones";
      EXPECT_NE(expected("new").tokens, expected("old").tokens);
      EXPECT_EQ(engine.info().fingerprint, "new");
      update(engine, team, "old");
      EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens) << "and back";
    });
  }
}

TEST_F(NewWeightsOnRanks, AreTakenByAllRanksOrByNone) {
  const std::string remedy = "\n    every rank reads the folder itself: give all of them the same one";
  on_two_ranks(
      by_tensor,
      [&](StepEngine& engine, const std::shared_ptr<const Team>& team) {
        EXPECT_EQ(test::refusal([&] { update(engine, team, "new"); }),
                  "model: not all ranks can take the new weights: rank 1: model: the new weights have a vocabulary of "
                  "97 tokens, the engine's of 96" +
                      remedy);
        EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
        EXPECT_EQ(engine.info().fingerprint, "old");
        EXPECT_EQ(
            test::refusal([&] { update(engine, team, "wide"); }),
            "model: the new weights have a vocabulary of 97 tokens, the engine's of 96\n    make an engine for it");
        EXPECT_EQ(test::refusal([&] { update(engine, team, "old", /*names_folder=*/false); }),
                  "model: the first rank has only a part of the new weights\n"
                  "    give a model that is whole on the first rank, or a folder");
        EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
      },
      {{"new", "wide"}});
}

// As Engine::update_model_weights does it with a model that the first rank alone has.
void send(StepEngine& engine, std::shared_ptr<const models::Model> model) {
  engine.await_new_weights(KnownRequests::finish);
  while (!engine.has_left_weights()) engine.step();
  engine.take_new_weights([&] {
    return NewWeights{.model = std::move(model),
                      .fingerprint_of = [](const models::Model& own) { return str("on ", own.team().size()); }};
  });
}

// Two layers are trained with an adapter, which is merged.
models::LoadOptions with_adapter() {
  models::LoadOptions options;
  options.dtype = models::DTypeSetting::fp32;
  options.seed = 8;
  models::AdapterOptions& adapter = options.adapters.emplace_back();
  config::read(parse_yaml("{r: 3, alpha: 12, init: random}"), adapter.config, "lora").throw_if_any();
  adapter.seed = 1;
  return options;
}

TEST_F(NewWeightsOnRanks, ComeFromTheMemoryOfTheFirstRank) {
  for (const auto& sizes : {by_tensor, by_data}) {
    on_two_ranks(sizes, [&](StepEngine& engine, const std::shared_ptr<const Team>&) {
      EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
      const auto model = load(folder_ / "new", Team::alone(), 8);
      send(engine, model);
      EXPECT_EQ(engine.info().fingerprint, "on 2");
      EXPECT_EQ(run(engine, requests()).tokens, expected("new").tokens);
      // The caller goes on with its own.
      for (nn::Entry& entry : model->parameters().entries()) entry.shard.zero_(), entry.written();
      engine.reset_prefix_cache();
      EXPECT_EQ(run(engine, requests()).tokens, expected("new").tokens);
      const auto adapted = models::load_model(folder_ / "new", with_adapter());
      send(engine, adapted);
      StepEngine merged(setup_of(models::lay_out_anew(*adapted, Team::alone(), {}), config_of()));
      const Answers wanted = run(merged, requests());
      EXPECT_NE(wanted.tokens, expected("new").tokens);
      EXPECT_EQ(run(engine, requests()).tokens, wanted.tokens);
    });
  }
}

TEST_F(NewWeightsOnRanks, OfAnotherShapeAreNotSent) {
  on_two_ranks(by_tensor, [&](StepEngine& engine, const std::shared_ptr<const Team>& team) {
    EXPECT_EQ(test::refusal([&] { send(engine, load(folder_ / "wide", Team::alone())); }),
              "model: the new weights have another shape of model.embed_tokens.weight\n    make an engine for it");
    fs::create_directory(folder_ / "turned");
    test::write_file(folder_ / "turned/config.json", test::replaced(llama, "512", "256"));
    EXPECT_EQ(test::refusal([&] { send(engine, load(folder_ / "turned", Team::alone())); }),
              "model: the new weights belong to a model whose layers keep other keys and values than the engine's\n"
              "    make an engine for it");
    EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
    EXPECT_EQ(engine.info().fingerprint, "old");
    update(engine, team, "new");
    EXPECT_EQ(run(engine, requests()).tokens, expected("new").tokens) << "the ranks go on together";
  });
}

// Every rank trains its part: here all weights are halved, and what is collective is done by all.
TEST_F(NewWeightsOnRanks, AreChangedInPlaceByAllRanksAtOnce) {
  const auto halve = [](models::Model& model) {
    const at::NoGradGuard no_history;
    model.team().all().barrier();
    for (nn::Entry& entry : model.parameters().entries()) entry.shard.mul_(0.5), entry.written();
  };
  const auto changed = load(folder_ / "old", Team::alone());
  halve(*changed);
  StepEngine other(setup_of(changed, config_of()));
  const Answers wanted = run(other, requests());
  ASSERT_NE(wanted.tokens, expected("old").tokens);
  for (const auto& sizes : {by_tensor, by_data})
    for (const bool fails : {false, true})
      test::run_ranks(2, [&](const Meeting& meeting) {
        const auto team = join(meeting, 20, sizes);
        const auto model = load(folder_ / "old", team);
        RankEnd end = connect_ranks(*team, team->mesh(), config_of(), meeting.world);
        end.follower.change_weights = [&] {
          halve(*model);
          if (fails) throw std::runtime_error("no");
        };
        if (!team->first()) return follow_steps(model, *end.connection, end.follower);
        EngineSetup setup = setup_of(model, config_of());
        setup.ranks = std::move(end.leader);
        StepEngine engine(std::move(setup));
        EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
        engine.await_new_weights(KnownRequests::finish);
        const auto change = [&] {
          engine.change_weights([&] {
            halve(*model);
            return std::string("halved");
          });
        };
        if (fails) {
          EXPECT_EQ(test::refusal(change),
                    "esurge: rank 1: no\n    see the errors of the other ranks, and start all of them again");
          engine.step();
          EXPECT_EQ(test::refusal([&] { engine.add(requests()[0], {}); }),
                    "esurge: rank 1: no\n    start all ranks again");
          return;
        }
        change();
        EXPECT_EQ(engine.info().fingerprint, "halved");
        EXPECT_EQ(run(engine, requests()).tokens, wanted.tokens) << "and not from pages of the former ones";
      });
}

TEST_F(NewWeightsOnRanks, OfThePresentModelAreNotSent) {
  test::run_ranks(2, [&](const Meeting& meeting) {
    const auto team = join(meeting, 20, by_data);
    const auto model = load(folder_ / "old", team);
    on_ranks(*team, meeting, model, config_of(), [&](EngineSetup setup) {
      StepEngine engine(std::move(setup));
      EXPECT_EQ(test::refusal([&] { send(engine, model); }),
                "model: these are the engine's own weights, which several ranks change together\n"
                "    use change_model_weights, or give another model or a folder");
      EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
    });
  });
}

}  // namespace
}  // namespace easydel::esurge
