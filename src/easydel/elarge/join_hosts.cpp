#include "easydel/elarge/join_hosts.h"

#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/wait_notice.h"
#include "easydel/esurge/message_bytes.h"
#include "easydel/esurge/rank_channel.h"

namespace easydel::elarge {
namespace {

using esurge::DistributedRole;

constexpr const char* rank_key = "esurge.distributed_rank";
constexpr const char* size_key = "esurge.distributed_world_size";
constexpr std::string_view port_kind = "easydel store 1";

// By its key, else by its role.
int64_t rank_of(const esurge::EsurgeConfig& config) {
  const bool first = config.distributed_role == DistributedRole::coordinator;
  if (!config.distributed_rank && !first)
    refuse(rank_key, "is missing, and no launcher says which rank this is",
           "give each host its own, from 0, or set distributed_role: coordinator on the first one");
  const int64_t rank = config.distributed_rank.value_or(0);
  if (first && rank != 0)
    refuse(rank_key, str("is ", rank, ", but the coordinator is rank 0"), "leave it out, or change distributed_role");
  if (config.distributed_role == DistributedRole::worker && rank == 0)
    refuse(rank_key, "0 is the coordinator's, and distributed_role is worker", "give it a rank from 1");
  return rank;
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

}  // namespace

void check_hosts(const esurge::EsurgeConfig& config, const mesh::World& world) {
  if (!config.distributed_mode) return;
  if (world.size > 1) {
    if (const auto given = config.distributed_world_size; given && *given != world.size)
      refuse(size_key, str("is ", *given, ", but a launcher started ", world.size, " ranks"), "leave it out");
    if (const auto given = config.distributed_rank; given && *given != world.rank)
      refuse(rank_key, str("is ", *given, ", but the launcher made this rank ", world.rank), "leave it out");
    return;
  }
  if (!config.distributed_world_size)
    refuse(size_key, "is missing, and no launcher says how many ranks there are", "give the number of hosts");
  const int64_t size = *config.distributed_world_size, rank = rank_of(config);
  if (rank >= size) refuse(rank_key, str(rank, " is not below distributed_world_size ", size), "ranks count from 0");
  if (!config.distributed_advertise_addr)
    refuse("esurge.distributed_advertise_addr", "is missing, so the ranks cannot find the first one",
           "give the address of rank 0, on every host");
}

void join_hosts(const esurge::EsurgeConfig& config) {
  const mesh::World world = mesh::read_world();
  check_hosts(config, world);
  if (!config.distributed_mode || world.size > 1 || *config.distributed_world_size == 1) return;
  const int64_t size = *config.distributed_world_size, rank = rank_of(config);
  const std::string address = *config.distributed_advertise_addr;
  const int port = int(config.distributed_control_port);
  if (!config.distributed_auth_token && rank == 0)
    log::warning("esurge: without distributed_auth_token whoever reaches port ", port, " can join the ranks");
  const esurge::Admission admission{config.distributed_auth_token.value_or(""),
                                    config.distributed_service_name.value_or(""), size,
                                    config.distributed_connect_timeout_s};
  int64_t store_port = 0;
  const WaitNotice notice(str("rank ", rank, " of ", size, ": waiting for ", rank == 0 ? "the other ranks" : "rank 0",
                              " at ", address, ":", port));
  if (rank == 0) {
    const esurge::RankListener listener(config.distributed_control_bind_host, port);
    const std::vector<esurge::RankConnection> others = listener.accept(admission);
    // Not reserved, but the kernel hands out a free port again only late.
    store_port = esurge::RankListener("127.0.0.1", 0).port();
    esurge::MessageWriter told(port_kind);
    told.number(store_port);
    const std::string bytes = told.finish();
    for (const esurge::RankConnection& other : others) other.send(bytes, admission.seconds);
  } else {
    const esurge::RankConnection first = esurge::connect_to_first_rank(address, port, admission, rank);
    const std::string bytes = first.receive(admission.seconds);
    esurge::MessageReader from(bytes, port_kind);
    store_port = from.between(1, 65535, "a port");
    from.finish();
  }
  const bool together = is_this_machine(address);
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(size));
  set("LOCAL_RANK", std::to_string(together ? rank : 0));
  set("LOCAL_WORLD_SIZE", std::to_string(together ? size : 1));
  set("MASTER_ADDR", address);
  set("MASTER_PORT", std::to_string(store_port));
}

}  // namespace easydel::elarge
