// Which training methods there are and which keys each has beside the common ones. A face: no torch, so that a run can
// be validated without it. The methods themselves are in methods.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/config/fields.h"
#include "easydel/train/trainer_config.h"
#include "easydel/train/trainer_python_config.h"

namespace easydel::train {

struct MethodConfig {
  std::string_view name;                              // the YAML word and the file's name
  const config::Section& (*section)();                // its own keys
  std::shared_ptr<void> (*make)();                    // a struct of theirs with the defaults
  void (*defaults)(TrainerConfig& common) = nullptr;  // what of the common keys has another default
  bool built = true;                                  // false: its keys are checked, then it is refused
};

std::span<const MethodConfig> method_configs();                         // in alphabetical order, also what is not built
const MethodConfig* find_method_config(std::string_view trainer_type);  // nullptr: none; '-' and '_' are the same

// `trainer:` as it is read: the common keys and the chosen method's own. Keys of other methods are accepted with a note
// that they have no effect; so one file can hold the settings of several methods.
struct TrainerSection {
  TrainerConfig common;
  TrainerPythonConfig python;
  std::shared_ptr<const void> own;  // the struct of find_method_config(common.trainer_type)

  TrainerSection();  // sft with its defaults
  static config::Section section();

  template <class Config>
  const Config& own_as(std::string_view trainer_type) const {
    check(own && common.trainer_type == trainer_type, "the keys of ", common.trainer_type, " read as those of ",
          trainer_type);
    return *static_cast<const Config*>(own.get());
  }
};

}  // namespace easydel::train
