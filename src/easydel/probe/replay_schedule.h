// A schedule by transformers' names: lr_scheduler_type and lr_scheduler_kwargs.
#pragma once

#include <string>

#include "easydel/base/document.h"
#include "easydel/train/schedule.h"

namespace easydel::probe {

// `base` has rate, warm-up and steps. UserError "where: ..." for a type or a key that is not built.
train::Schedule read_schedule(const std::string& type, const Value& kwargs, train::Schedule base,
                              const std::string& where);

}  // namespace easydel::probe
