// Recorded cases of transformers' learning rate schedules: sched/tables. A row is "type" or "type:variant".
#include "easydel/base/error.h"
#include "easydel/probe/replay_schedule.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

double number_of(const VectorFile& file, const char* key) {
  const Value* const value = file.document.find(key);
  if (!value || !value->as_double()) refuse(file.path.string(), str("has no number \"", key, "\""));
  return *value->as_double();
}

Value rates(const VectorCase& vector, const VectorFile& file) {
  train::Schedule base;
  base.rate = number_of(file, "base_lr");
  base.warmup = int64_t(number_of(file, "num_warmup_steps"));
  base.steps = int64_t(number_of(file, "num_training_steps"));
  const std::string type = vector.id.substr(0, vector.id.find(':'));
  const train::Schedule schedule = read_schedule(type, needed(vector, "kwargs"), base, vector.id);
  Value out = Value::list();
  for (size_t step = 0; step < needed(vector, "lr").items.size(); ++step)
    out.items.push_back(Value::number(schedule.at(int64_t(step))));
  return out;
}

Value expected_rates(const VectorCase& vector, const VectorFile&) { return needed(vector, "lr"); }

}  // namespace

VectorKind schedule_vectors() {
  return {.name = "sched/tables", .answer = rates, .relative = 1e-6, .absolute = 1e-12, .expected = expected_rates};
}

}  // namespace easydel::probe
