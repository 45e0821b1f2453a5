#include "easydel/models/parameter_plan.h"

#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"
#include "easydel/models/heads.h"
#include "easydel/nn/placement.h"

namespace easydel::models {
namespace {

bool is_tied(const Value& config) {
  const ConfigReader reader(config, FilePlace{"config.json"});
  return reader.boolean("tie_word_embeddings", family_of(reader).tied_by_default);
}

// Parameters that EasyDeL shards differently from their roles; here token mixers run whole on every rank.
struct OwnCut {
  const char* model_types;  // a regex, as `path`
  const char* path;
  mesh::PartitionSpec spec;
};
const std::vector<OwnCut>& own_cuts() {
  static const std::vector<OwnCut> cuts = {
      {"mamba|falcon_mamba", "mixer/A_log", {{"tp"}, {}}},
      {"mamba|falcon_mamba", "mixer/D|mixer/dt_proj/bias", {{"tp"}}},
      {"mamba|falcon_mamba", "mixer/dt_proj/kernel", {{}, {"tp"}}},
      {"mamba|falcon_mamba", "mixer/x_proj/kernel", {{"tp"}, {}}},
      {"mamba|falcon_mamba|mamba2", "mixer/conv1d/kernel", {{}, {}, {"tp"}}},
      {"mamba|falcon_mamba|mamba2", "mixer/conv1d/bias", {{"tp"}}},
      {"mamba|falcon_mamba|mamba2", "mixer/out_proj/kernel", mesh::row_wise()},
      {"qwen3_next", "linear_attn/out_proj/kernel", mesh::row_wise()},
      {"qwen3_next", "linear_attn/in_proj_.*|mlp/shared_expert_gate/kernel|self_attn/(q|k|v|o)_proj/kernel", {}},
      {"gpt_oss", "mlp/router/.*", {}},
      {"glm|glm4", "mlp/gate_up_proj/kernel", {}},
      {"gpt_neox", "embed_out/kernel", {}},
      {".*", "experts/(gate|up|down)_proj/bias", {{"ep", "sp", "fsdp"}, {"tp"}}},
  };
  return cuts;
}
// Parameters with another name in EasyDeL.
struct OwnName {
  RegularExpression model_types, path;
  const char* name;  // replaces the path
};
std::string own_name(const std::string& model_type, std::string path) {
  const auto pattern_of = [](const char* pattern) { return RegularExpression(pattern); };
  static const OwnName names[] = {
      {pattern_of("mixtral"), pattern_of("block_sparse_moe/experts/gate_proj/"), "block_sparse_moe/experts/w1/"},
      {pattern_of("mixtral"), pattern_of("block_sparse_moe/experts/down_proj/"), "block_sparse_moe/experts/w2/"},
      {pattern_of("mixtral"), pattern_of("block_sparse_moe/experts/up_proj/"), "block_sparse_moe/experts/w3/"},
      {pattern_of("cohere|cohere2"), pattern_of("norm/scale$"), "norm/kernel"},
  };
  for (const OwnName& own : names)
    if (own.model_types.matches(model_type)) path = own.path.replace(path, own.name);
  return path;
}

const mesh::PartitionSpec* own_cut(const std::vector<std::pair<RegularExpression, const mesh::PartitionSpec*>>& cuts,
                                   const std::string& path) {
  const auto found = std::ranges::find_if(cuts, [&](const auto& cut) { return cut.first.found_in(path); });
  return found == cuts.end() ? nullptr : found->second;
}

}  // namespace

std::unique_ptr<nn::ParameterTable> plan_parameters(
    const Value& config, const Where& where,
    const std::function<void(const nn::Entry&, const std::vector<nn::TensorSource>&)>& see) {
  const ConfigReader reader(config, where);
  auto table = std::make_unique<nn::ParameterTable>();
  nn::Building building{.table = *table, .place = {}, .fill = {}, .weight_policies = {}, .head = {}};
  building.fill = [&](nn::Entry& entry, const nn::Initial&, const std::vector<nn::TensorSource>& sources) {
    if (!sources.empty()) entry.source = sources.front();
    if (see) see(entry, sources);
  };
  build_model(family_of(reader), reader, building);
  return table;
}

std::vector<EasyDelParameter> easydel_parameters(const Value& config, const nn::ParameterTable& table) {
  std::vector<EasyDelParameter> out;
  const nn::Entry* vocabulary = nullptr;
  bool has_head = false;
  const std::string model_type = ConfigReader(config, FilePlace{"config.json"}).text("model_type", "");
  std::vector<std::pair<RegularExpression, const mesh::PartitionSpec*>> cuts;
  for (const OwnCut& cut : own_cuts())
    if (RegularExpression(cut.model_types).matches(model_type))
      cuts.emplace_back(RegularExpression(str("(^|/)(", cut.path, ")$")), &cut.spec);
  for (const nn::Entry& entry : table.entries()) {
    EasyDelParameter one{own_name(model_type, entry.easydel_path), entry.shape, nn::default_layout(entry), &entry};
    if (entry.role == nn::Role::weight && entry.shape.size() == 2 && entry.split == nn::Split::none)
      one.spec = mesh::storage_order(mesh::column_wise(), 2);
    if (entry.role == nn::Role::weight && entry.shape.size() >= 2) {
      std::swap(one.shape[one.shape.size() - 1], one.shape[one.shape.size() - 2]);
      one.spec = mesh::storage_order(one.spec, entry.shape.size());  // the permutation is its own inverse
      one.transposed = !entry.source.transposed;
    }
    if (entry.role == nn::Role::other && entry.shape.size() == 3 && one.path.ends_with("/kernel")) {
      std::ranges::reverse(one.shape);
      one.reversed = true;
    }
    if (const mesh::PartitionSpec* const own = own_cut(cuts, one.path)) one.spec = *own;
    if (mesh::axes_of(one.spec).empty()) one.spec.clear();
    has_head |= entry.path == "lm_head.weight";
    if (entry.role == nn::Role::embedding && entry.split == nn::Split::vocabulary) vocabulary = &entry;
    out.push_back(std::move(one));
  }
  // EasyDeL keeps the head of a tied model as a separate parameter.
  if (vocabulary && !has_head && is_tied(config))
    out.push_back(
        {"lm_head/kernel", {vocabulary->shape[1], vocabulary->shape[0]}, mesh::column_wise(), vocabulary, true, false});
  return out;
}

std::vector<mesh::Rule> get_partition_rules(const std::vector<EasyDelParameter>& parameters) {
  std::vector<mesh::Rule> rules;
  std::set<std::string> seen;
  for (const EasyDelParameter& parameter : parameters) {
    std::string pattern = "^(?:.*/)?";
    for (size_t at = 0; at <= parameter.path.size();) {
      const size_t end = std::min(parameter.path.find('/', at), parameter.path.size());
      const std::string part = parameter.path.substr(at, end - at);
      const bool number = !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
      pattern += (at > 0 ? "/" : "") + (number ? "\\d+" : part);
      at = end + 1;
    }
    pattern += "$";
    if (seen.insert(pattern).second) rules.push_back({pattern, parameter.spec});
  }
  rules.push_back({".*", {}});
  return rules;
}

}  // namespace easydel::models
