// Recorded look-ups in EasyDeL's registry.
#include "easydel/base/error.h"
#include "easydel/cli/vectors.h"
#include "easydel/models/registry_config.h"

namespace easydel::cli {
namespace {

Value look_up(const VectorCase& vector, const VectorFile&) {
  if (const Value* type = vector.body.find("config")) return Value::text(models::registered_config(type->scalar));
  const Value *task = vector.body.find("task"), *type = vector.body.find("model_type");
  if (!task || !type) throw VectorNotBuilt("this question to the registry");
  return Value::text(models::registered_module(task->scalar, type->scalar));
}

}  // namespace

VectorKind registry_lookup_vectors() { return {.name = "registry_lookup", .answer = look_up}; }

}  // namespace easydel::cli
