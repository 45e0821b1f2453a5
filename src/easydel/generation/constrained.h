// Constrained output for the generator: masks of text/constrain as a request's `allowed`.
#pragma once

#include <memory>

#include "easydel/generation/processors.h"
#include "easydel/text/constrain/constraint.h"

namespace easydel::generation {

// The tokens that may follow a prompt of `prompt` tokens and what was generated so far. Copies share what they know and
// may serve several sequences of one request by turns; one thread at a time. Throws UserError where no token of the
// vocabulary can go on, and where a token came that the constraint does not allow (other keys can force one).
AllowedTokens allowed_by(std::shared_ptr<const text::constrain::Constraint> constraint, size_t prompt);

}  // namespace easydel::generation
