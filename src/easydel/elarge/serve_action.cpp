// The action `serve`: listens, loads the model, and answers until a signal ends it.
#include "easydel/base/error.h"
#include "easydel/elarge/actions.h"
#include "easydel/server/serve_config.h"
#include "easydel/server/server.h"

namespace easydel::elarge {

void run_serve(Running& running, const Action& action) {
  server::Server server(*static_cast<const server::ServeConfig*>(action.parameters.get()));
  server.start();
  running.print(str("listening on ", server.address(), "\n"));
  server.add(running.session().build_served_model());
  server.set_ready();
  server.run_until_signal();
}

void check_serve(const Run& run, const Action& action, config::Problems& problems) {
  const auto& config = *static_cast<const server::ServeConfig*>(action.parameters.get());
  const std::optional<std::string>& parser = run.config.esurge.tool_parser;
  if (run.ranks > 1) problems.add(action.path, "serving on several ranks is not built yet", "use one process");
  if (parser && config.tool_parser_name != "auto" && config.tool_parser_name != *parser)
    problems.add(action.path + ".tool_parser_name",
                 str("is '", config.tool_parser_name, "', but esurge.tool_parser is '", *parser, "'"),
                 "give one of them");
}

}  // namespace easydel::elarge
