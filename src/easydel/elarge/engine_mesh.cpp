#include "easydel/elarge/engine_mesh.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/elarge/join_hosts.h"
#include "easydel/mesh/world.h"

namespace easydel::elarge {

mesh::Mesh engine_mesh(const Config& config, int64_t ranks) {
  const mesh::World world = mesh::read_world();
  const bool own = config.esurge.auto_shard_model;
  const std::string key = own ? "esurge.sharding_axis_dims" : "sharding.axis_dims";
  const mesh::Mesh out = own ? mesh::create_mesh(config.esurge.sharding_axis_dims, mesh::default_axes(), ranks, key)
                             : config.sharding.mesh(ranks, world.size == ranks ? world.size / world.local_size : 1);
  const std::string& data = config.esurge.data_parallelism_axis;
  const std::string data_key = "esurge.data_parallelism_axis";
  if (!out.has(data)) refuse(data_key, "the mesh has no axis '" + data + "'", did_you_mean(data, out.names()));
  if (data != "dp") refuse(data_key, "distributing requests over " + data + " is not built yet", "use dp");
  for (const std::string& axis : out.names())
    if (out.size(axis) > 1 && axis != "dp" && axis != "tp")
      refuse(key, str("axis ", axis, " has ", out.size(axis), " ranks, which is not built yet for the engine"),
             str("set ", axis, " to 1; dp and tp are built",
                 own ? "" : ", or set esurge.auto_shard_model: true, which gives the engine a layout of its own"));
  return out;
}

void check_engine_ranks(const Config& config, int64_t ranks, config::Problems& problems) {
  const auto collect = [&](const auto& check) {
    try {
      check();
    } catch (const UserError& error) {
      problems.add(error.where, error.problem, error.remedy);
    }
  };
  // A launcher's ranks do not exist yet when it checks the run.
  const mesh::World world = mesh::read_world();
  if (world.size == ranks) collect([&] { check_hosts(config.esurge, world); });
  if (ranks > 1) collect([&] { engine_mesh(config, ranks); });
}

}  // namespace easydel::elarge
