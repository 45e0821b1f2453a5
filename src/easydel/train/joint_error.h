// Work that may fail on some ranks alone, such as asking a program that only the first one runs.
#pragma once

#include <functional>

#include "easydel/base/error.h"
#include "easydel/collective/team.h"

namespace easydel::train {

// An error that all ranks of a group throw at the same place: nobody waits for another.
class JointError : public UserError {
 public:
  explicit JointError(const UserError& error) : UserError(error) {}
};

// If `work` throws a UserError on a rank, that rank throws it as a JointError, and so do the others, with a text that
// says that another rank failed. Collective.
void together(const collective::Group& ranks, const std::function<void()>& work);

}  // namespace easydel::train
