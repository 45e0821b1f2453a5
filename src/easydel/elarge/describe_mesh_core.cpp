#include "easydel/elarge/describe_mesh.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/base/text_table.h"
#include "easydel/hub/resolve.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/weights/dtype.h"
#include "easydel/weights/folder.h"

namespace easydel::elarge {
namespace {

// A run of parameters that differ only in the layer's index.
struct Group {
  std::string path;
  int64_t count = 0, elements = 0, bytes_of_rank = 0;
  std::string shape, cut, part;
};

std::string without_numbers(const std::string& path) {
  std::string out;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    const bool number = !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    out += (at > 0 ? "/" : "") + (number ? "*" : part);
    at = end + 1;
  }
  return out;
}

// "0:4008 x 1024:2048"; an uncut dimension is shown by its size.
std::string part_text(const mesh::Slice& slice, const std::vector<int64_t>& shape) {
  std::vector<std::string> words;
  for (size_t i = 0; i < shape.size(); ++i)
    words.push_back(slice.size[i] == shape[i] ? std::to_string(shape[i])
                                              : str(slice.begin[i], ":", slice.begin[i] + slice.size[i]));
  return join(words, " x ");
}

size_t bytes_of_number(const Config& config, const Value& model) {
  const auto chosen = weights::dtype_of_config(config::word_of(config.loader.param_dtype));  // none: auto
  return weights::size_of(chosen ? *chosen : weights::dtype_of_weights(model));
}

}  // namespace

std::string describe_mesh_core(const MeshPlan& plan) {
  const mesh::Mesh mesh = plan.config.sharding.mesh(plan.devices, plan.hosts);
  const std::filesystem::path folder = hub::resolve_model(plan.config.model.name_or_path, "model.name_or_path");
  if (!weights::has_config(folder)) refuse(folder.string(), "has no config.json", "give a Hugging Face model folder");
  weights::ConfigFile found = weights::read_config(folder);
  Value model = std::move(found.document);
  for (const auto& [key, value] : plan.config.base_config.values.config_json.entries) model.set(key, value);
  const auto table = models::plan_parameters(model, found.where);
  const std::vector<mesh::Rule> own = plan.config.sharding.rules();
  const mesh::PartitionRules rules(own, mesh);
  const auto number_bytes = int64_t(bytes_of_number(plan.config, model));

  std::vector<Group> groups;
  int64_t elements = 0, bytes = 0, dropped = 0;
  for (const auto& parameter : models::easydel_parameters(model, *table)) {
    if (parameter.path == "lm_head/kernel" && parameter.entry->path != "lm_head.weight")
      continue;  // the embedding again
    const auto rule = rules.find(parameter.path, parameter.shape.size());
    const mesh::PartitionSpec layout = mesh::resolve(rule ? *rule : parameter.spec, parameter.shape, mesh, &dropped);
    const mesh::Slice slice = mesh::slice_of(layout, parameter.shape, mesh, plan.rank);
    int64_t part = 1;
    for (const int64_t size : slice.size) part *= size;
    Group group{without_numbers(parameter.path),  1,
                parameter.entry->elements(),      part * number_bytes,
                shape_text(parameter.shape),      mesh::describe(layout),
                part_text(slice, parameter.shape)};
    elements += group.elements, bytes += group.bytes_of_rank;
    const auto known = std::ranges::find_if(
        groups, [&](const Group& g) { return g.path == group.path && g.shape == group.shape && g.cut == group.cut; });
    if (known == groups.end())
      groups.push_back(std::move(group));
    else
      ++known->count, known->elements += group.elements, known->bytes_of_rank += group.bytes_of_rank;
  }

  std::string out = str("mesh        ", mesh.describe(), ": ", counted(mesh.ranks(), "rank"), "\n");
  out += str("model       ", folder.string(), ", ", count_text(elements), " parameters, ",
             bytes_text(elements * number_bytes), "\n");
  out += str("rules       ",
             own.empty() ? "of the model family"
                         : str(own.size(), " of sharding.partition_rules, then those of the model family"),
             "\n");
  if (dropped) out += str("whole       ", dropped, " dimensions stay whole because the mesh does not divide them\n");
  out += str("shards of rank ", plan.rank, ":\n");
  std::vector<std::vector<std::string>> rows = {{"parameter", "", "shape", "sharded over", "shard", "bytes"}};
  for (const Group& group : groups)
    rows.push_back(
        {group.path, str(group.count, " of"), group.shape, group.cut, group.part, bytes_text(group.bytes_of_rank)});
  out += text_table(rows) + "ranks:\n";
  // Every dimension is cut evenly, so all ranks hold the same amount; which part depends on the rank's coordinates.
  rows = {{"rank"}};
  rows[0].insert(rows[0].end(), mesh.names().begin(), mesh.names().end());
  rows[0].push_back("bytes");
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    auto& row = rows.emplace_back(std::vector<std::string>{std::to_string(rank)});
    for (const int64_t at : mesh.coordinates(rank)) row.push_back(std::to_string(at));
    row.push_back(bytes_text(bytes));
  }
  return out + text_table(rows);
}

}  // namespace easydel::elarge
