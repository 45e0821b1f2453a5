// What sdpo tells a model about its own completion.
#pragma once

#include <string>

namespace easydel::train {

// `solution`: the text of the best completion of the group; empty: none was good. `said`: what a reward said of the
// completion; empty: nothing.
std::string feedback_on(bool is_good, const std::string& solution, const std::string& said = "");

}  // namespace easydel::train
