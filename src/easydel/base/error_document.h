// A UserError that crosses from one process to another.
#pragma once

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel {

// {where, problem, remedy}
Value error_document(const UserError& error);
// Throws the UserError again that error_document() made it of.
[[noreturn]] void rethrow(const Value& error_document);

}  // namespace easydel
