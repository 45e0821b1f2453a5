#include "easydel/esurge/connect_ranks.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

#include "easydel/base/free_memory.h"
#include "easydel/base/sha256.h"
#include "easydel/collective/team.h"

namespace easydel::esurge {
namespace {

constexpr size_t token_bytes = 32;
constexpr double default_startup_seconds = 600;

// The port of the first rank, and the token of those that were given none, on every rank.
void share(const collective::Team& team, int64_t& port, std::string& token) {
  const Tensor all = at::zeros({int64_t(sizeof port + token_bytes)}, at::kByte);
  uint8_t* const bytes = all.mutable_data_ptr<uint8_t>();
  if (team.first()) {
    const std::string made = files::random_bytes(token_bytes);
    std::memcpy(bytes, &port, sizeof port);
    std::memcpy(bytes + sizeof port, made.data(), made.size());
  }
  team.all().broadcast(all, 0);
  std::memcpy(&port, bytes, sizeof port);
  if (token.empty()) token.assign(reinterpret_cast<const char*>(bytes) + sizeof port, token_bytes);
}

}  // namespace

RankEnd connect_ranks(const collective::Team& team, const mesh::Mesh& mesh, const EsurgeConfig& config,
                      const mesh::World& world) {
  const bool one_machine = world.local_size == world.size;
  std::unique_ptr<RankListener> listener;
  if (team.first())
    listener = std::make_unique<RankListener>(one_machine ? "127.0.0.1" : config.distributed_control_bind_host, 0);
  int64_t port = listener ? listener->port() : 0;
  Admission admission{config.distributed_auth_token.value_or(""), config.distributed_service_name.value_or(""),
                      team.size(), config.distributed_connect_timeout_s};
  share(team, port, admission.token);

  std::vector<int64_t> parts;
  for (int64_t rank = 0; rank < team.size(); ++rank) parts.push_back(mesh.index({config.data_parallelism_axis}, rank));
  RankEnd out;
  if (team.first()) {
    const RankLimits limits{config.worker_startup_timeout.value_or(default_startup_seconds),
                            config.distributed_step_timeout_s, config.distributed_verify_sampling_digest,
                            world.local_size};
    out.leader = std::make_shared<RankLeader>(listener->accept(admission), std::move(parts), limits);
    return out;
  }
  const std::string host = one_machine ? "127.0.0.1" : config.distributed_advertise_addr.value_or(world.master_address);
  out.connection = connect_to_first_rank(host, int(port), admission, team.rank());
  const int64_t part = parts[size_t(team.rank())];
  const bool first_of_part = std::ranges::find(parts, part) - parts.begin() == team.rank();
  const FreeMemory memory = free_memory().value_or(FreeMemory{int64_t(4) << 30});
  out.follower = {config.page_size,
                  {team.rank(), team.size(), part, std::ranges::max(parts) + 1},
                  part > 0 && first_of_part,
                  memory.bytes / world.local_size,
                  config.distributed_step_timeout_s};
  return out;
}

}  // namespace easydel::esurge
