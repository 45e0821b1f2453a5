#include "easydel/probe/replay_schedule.h"

#include "easydel/base/error.h"
#include "easydel/config/codec.h"
#include "easydel/train/schedule_config.h"

namespace easydel::probe {

train::Schedule read_schedule(const std::string& type, const Value& kwargs, train::Schedule base,
                              const std::string& where) {
  config::Problems problems;
  train::Scheduler word{};
  const std::string path = "lr_scheduler_type", hint;
  if (!config::Codec<train::Scheduler>::read(Value::text(type), word, {path, problems, hint}))
    refuse(where, str("config.lr_scheduler_type = ", type, " is not built yet"));
  train::SchedulerArguments arguments;
  config::read(kwargs, arguments, where + ": lr_scheduler_kwargs").throw_if_any();
  if (type == "constant") base.warmup = 0;
  return train::make_schedule(word, arguments, base);
}

}  // namespace easydel::probe
