// The models that the action `serve` has besides the run's own. A model is a folder or a name on the Hub, or sections
// of a run:
//
//   models:
//     small: models/small
//     large:
//       model: {name_or_path: models/large}
//       esurge: {max_num_seqs: 8}
#pragma once

#include <string>
#include <vector>

#include "easydel/elarge/elarge.h"

namespace easydel::elarge {

struct OtherModel {
  std::string name;  // that requests give
  Config config;     // the run's, with the model's own sections over it
};

// Reads `models`, whose path in the run is `path`, and adds what is wrong to `problems`. Without sections of their own,
// models have the run's settings, but not what belongs to its model: adapters, a draft model, the prefix cache on the
// disk.
std::vector<OtherModel> other_models(const Config& run, const Value& models, const std::string& path,
                                     config::Problems& problems);

}  // namespace easydel::elarge
