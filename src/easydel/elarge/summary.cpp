// A run in a few lines, for people.
#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/elarge/actions.h"

namespace easydel::elarge {

std::string summary(const Config& config) {
  const auto& trainer = config.trainer.common;
  std::vector<std::string> axes, sources;
  for (size_t i = 0; i < config.sharding.axis_dims.size(); ++i)
    axes.push_back(str(config.sharding.axis_names[i], " ", config.sharding.axis_dims[i]));
  for (const data::InformConfig& inform : config.mixture.informs) {
    const bool evaluated = inform.split != "train";
    sources.push_back(join(inform.data_files, ", ") + (evaluated ? " (" + inform.split + ")" : ""));
  }
  std::string out = "model      " + config.model.name_or_path + "\n";
  if (config.reference_model) out += "reference  " + config.reference_model->name_or_path + "\n";
  out += str("dtype      ", config::word_of(config.loader.dtype), ", parameters in ",
             config::word_of(config.loader.param_dtype), "\n");
  out += "mesh       " + join(axes, ", ") + "\n";
  if (sources.empty()) return out;
  out += "data       " + join(sources, "; ") + "\n";
  out +=
      str("training   ", trainer.trainer_type, ", learning rate ", to_yaml_flow(Value::number(trainer.learning_rate)),
          ", ", counted(trainer.total_batch_size, "example"), " per step");
  out += trainer.max_training_steps ? str(", ", counted(*trainer.max_training_steps, "step"), "\n")
                                    : str(", ", counted(trainer.num_train_epochs, "epoch"), "\n");
  out += "saved in   " + trainer.save_directory + "\n";
  return out;
}

}  // namespace easydel::elarge
