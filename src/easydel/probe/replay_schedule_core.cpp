#include "easydel/probe/replay_schedule.h"

#include "easydel/probe/replay_arguments.h"

namespace easydel::probe {
namespace {

using Shape = train::Schedule::Shape;
using Curve = train::Schedule::Curve;

Curve curve_of(Arguments& arguments, const std::string& name, Curve otherwise) {
  const Value* value = arguments.take(name);
  if (!value) return otherwise;
  if (value->scalar == "linear") return Curve::linear;
  if (value->scalar == "cosine") return Curve::cosine;
  if (value->scalar == "1-sqrt") return Curve::one_minus_sqrt;
  arguments.not_built(name, value->scalar);
}

double least_of(Arguments& arguments, double rate) {
  return arguments.number("min_lr", arguments.number("min_lr_rate", 0) * rate);
}

}  // namespace

train::Schedule read_schedule(const std::string& type, const Value& kwargs, train::Schedule out,
                              const std::string& where) {
  Arguments arguments(kwargs, where + ": lr_scheduler_kwargs");
  if (type == "constant") {
    out.shape = Shape::constant;
    out.warmup = 0;
  } else if (type == "constant_with_warmup") {
    out.shape = Shape::constant;
  } else if (type == "linear") {
    out.shape = Shape::linear;
  } else if (type == "cosine" || type == "cosine_with_min_lr" || type == "cosine_warmup_with_min_lr") {
    out.shape = type == "cosine_warmup_with_min_lr" ? Shape::cosine_warmup : Shape::cosine;
    out.cycles = arguments.number("num_cycles", 0.5);
    out.rate_end = least_of(arguments, out.rate);
    if (out.shape == Shape::cosine_warmup && arguments.take("warmup_lr_rate"))
      out.warmup_from = arguments.number("warmup_lr_rate", 0);
  } else if (type == "cosine_with_restarts") {
    out.shape = Shape::cosine_with_restarts;
    out.cycles = arguments.number("num_cycles", 1);
  } else if (type == "polynomial") {
    out.shape = Shape::polynomial;
    out.power = arguments.number("power", 1);
    out.rate_end = arguments.number("lr_end", 1e-7);
  } else if (type == "inverse_sqrt") {
    out.shape = Shape::inverse_sqrt;
    out.timescale = arguments.integer("timescale", 0);
  } else if (type == "warmup_stable_decay") {
    out.shape = Shape::warmup_stable_decay;
    out.decay = arguments.integer("num_decay_steps", 0);
    out.stable = arguments.integer("num_stable_steps", -1);
    out.rate_end = arguments.number("min_lr_ratio", 0) * out.rate;
    out.cycles = arguments.number("num_cycles", 0.5);
    out.warmup_curve = curve_of(arguments, "warmup_type", Curve::linear);
    out.decay_curve = curve_of(arguments, "decay_type", Curve::cosine);
  } else {
    refuse(where, str("config.lr_scheduler_type = ", type, " is not built yet"));
  }
  arguments.finish();
  return out;
}

}  // namespace easydel::probe
