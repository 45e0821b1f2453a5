// How far the predictions of two models differ on given tokens.
#pragma once

#include <string>
#include <vector>

#include "easydel/elarge/core.h"
#include "easydel/models/model.h"

namespace easydel::elarge {

// As Core::compare_predictions.
void compare_predictions(const models::Model& model, const models::Model& other,
                         const std::vector<std::string>& windows, const OnLineAnswer& on_answer);

}  // namespace easydel::elarge
