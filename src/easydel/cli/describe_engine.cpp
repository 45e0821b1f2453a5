// `easydel describe engine MODEL`.
#include "easydel/cli/commands.h"
#include "easydel/cli/model_session.h"

namespace easydel::cli {

int run_describe_engine(const ModelOptions& options) {
  ModelOptions quiet = options;
  quiet.set.emplace_back("esurge.silent_mode=true");  // its log says the same
  return print(open_session(quiet).session->describe_engine()), 0;
}

}  // namespace easydel::cli
