// The rank of this process among the processes of a run, from the environment that a launcher (ours, torchrun, srun,
// mpirun) set.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace easydel::mesh {

struct World {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // on this machine
  std::string master_address = "127.0.0.1";
  int master_port = 29500;
  // The launcher already runs a store at the master address (torchrun's agent); rank 0 must not start another.
  bool agent_store = false;
  int restarts = 0;  // how often an elastic launcher has restarted these ranks
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// RANK and WORLD_SIZE (ours, torchrun), else Slurm's step, else Open MPI's variables, else one rank. UserError if they
// contradict each other or are not numbers.
World read_world(const Environment& environment = process_environment());

}  // namespace easydel::mesh
