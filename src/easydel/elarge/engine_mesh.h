// The mesh on which an engine of several ranks computes. No torch.
#pragma once

#include "easydel/elarge/elarge.h"
#include "easydel/mesh/mesh.h"

namespace easydel::elarge {

// Of esurge.sharding_axis_dims; with esurge.auto_shard_model: false that of the section sharding. UserError: the dims
// do not fit the number of ranks, an axis has several ranks that the engine does not compute on, or
// esurge.data_parallelism_axis is not an axis over which requests can be distributed.
mesh::Mesh engine_mesh(const Config& config, int64_t ranks);
// Adds what it and join_hosts() refuse, at the key.
void check_engine_ranks(const Config& config, int64_t ranks, config::Problems& problems);

}  // namespace easydel::elarge
