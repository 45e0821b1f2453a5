// `easydel describe mesh run.yaml --devices 256`.
#include "easydel/base/error.h"
#include "easydel/cli/commands.h"
#include "easydel/elarge/core.h"

namespace easydel::cli {

int run_describe_mesh(const DescribeMeshOptions& options) {
  config::Problems problems(options.file);
  const elarge::Run run = elarge::read_document(parse_file(options.file), {}, problems);
  problems.throw_if_any();
  if (options.rank >= options.devices)
    refuse("--rank", str(options.rank, " is not below --devices ", options.devices), "ranks count from 0");
  return print(elarge::core().describe_mesh({run.config, options.devices, options.hosts, options.rank})), 0;
}

}  // namespace easydel::cli
