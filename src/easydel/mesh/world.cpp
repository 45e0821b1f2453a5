// Reads the environment that launchers set.
#include "easydel/mesh/world.h"

#include <charconv>
#include <cstdlib>

#include "easydel/base/error.h"

namespace easydel::mesh {
namespace {

struct Reader {
  const Environment& environment;

  std::optional<std::string> text(const std::string& name) const {
    auto value = environment(name);
    return value && !value->empty() ? value : std::nullopt;
  }
  std::optional<int> number(const std::string& name, int min, int max) const {
    auto value = text(name);
    if (!value) return std::nullopt;
    int result = 0;
    auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
    if (error != std::errc() || end != value->data() + value->size() || result < min || result > max) {
      refuse("environment", str(name, "='", *value, "' is not a whole number from ", min, " to ", max),
             str("unset ", name, " to run one process, or start the ranks with --nproc or torchrun"));
    }
    return result;
  }
};

constexpr int max_ranks = 1 << 20;

// "node[003-017,020],login1" -> "node003": the first host of a Slurm node list.
std::string first_host(const std::string& list) {
  size_t open = list.find_first_of("[,");
  if (open == std::string::npos || list[open] == ',') return list.substr(0, open);
  size_t close = list.find(']', open);
  size_t end = list.find_first_of("-,]", open);
  std::string tail;
  if (close != std::string::npos) tail = list.substr(close + 1, list.find(',', close) - close - 1);
  return list.substr(0, open) + list.substr(open + 1, end - open - 1) + tail;
}

bool is_true(const std::optional<std::string>& value) {
  return value && (*value == "True" || *value == "true" || *value == "1");
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

World read_world(const Environment& environment) {
  Reader read{environment};
  World world;
  std::string rank_name = "RANK", size_name = "WORLD_SIZE";
  if (read.text("RANK") || read.text("WORLD_SIZE")) {
    auto rank = read.number("RANK", 0, max_ranks), size = read.number("WORLD_SIZE", 1, max_ranks);
    if (!rank || !size) {
      refuse("environment", str(rank ? "RANK" : "WORLD_SIZE", " is set and ", rank ? "WORLD_SIZE" : "RANK", " is not"),
             "set both, or start the ranks with --nproc or torchrun");
    }
    world.rank = *rank;
    world.size = *size;
    world.local_rank = read.number("LOCAL_RANK", 0, max_ranks).value_or(world.rank);
    world.local_size = read.number("LOCAL_WORLD_SIZE", 1, max_ranks).value_or(world.size);
  } else if (read.text("SLURM_PROCID") && read.text("SLURM_STEP_NUM_TASKS")) {
    // Only inside srun: a batch script that starts a single process also has SLURM_NTASKS, but no other ranks.
    rank_name = "SLURM_PROCID", size_name = "SLURM_STEP_NUM_TASKS";
    world.rank = *read.number(rank_name, 0, max_ranks);
    world.size = *read.number(size_name, 1, max_ranks);
    world.local_rank = read.number("SLURM_LOCALID", 0, max_ranks).value_or(0);
    world.local_size = read.number("SLURM_NTASKS_PER_NODE", 1, max_ranks).value_or(world.size);
    if (auto hosts = read.text("SLURM_STEP_NODELIST")) world.master_address = first_host(*hosts);
    // Jobs that share a node must not share a port.
    if (auto job = read.number("SLURM_JOB_ID", 0, 2147483647)) world.master_port = 15000 + *job % 10000;
  } else if (read.text("OMPI_COMM_WORLD_RANK") && read.text("OMPI_COMM_WORLD_SIZE")) {
    rank_name = "OMPI_COMM_WORLD_RANK", size_name = "OMPI_COMM_WORLD_SIZE";
    world.rank = *read.number(rank_name, 0, max_ranks);
    world.size = *read.number(size_name, 1, max_ranks);
    world.local_rank = read.number("OMPI_COMM_WORLD_LOCAL_RANK", 0, max_ranks).value_or(world.rank);
    world.local_size = read.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, max_ranks).value_or(world.size);
    if (world.local_size < world.size && !read.text("MASTER_ADDR")) {
      refuse("environment", "MASTER_ADDR is not set, and the ranks are on more than one machine",
             "mpirun -x MASTER_ADDR=host-of-rank-0 ...");
    }
  }
  if (world.rank >= world.size) {
    refuse("environment", str(rank_name, "=", world.rank, " is not below ", size_name, "=", world.size),
           "ranks count from 0");
  }
  if (auto address = read.text("MASTER_ADDR")) world.master_address = *address;
  if (auto port = read.number("MASTER_PORT", 1, 65535)) world.master_port = *port;
  world.restarts = read.number("TORCHELASTIC_RESTART_COUNT", 0, max_ranks).value_or(0);
  world.agent_store = is_true(read.text("TORCHELASTIC_USE_AGENT_STORE"));
  return world;
}

}  // namespace easydel::mesh
