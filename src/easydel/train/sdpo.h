// What sdpo tells a model about its own completion.
#pragma once

#include <string>

namespace easydel::train {

// `solution`: the text of the best completion of the group; empty: none was good.
std::string feedback_on(bool is_good, const std::string& solution);

}  // namespace easydel::train
