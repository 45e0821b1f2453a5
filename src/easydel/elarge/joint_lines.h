// Lines of requests that the first rank is given and all ranks answer together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "easydel/collective/team.h"
#include "easydel/elarge/core.h"

namespace easydel::elarge {

class JointLines {
 public:
  using Answer = std::function<void(const std::vector<std::string>& lines, const LineSettings& settings)>;
  // On the first rank runs `work`, on the others `answer` with what give() is given meanwhile. Returns the result of
  // `work`, or throws its UserError, on every rank. Collective.
  Value run(const collective::Team& team, const std::function<Value()>& work, const Answer& answer);
  // On the first rank: sends lines to the others, which answer them, too. Does nothing outside of run().
  void give(const std::vector<std::string>& lines, const LineSettings& settings);

 private:
  const collective::Team* team_ = nullptr;  // while run() works on the first rank
};

}  // namespace easydel::elarge
