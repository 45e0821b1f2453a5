// Learning a model's own task, by what follows its stack. `base` chooses among these.
#pragma once

#include <memory>

#include "easydel/train/method.h"

namespace easydel::train {

// Texts in which tokens were masked, which the masked language model of the setting fills in.
std::unique_ptr<Method> masked_learning(const Setting& setting, double probability);

// Texts, or their words, with classes or numbers. Without a model rows are prepared as far as that is possible: classes
// are not checked.
std::unique_ptr<Method> class_learning(const Setting& setting);

}  // namespace easydel::train
