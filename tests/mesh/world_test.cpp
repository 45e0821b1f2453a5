// What launchers leave in the environment.
#include "easydel/mesh/world.h"

#include <gtest/gtest.h>

#include <map>

#include "support/data.h"

namespace easydel::mesh {
namespace {

World read(const std::map<std::string, std::string>& variables) {
  return read_world([&](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  return test::refusal([&] { read(variables); });
}

TEST(World, IsOneRankWithoutALauncher) {
  World world = read({});
  EXPECT_EQ(world.rank, 0);
  EXPECT_EQ(world.size, 1);
  EXPECT_FALSE(world.agent_store);
  EXPECT_EQ(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).size, 1);  // a batch script, not a step
}

TEST(World, ReadsTorchrunsVariables) {
  World world = read({{"RANK", "5"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "4"},
                      {"MASTER_ADDR", "node7"},
                      {"MASTER_PORT", "4711"},
                      {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(world.rank, 5);
  EXPECT_EQ(world.size, 8);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 4);
  EXPECT_EQ(world.master_address, "node7");
  EXPECT_EQ(world.master_port, 4711);
  EXPECT_TRUE(world.agent_store);
}

TEST(World, ReadsASlurmStep) {
  World world = read({{"SLURM_PROCID", "3"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_NTASKS_PER_NODE", "2"},
                      {"SLURM_STEP_NODELIST", "gpu[003-004,009]"},
                      {"SLURM_JOB_ID", "1234567"}});
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 2);
  EXPECT_EQ(world.master_address, "gpu003");
  EXPECT_EQ(world.master_port, 19567);
  auto host = [](const char* list) {
    return read({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NODELIST", list}}).master_address;
  };
  EXPECT_EQ(host("login1,login2"), "login1");
  EXPECT_EQ(host("n7"), "n7");
  EXPECT_EQ(host("rack1-[2,5]-ib,other"), "rack1-2-ib");
}

TEST(World, ReadsOpenMpisVariables) {
  World world = read({{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.size, 2);
  EXPECT_EQ(world.master_address, "127.0.0.1");
  EXPECT_EQ(
      refusal({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}),
      "environment: MASTER_ADDR is not set, and the ranks are on more than one machine\n"
      "    mpirun -x MASTER_ADDR=host-of-rank-0 ...");
}

TEST(World, RefusesNonsense) {
  EXPECT_EQ(refusal({{"RANK", "two"}, {"WORLD_SIZE", "2"}}),
            "environment: RANK='two' is not a whole number from 0 to 1048576\n"
            "    unset RANK to run one process, or start the ranks with --nproc or torchrun");
  EXPECT_EQ(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "environment: RANK=2 is not below WORLD_SIZE=2\n    ranks count from 0");
  EXPECT_EQ(
      refusal({{"RANK", "1"}}),
      "environment: RANK is set and WORLD_SIZE is not\n    set both, or start the ranks with --nproc or torchrun");
  EXPECT_EQ(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "99999"}}),
            "environment: MASTER_PORT='99999' is not a whole number from 1 to 65535\n"
            "    unset MASTER_PORT to run one process, or start the ranks with --nproc or torchrun");
}

}  // namespace
}  // namespace easydel::mesh
