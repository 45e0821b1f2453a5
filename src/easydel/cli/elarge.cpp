// `easydel elarge run.yaml`, and `easydel validate run.yaml`, which only checks.
#include <unistd.h>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/model_session.h"
#include "easydel/elarge/actions.h"
#include "easydel/elarge/overrides.h"
#include "easydel/mesh/world.h"

namespace easydel::cli {
namespace {

// joins: with ranks that no launcher started, before the number of ranks is asked for.
elarge::Run read(const RunOptions& options, bool joins = false) {
  if (options.file.empty())
    refuse("easydel " + options.command, "no file given",
           "name the file of the run: easydel " + options.command + " run.yaml");
  if (options.file == "-" && (options.ranks > 1 || mesh::read_world().size > 1))
    refuse("easydel " + options.command + " -", "several ranks cannot all read standard input",
           "save the run as a file");
  const std::vector<elarge::Override> overrides = elarge::overrides_of(options.set);
  if (joins && options.file != "-") {
    Value document;
    try {
      document = parse_file(options.file);
    } catch (const UserError&) {
      // read_run() says what is wrong with it.
    }
    join_hosts(document, options.set);
  }
  const int ranks = options.ranks > 0 ? options.ranks : mesh::read_world().size;
  return elarge::read_run(options.file, overrides, ranks);
}

}  // namespace

void check_elarge(const RunOptions& options) {
  const elarge::Run run = read(options);
  if (!options.dry_run) elarge::check_with_torch(run);
}

int run_validate(const RunOptions& options) {
  const elarge::Run run = read(options);
  for (const std::string& note : run.notes) log::warning(note);
  elarge::check_with_torch(run);
  return print(elarge::valid_text(run)), 0;
}

int run_elarge(const RunOptions& options) {
  const elarge::Run run = read(options, !options.dry_run);
  const bool leader = mesh::read_world().rank == 0;
  if (!leader) log::set_level(log::Level::error);  // all ranks would log the same
  if (options.dry_run) {
    Value document = Value::map();
    document.set("config", elarge::normalised(run.config));
    document.set("actions", elarge::normalised(run.actions));
    if (leader) print(to_yaml(document));
    return 0;
  }
  if (leader)
    for (const std::string& note : run.notes) log::warning(note);
  elarge::run_actions(run, leader ? elarge::Output(print) : elarge::Output());
  return 0;
}

}  // namespace easydel::cli
