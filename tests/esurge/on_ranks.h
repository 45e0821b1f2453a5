// Engines on a few local ranks, for tests: small models, teams, and requests of several kinds.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "easydel/collective/team.h"
#include "easydel/esurge/connect_ranks.h"
#include "easydel/esurge/step_engine.h"
#include "easydel/models/model.h"
#include "support/data.h"
#include "support/ranks.h"

namespace easydel::esurge {

using collective::Team;
namespace fs = std::filesystem;
using test::Meeting;

inline const char* const llama =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "tie_word_embeddings": false, "max_position_embeddings": 512, "initializer_range": 0.3})";

inline fs::path write_model(const test::TemporaryFolder& folder, const char* config) {
  test::write_file(folder / "config.json", config);
  return folder.path();
}

inline std::shared_ptr<models::Model> load(const fs::path& folder, std::shared_ptr<const Team> team,
                                           uint64_t seed = 7) {
  models::LoadOptions options;
  options.dtype = models::DTypeSetting::fp32;
  options.seed = seed;
  options.team = std::move(team);
  return models::load_model(folder, options);
}

inline EsurgeConfig config_of(double step_seconds = 20) {
  EsurgeConfig out;
  out.max_model_len = 128;
  out.max_num_seqs = 8;
  out.max_num_batched_tokens = 24;
  out.page_size = 8;
  out.distributed_step_timeout_s = step_seconds;
  return out;
}

// Greedy and drawn, long and short, one with several choices and one with log-probabilities of its prompt.
inline std::vector<Request> requests() {
  std::vector<Request> out;
  for (int i = 0; i < 6; ++i) {
    Request& request = out.emplace_back();
    std::vector<TokenId> prompt;
    for (int t = 0; t < 5 + 13 * (i % 3); ++t) prompt.push_back((t * 7 + i * 11 + 3) % 96);
    request.prompt = std::move(prompt);
    request.sampling.temperature = i % 2 == 0 ? 0 : 1;
    request.sampling.seed = i;
    request.sampling.max_tokens = 12 + i;
    request.sampling.ignore_eos = true;
    request.sampling.output_kind = OutputKind::final_only;
    if (i == 1) request.sampling.n = 2;
    if (i == 4) request.sampling.prompt_logprobs = 1;
  }
  return out;
}

struct Answers {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::string> errors;
  std::vector<float> prompt_logprobs;
  bool operator==(const Answers&) const = default;
};

inline Answers run(StepEngine& engine, std::vector<Request> asked) {
  std::vector<RequestOutput> outputs(asked.size());
  size_t finished = 0;
  for (size_t i = 0; i < asked.size(); ++i)
    engine.add(std::move(asked[i]), [&, i](RequestOutput output) {
      if (output.finished) ++finished;
      outputs[i] = std::move(output);
    });
  for (int step = 0; step < 1000 && finished < outputs.size(); ++step) engine.step();
  EXPECT_EQ(finished, outputs.size());
  Answers out;
  for (const RequestOutput& output : outputs) {
    out.errors.push_back(output.error);
    for (const CompletionOutput& one : output.outputs) out.tokens.push_back(one.token_ids);
    for (const TokenLogprobs& each : output.prompt_logprobs) out.prompt_logprobs.push_back(each.chosen_logprob());
  }
  return out;
}

inline const std::vector<int64_t> by_tensor = {1, 1, 1, 2, 1}, by_data = {2, 1, 1, 1, 1}, by_both = {2, 1, 1, 2, 1};

inline std::shared_ptr<const Team> join(const Meeting& meeting, double seconds = 20,
                                        const std::vector<int64_t>& sizes = by_tensor) {
  return Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), sizes),
                    {.file_store = meeting.file, .connect_seconds = 60, .timeout_seconds = seconds});
}

inline EngineSetup setup_of(std::shared_ptr<const models::Model> model, EsurgeConfig config) {
  EngineSetup out;
  out.model = std::move(model);
  out.config = std::move(config);
  out.pages = 60;
  return out;
}

// Answers of this rank alone, with the whole model.
inline Answers alone(const fs::path& folder) {
  StepEngine engine(setup_of(load(folder, Team::alone()), config_of()));
  return run(engine, requests());
}

// On the first rank `lead` with an engine's setup; the others follow with `model`, and load new weights by
// `load_model`.
inline void on_ranks(const Team& team, const Meeting& meeting, std::shared_ptr<const models::Model> model,
                     const EsurgeConfig& config, const std::function<void(EngineSetup setup)>& lead,
                     decltype(FollowerOptions::load_model) load_model = {}) {
  RankEnd end = connect_ranks(team, team.mesh(), config, meeting.world);
  end.follower.load_model = std::move(load_model);
  if (!team.first()) return follow_steps(std::move(model), *end.connection, end.follower);
  EngineSetup setup = setup_of(std::move(model), config);
  setup.ranks = std::move(end.leader);
  lead(std::move(setup));
}

}  // namespace easydel::esurge
