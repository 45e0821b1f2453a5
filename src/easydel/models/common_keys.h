// Keys of config.json that every family has and no family's own reader looks at: a value of a wrong kind is refused
// here. No torch.
#pragma once

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::models {

// UserError "config.json: torch_dtype: 'float5' is not a dtype", "config.json: eos_token_id: ... is not a token id".
void check_common_keys(const Value& config, const Where& where);

}  // namespace easydel::models
