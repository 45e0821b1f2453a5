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

// Questions, each with a text in which its answer is. Longer texts are cut into windows, examples of their own, which
// have `stride` tokens in common.
std::unique_ptr<Method> answer_learning(const Setting& setting, int64_t stride);

}  // namespace easydel::train
