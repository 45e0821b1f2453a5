// `easydel data stats`: counts of a run's training data.
#include "easydel/base/files.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/data.h"
#include "easydel/data/statistics.h"

namespace easydel::cli {

int run_data_stats(const DataCommand& command) {
  const data::Statistics statistics = data::statistics_of(open_run_data(command));
  if (!command.output.empty()) files::write(command.output, data::length_picture(statistics));
  print(command.json ? to_json(data::document_of(statistics), 2) + "\n" : data::text_of(statistics));
  return 0;
}

}  // namespace easydel::cli
