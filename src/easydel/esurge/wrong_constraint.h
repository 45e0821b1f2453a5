// What is wrong with a constraint itself, not with the request that has it. No torch.
#pragma once

#include "easydel/base/error.h"

namespace easydel::esurge {

// Of a schema, a pattern or a grammar that cannot be compiled.
struct WrongConstraint : UserError {
  explicit WrongConstraint(const UserError& error) : UserError(error) {}
};

}  // namespace easydel::esurge
