// A model that one rank has in memory, for all ranks.
#pragma once

#include <memory>

#include "easydel/models/model.h"

namespace easydel::models {

// A frozen model of this configuration, laid out as `present` is, with the weights of `whole`, which the first rank
// alone has (null on the others), its adapters merged. They are sent tensor by tensor. Collective over the ranks of
// `present`.
std::shared_ptr<Model> spread_from_first(const Model& present, const Value& config, const Model* whole);
// On the first rank, before: UserError if that cannot be done: the parameters of `whole` are others, some are codes, or
// this rank has only a part of them.
void check_spreads(const Model& present, const Model& whole);

}  // namespace easydel::models
