// A model with its engine, as the server takes it (server/served_model.h).
#pragma once

#include <memory>

#include "easydel/elarge/elarge.h"
#include "easydel/esurge/engine.h"
#include "easydel/server/served_model.h"

namespace easydel::elarge {

server::ServedModel served_model(std::shared_ptr<esurge::Engine> engine,
                                 std::shared_ptr<const text::Tokenizer> tokenizer, const models::Model& model,
                                 const Config& config);

}  // namespace easydel::elarge
