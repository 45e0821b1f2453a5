// What a cross-encoder makes of the score of a pair.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace easydel::server {

using PairActivation = double (*)(double score);

// By the name of a class of torch.nn, with its default arguments: "Sigmoid". Null: there is none.
PairActivation find_pair_activation(std::string_view name);
std::vector<std::string> pair_activation_names();

}  // namespace easydel::server
