// How a model is sharded over ranks and what it runs on: the sections `sharding` and `platform`.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/mesh/mesh.h"
#include "easydel/mesh/rules.h"

namespace easydel::elarge {

struct ShardingConfig {
  std::vector<int64_t> axis_dims = {1, -1, 1, 1, 1};
  std::optional<std::vector<int64_t>> dcn_axis_dims;
  std::vector<std::string> axis_names = {"dp", "fsdp", "ep", "tp", "sp"};
  Value partition_axis;
  Value shard_fns;
  bool auto_shard_model = true;
  Value partition_rules;
  bool use_ring_of_experts = false;
  bool fsdp_is_ep_bound = true;
  bool sp_is_ep_bound = true;

  static constexpr auto doc = "The mesh of ranks and how parameters are sharded over it.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::axis_dims>("Number of ranks along each axis of axis_names; -1: all remaining ranks. The "
                             "default shards everything over fsdp."),
        field<&C::dcn_axis_dims>("Factor by which each axis grows over hosts; -1: all remaining hosts. "
                                 "null: ranks are laid out by axis_dims alone."),
        field<&C::axis_names>("Names of the axes: data, fully sharded data, expert, tensor and sequence parallel."),
        field<&C::partition_axis>(
            "Mesh axes by role of a dimension (batch_axis: [fsdp, dp], ...); null: derived from axis_names."),
        field<&C::shard_fns>("Functions that shard a model; Python only.", not_built("shard_fns")),
        field<&C::auto_shard_model>("Shard the model while it is loaded."),
        field<&C::partition_rules>(
            "Pairs of a regular expression on parameter paths and the axes to shard over; the first match applies. "
            "null: the rules of the model family. Most users should leave this alone."),
        field<&C::use_ring_of_experts>("Exchange the tokens of experts in a ring.", not_built("a ring of experts")),
        field<&C::fsdp_is_ep_bound>("Shard experts over fsdp, too."),
        field<&C::sp_is_ep_bound>("Shard experts over sp, too."),
    };
  }
  void settle(config::Keys& keys) {
    if (axis_dims.size() != axis_names.size())
      return keys.refuse("axis_dims",
                         "sharding.axis_dims (" + std::to_string(axis_dims.size()) +
                             ") must match sharding.axis_names (" + std::to_string(axis_names.size()) + ")",
                         "give one size for each of: " + join(axis_names, ", "));
    int unknown = 0;
    for (const int64_t size : axis_dims) {
      if (size < 1 && size != -1)
        return keys.refuse("axis_dims", std::to_string(size) + " is not a size of an axis",
                           "sharding.axis_dims must be positive or -1 (auto)");
      unknown += size == -1;
    }
    if (unknown > 1)
      keys.refuse("axis_dims", "has -1 more than once; only one axis can take the remaining ranks",
                  "give the sizes of all axes but one");
    check_layouts(keys);
  }
  // The mesh of `ranks` ranks; throws UserError "sharding.axis_dims: ...".
  mesh::Mesh mesh(int64_t ranks, int64_t hosts) const {
    return mesh::create_mesh(
        {.dims = axis_dims, .names = axis_names, .dcn_dims = dcn_axis_dims, .ranks = ranks, .hosts = hosts},
        "sharding.axis_dims");
  }
  std::vector<mesh::Rule> rules() const { return mesh::read_rules(partition_rules); }

 private:
  void check_layouts(config::Keys& keys) const;
  void check_partition_axis(config::Problems& problems, const std::string& path) const;
};

enum class Backend { cpu, gpu, tpu, tt };
constexpr auto choices(Backend) {
  using config::Choice;
  return std::array{Choice{Backend::cpu, "cpu"}, Choice{Backend::gpu, "gpu"}.also("cuda"),
                    Choice{Backend::tpu, "tpu"}.not_built(), Choice{Backend::tt, "tt"}.not_built()};
}
enum class KernelPlatform { jax, triton, pallas };
constexpr auto choices(KernelPlatform) {
  using config::Choice;
  return std::array{Choice{KernelPlatform::jax, "jax"}, Choice{KernelPlatform::triton, "triton"},
                    Choice{KernelPlatform::pallas, "pallas"}};
}

struct PlatformConfig {
  std::optional<Backend> backend;
  std::optional<KernelPlatform> platform;

  static constexpr auto doc = "What the run computes on.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::backend>("Device, as loader.device; null: loader.device applies."),
        field<&C::platform>("Kernel implementation.", no_effect("kernels are chosen for the machine")),
    };
  }
};

}  // namespace easydel::elarge
