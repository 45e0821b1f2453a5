// Recorded look-ups in EasyDeL's registry.
#include "easydel/base/error.h"
#include "easydel/models/registry_config.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

Value look_up(const VectorCase& vector, const VectorFile&) {
  if (const Value* type = vector.body.find("config")) return Value::text(models::registered_config(type->scalar));
  const Value *task = vector.body.find("task"), *type = vector.body.find("model_type");
  if (!task || !type) throw VectorNotBuilt("this question to the registry");
  return Value::text(models::registered_module(task->scalar, type->scalar));
}

}  // namespace

VectorKind registry_lookup_vectors() { return {.name = "registry_lookup", .answer = look_up}; }

}  // namespace easydel::probe
