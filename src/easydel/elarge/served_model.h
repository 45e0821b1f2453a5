// A model with its engine, as the server takes it (server/served_model.h).
#pragma once

#include <memory>
#include <string>

#include "easydel/elarge/elarge.h"
#include "easydel/esurge/engine.h"
#include "easydel/server/served_model.h"

namespace easydel::elarge {

// Encodes and decodes in other processes if esurge.tokenizer_endpoint says so. null: there is none. UserError as
// text::remote_tokenizer.
std::shared_ptr<const text::Tokenizer> engine_tokenizer(std::shared_ptr<const text::Tokenizer> own,
                                                        const esurge::EsurgeConfig& config);
// With the model's fingerprint. tokenizer: null if it has none; the engine has engine_tokenizer() of it.
esurge::EngineSetup engine_setup(std::shared_ptr<const models::Model> model,
                                 std::shared_ptr<const text::Tokenizer> tokenizer, const Config& config);
std::shared_ptr<esurge::Engine> make_engine(esurge::EngineSetup setup, const Config& config);

// The engine goes on with a model of the same shape, or with its own after its weights have changed (training): what it
// knows finishes first, what comes waits. On several ranks the first one calls it with the whole of another model, of
// which each rank gets its part from memory. UserError as esurge::Engine::update_model_weights.
void update_model_weights(esurge::Engine& engine, std::shared_ptr<const models::Model> model, const Config& config);

server::ServedModel served_model(std::shared_ptr<esurge::Engine> engine,
                                 std::shared_ptr<const text::Tokenizer> tokenizer, const models::Model& model,
                                 const Config& config);

// What the run chose of number formats, which the fingerprint of a model depends on.
std::string formats_of(const Config& config);

// Whether a model has no language head and so embeds or classifies whole texts instead of generating.
bool is_encoder(const models::Model& model);
// ranks: as esurge::EngineSetup has it.
server::ServedModel served_encoder(std::shared_ptr<const models::Model> model,
                                   std::shared_ptr<const text::Tokenizer> tokenizer, const Config& config,
                                   std::shared_ptr<esurge::RankLeader> ranks);

}  // namespace easydel::elarge
