#include "easydel/base/error_document.h"

namespace easydel {

Value error_document(const UserError& error) {
  Value out = Value::map();
  out.set("where", Value::text(error.where));
  out.set("problem", Value::text(error.problem));
  out.set("remedy", Value::text(error.remedy));
  return out;
}

void rethrow(const Value& error_document) {
  const auto text = [&](const char* key) { return error_document.find(key)->scalar; };
  refuse(text("where"), text("problem"), text("remedy"));
}

}  // namespace easydel
