// The mean of everything that was seen while training: a part of a method's state. An update that is dropped leaves it
// as it was.
#pragma once

#include "easydel/base/document.h"

namespace easydel::train {

class RunningMean {
 public:
  void begin_update() { now_ = kept_; }
  void add(double sum, double count) {
    now_.count += count;
    if (now_.count > 0) now_.mean += (sum - now_.mean * count) / now_.count;
  }
  // With what the running update has added; while nothing is trained, as of the last update.
  double mean(bool training) const { return training ? now_.mean : kept_.mean; }
  void end_update() { kept_ = now_; }

  Value document() const {  // as of the last update
    Value out = Value::map();
    out.set("mean", Value::number(kept_.mean));
    out.set("count", Value::number(kept_.count));
    return out;
  }
  void restore(const Value& document) {
    const auto number = [&](const char* name) {
      const Value* const value = document.find(name);
      return value ? value->as_double().value_or(0) : 0;
    };
    kept_ = now_ = {number("mean"), number("count")};
  }

 private:
  struct Moments {
    double mean = 0, count = 0;
  };
  Moments kept_, now_;
};

}  // namespace easydel::train
