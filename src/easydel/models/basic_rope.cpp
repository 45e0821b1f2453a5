#include "easydel/models/basic_rope.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/config_reader.h"

namespace easydel::models {
namespace {

const Where kWhere = FilePlace{"config"};

// The configuration with a single factor instead of a list.
Value with_factor(const Value& config, const std::string& key, const Value& factor) {
  Value out = config;
  out.find(key)->set("factor", factor);
  return out;
}

struct Factors {
  std::string key;
  std::vector<Value> each;
};
// A linear scaling may have several factors.
std::optional<Factors> factors_of(const Value& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Value* const parameters = config.find(key);
    const Value* const factor = parameters && parameters->is_map() ? parameters->find("factor") : nullptr;
    if (factor && factor->is_list()) return Factors{key, factor->items};
  }
  return std::nullopt;
}

// Sections are fractions of the rotated pairs: they may be written for a head of another size.
Value with_fitting_sections(const Value& config, int64_t pairs) {
  Value out = config;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    Value* const parameters = out.find(key);
    Value* const section = parameters && parameters->is_map() ? parameters->find("mrope_section") : nullptr;
    if (!section || !section->is_list()) continue;
    int64_t sum = 0;
    for (const Value& item : section->items) sum += item.as_int().value_or(0);
    bool fits = sum > 0;
    for (const Value& item : section->items) fits = fits && item.as_int().value_or(0) * pairs % sum == 0;
    if (!fits) continue;
    for (Value& item : section->items) item = Value::integer(*item.as_int() * pairs / sum);
  }
  return out;
}

ops::RopeSpec spec_of(const Value& config, const RopeRequest& request) {
  const ConfigReader in(config, kWhere);
  int64_t head = request.head_size.value_or(0);
  if (!request.head_size) {
    const auto given = in.integer("head_dim");
    if (!given) in.positive("num_attention_heads", in.integer("num_attention_heads", 0));
    head = given ? *given : in.integer("hidden_size", 0) / in.integer("num_attention_heads", 1);
  }
  const auto positions = request.max_positions ? request.max_positions : in.integer("max_position_embeddings");
  if (!positions) in.refuse_key("max_position_embeddings", "is missing", "rotary positions need it");
  const int64_t dim = request.rotary_dim.value_or(head);
  const double partial = in.number("partial_rotary_factor", 1.0);
  Value fitting = with_fitting_sections(config, (partial < 1.0 ? int64_t(double(dim) * partial) : dim) / 2);
  // Unlike its frequencies, EasyDeL's tables start with all positions if no original ones are given.
  const auto lacks = [](const Value& map) {
    const Value* const original = map.find("original_max_position_embeddings");
    return map.is_map() && !map.entries.empty() && (!original || original->is_null());
  };
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (Value* const parameters = fitting.find(key); parameters && lacks(*parameters) && lacks(fitting))
      parameters->set("original_max_position_embeddings", Value::integer(*positions));
  ops::RopeSpec spec =
      ConfigReader(fitting, kWhere).rope(dim, *positions, {.reads_partial = true, .reads_sections = true});
  if (request.base) spec.theta = *request.base;
  spec.interleaved = !request.is_neox_style;
  if (spec.dim < 2 || spec.dim % 2 != 0 || spec.dim > head)
    refuse(kWhere, str(spec.dim, " rotated dimensions of a head of ", head),
           "give an even number, at most the size of the head");
  return spec;
}

int64_t positions_of(const ops::RopeSpec& spec) {
  const auto scaled = [&](int64_t positions) { return int64_t(double(positions) * spec.factor); };
  switch (spec.type) {
    case ops::RopeType::linear:
    case ops::RopeType::dynamic:
      return scaled(spec.max_positions);
    case ops::RopeType::yarn:
      return scaled(spec.original_max_positions);
    case ops::RopeType::llama3:
      return std::max(spec.max_positions, spec.original_max_positions);
    default:
      return spec.max_positions;
  }
}

