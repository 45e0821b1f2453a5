#include "easydel/base/error.h"

namespace easydel {

void refuse(const std::string& where, const std::string& what, const std::string& remedy) {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!remedy.empty()) text += "\n    " + remedy;
  throw UserError(text);
}

}  // namespace easydel