Tensor table_of(const ops::RopeSpec& spec) {
  const int64_t rows = positions_of(spec);
  const ops::RopeTable table = ops::rope_table(spec, at::arange(rows, at::TensorOptions().dtype(at::kLong)), {0, rows});
  if (spec.type != ops::RopeType::longrope) return at::cat({table.cos, table.sin}, -1);
  return at::cat({table.cos, table.cos, table.sin, table.sin}, -1).unsqueeze(0);
}

}  // namespace

Tensor get_basic_inv_frequencies(const Value& config, const RopeRequest& request) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Value* const parameters = config.find(key);
    if (!parameters || !parameters->is_map()) continue;
    const ConfigReader in(*parameters, kWhere.below(key));
    if (in.text("rope_type", in.text("type", "default")) != "yarn") continue;
    if (!in.find("original_max_position_embeddings") && !config.find("original_max_position_embeddings"))
      in.refuse_key("original_max_position_embeddings", "is missing", "rope type 'yarn' needs it");
  }
  const auto factors = factors_of(config);
  Value one = factors && !factors->each.empty() ? with_factor(config, factors->key, factors->each[0]) : config;
  for (const char* key :
       {"rope_scaling", "rope_parameters"})  // which of the positions rotates a pair does not change its frequency
    if (Value* const parameters = one.find(key);
        parameters && parameters->is_map() && parameters->find("mrope_section"))
      parameters->set("mrope_section", Value{});
  const ops::RopeSpec spec = spec_of(one, request);
  return ops::frequencies(spec, spec.type == ops::RopeType::longrope ? spec.max_positions : 0).inverse;
}

Tensor get_basic_frequencies(const Value& config, const RopeRequest& request) {
  const auto factors = factors_of(config);
  if (!factors) return table_of(spec_of(config, request));
  std::vector<Tensor> tables;
  for (const Value& factor : factors->each)
    tables.push_back(table_of(spec_of(with_factor(config, factors->key, factor), request)));
  if (tables.empty())
    refuse(kWhere.below(factors->key).below("factor"), "is an empty list", "give a number, or several");
  return at::cat(tables);
}

BasicRope get_basic_rope(const Value& config, const RopeRequest& request) {
  const auto factors = factors_of(config);
  BasicRope rope;
  rope.spec_ = spec_of(factors && !factors->each.empty() ? with_factor(config, factors->key, factors->each[0]) : config,
                       request);
  rope.length_ = positions_of(rope.spec_);
  if (factors && factors->each.size() > 1) rope.table_ = get_basic_frequencies(config, request);
  return rope;
}

Tensor BasicRope::operator()(const Tensor& x, const Tensor& positions, const std::optional<Tensor>& given) const {
  const std::optional<Tensor>& frequencies = given ? given : table_;
  if (!frequencies) {
    // Dynamic scalings use the longest sequence, whatever the length of this call, so that a cache stays valid.
    if (spec_.type != ops::RopeType::dynamic && spec_.type != ops::RopeType::longrope) {
      return ops::rope(x, ops::rope_table(spec_, positions, {0, positions.size(-1)}));
    }
    const ops::Frequencies f = ops::frequencies(spec_, length_);
    const Tensor angle = positions.to(at::kFloat).unsqueeze(-1) * f.inverse;
    return ops::rope(x, {angle.cos() * f.scale, angle.sin() * f.scale, spec_.interleaved});
  }
  const Tensor table = frequencies->dim() == 3 ? frequencies->squeeze(0) : *frequencies;
  const int64_t last = positions.numel() ? positions.max().item<int64_t>() : 0, half = spec_.dim / 2;
  if (last >= table.size(0))
    refuse("rope", str("position ", last, " is past the table's ", table.size(0)),
           "make the table for more positions, or give none");
  const auto part = [&](int64_t begin) {
    const Tensor values = table.slice(-1, begin, begin + half).to(at::kFloat);
    if (positions.dim() == 1) return values.index_select(0, positions);
    const Tensor choice = ops::mrope_choice(spec_).view({1, 1, -1}).expand({1, positions.size(1), -1});
    return values.index_select(0, positions.flatten()).view({3, -1, half}).gather(0, choice).squeeze(0);
  };
  return ops::rope(x, {part(0), part(table.size(-1) / 2), spec_.interleaved});
}

}  // namespace easydel::models
