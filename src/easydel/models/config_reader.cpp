#include "easydel/models/config_reader.h"

#include <cmath>

#include "easydel/base/error.h"

namespace easydel::models {

const Value* ConfigReader::find(std::string_view key) const {
  const Value* value = config_.is_map() ? config_.find(key) : nullptr;
  return value && !value->is_null() ? value : nullptr;
}

bool ConfigReader::has(std::string_view key) const { return config_.is_map() && config_.find(key) != nullptr; }

void ConfigReader::refuse_key(std::string_view key, const std::string& what, const std::string& remedy) const {
  refuse(str(where_, ": ", key), what, remedy);
}

namespace {

std::string shown(const Value& value) { return to_json(value); }

}  // namespace

std::optional<int64_t> ConfigReader::integer(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  if (const auto found = value->as_int()) return *found;
  refuse_key(key, shown(*value) + " is no integer");
}

int64_t ConfigReader::integer(std::string_view key, int64_t otherwise) const { return integer(key).value_or(otherwise); }

double ConfigReader::number(std::string_view key, double otherwise) const {
  const Value* value = find(key);
  if (!value) return otherwise;
  if (const auto found = value->as_double()) return *found;
  refuse_key(key, shown(*value) + " is no number");
}

bool ConfigReader::boolean(std::string_view key, bool otherwise) const {
  const Value* value = find(key);
  if (!value) return otherwise;
  if (const auto found = value->as_bool()) return *found;
  refuse_key(key, shown(*value) + " is neither true nor false");
}

std::string ConfigReader::text(std::string_view key, std::string_view otherwise) const {
  const Value* value = find(key);
  if (!value) return std::string(otherwise);
  if (const auto found = value->as_string()) return *found;
  refuse_key(key, shown(*value) + " is no text");
}

std::vector<std::string> ConfigReader::texts(std::string_view key) const {
  std::vector<std::string> out;
  const Value* value = find(key);
  if (!value) return out;
  if (!value->is_list()) refuse_key(key, shown(*value) + " is no list");
  for (const Value& item : value->items) {
    const auto found = item.as_string();
    if (!found) refuse_key(key, shown(item) + " is no text");
    out.push_back(*found);
  }
  return out;
}

void ConfigReader::positive(std::string_view key, int64_t value) const {
  if (value < 1) refuse_key(key, str(value, " is not positive"));
}

std::vector<int64_t> ConfigReader::integers(std::string_view key) const {
  std::vector<int64_t> out;
  const Value* value = find(key);
  if (!value) return out;
  if (!value->is_list()) refuse_key(key, shown(*value) + " is no list");
  for (const Value& item : value->items) {
    // A flag stands for 0 or 1.
    const auto flag = item.as_bool();
    const auto found = flag ? std::optional<int64_t>(*flag) : item.as_int();
    if (!found) refuse_key(key, shown(item) + " is no integer");
    out.push_back(*found);
  }
  return out;
}

ConfigReader ConfigReader::rope_parameters(const Value* otherwise) const {
  static const Value none = Value::map();
  const Value* scaling = find("rope_scaling");
  if (scaling && scaling->is_map() && scaling->entries.empty()) scaling = nullptr;
  const std::string_view key = scaling ? "rope_scaling" : "rope_parameters";
  if (!scaling) scaling = find("rope_parameters");
  if (!scaling) scaling = otherwise ? otherwise : &none;
  if (!scaling->is_map()) refuse_key(key, shown(*scaling) + " is no mapping");
  return ConfigReader(*scaling, str(where_, ": ", key));
}

ops::RopeSpec ConfigReader::rope(int64_t head_dim, int64_t max_positions, const RopeDefaults& defaults) const {
  const ConfigReader in = rope_parameters(defaults.parameters);
  for (const char* layer_type : {"full_attention", "sliding_attention"})
    if (in.find(layer_type)) in.refuse_key(layer_type, "rope parameters for each layer type are not built for this family");
  return rope_from(in, head_dim, max_positions, number(defaults.theta_key, defaults.theta),
                   number(defaults.partial_key, defaults.partial), defaults);
}

ops::RopeSpec ConfigReader::rope_of(const std::string& layer_type, int64_t head_dim, int64_t max_positions, double theta,
                                    std::string_view scaling) const {
  const Value* all = find("rope_parameters");
  if (all && !all->is_map()) refuse_key("rope_parameters", shown(*all) + " is no mapping");
  const Value* own = all ? all->find(layer_type) : nullptr;
  Value merged = own && !own->is_null() ? *own : Value::map();
  if (!merged.is_map()) refuse_key("rope_parameters", str(layer_type, ": ", shown(merged), " is no mapping"));
  if (const Value* over = scaling.empty() ? nullptr : find(scaling)) {
    if (!over->is_map()) refuse_key(scaling, shown(*over) + " is no mapping");
    for (const auto& [key, value] : over->entries) merged.set(key, value);
  }
  const ConfigReader in(merged, str(where_, ": rope_parameters: ", layer_type));
  return rope_from(in, head_dim, max_positions, theta, 1.0, {});
}

ops::RopeSpec ConfigReader::rope_from(const ConfigReader& in, int64_t head_dim, int64_t max_positions, double theta,
                                      double partial_otherwise, const RopeDefaults& defaults) const {
  ops::RopeSpec spec;
  spec.theta = in.number("rope_theta", theta);
  const double partial = in.number("partial_rotary_factor", partial_otherwise);
  if (partial <= 0.0 || partial > 1.0) in.refuse_key("partial_rotary_factor", str(partial, " is no share of a head"));
  std::string type = in.text("rope_type", in.text("type", "default"));
  if (defaults.only_longrope && (type == "su" || type == "yarn")) type = "longrope";
  // Without scaling only some families turn a part of a head; with it all do, and those then cannot use it.
  const bool whole = type == "proportional" || (type == "default" && !defaults.reads_partial);
  spec.dim = whole ? head_dim : int64_t(double(head_dim) * partial);
  if (spec.dim < head_dim && !defaults.reads_partial)
    in.refuse_key("partial_rotary_factor", str(partial, " is not built for this family"));
  spec.max_positions = max_positions;
  if (const double alpha = defaults.ntk_alpha ? in.number("alpha", 0.0) : 0.0; type == "dynamic" && alpha != 0.0) {
    spec.theta *= std::pow(alpha, double(spec.dim) / double(spec.dim - 2));
    return spec;
  }
  if (type == "default") return spec;
  if (defaults.only_longrope && type != "longrope")
    in.refuse_key("rope_type", str("'", type, "' is not known to this family"), "known: default, longrope");
  spec.factor = in.number("factor", 1.0);
  const bool has_factor = in.find("factor") != nullptr;
  const auto need_factor = [&] {
    if (!has_factor) in.refuse_key("factor", "is missing", str("rope type '", type, "' needs it"));
  };
  spec.original_max_positions = integer("original_max_position_embeddings")
                                    .value_or(defaults.original_max_positions > 0
                                                  ? defaults.original_max_positions
                                                  : in.integer("original_max_position_embeddings", max_positions));
  if (in.find("attention_factor")) spec.attention_factor = in.number("attention_factor", 1.0);
  const auto number_if = [&](const char* name) -> std::optional<double> {
    return in.find(name) ? std::optional(in.number(name, 0.0)) : std::nullopt;
  };
  const auto or_default = [&](const char* name, double otherwise) {
    const double value = in.number(name, otherwise);
    return value == 0.0 ? otherwise : value;
  };
  const auto numbers = [&](const char* name) {
    const Value* list = in.find(name);
    if (!list || !list->is_list()) in.refuse_key(name, "is missing", "longrope needs a list of numbers");
    std::vector<double> out;
    for (const Value& item : list->items) {
      if (!item.as_double()) in.refuse_key(name, shown(item) + " is no number");
      out.push_back(*item.as_double());
    }
    if (int64_t(out.size()) != spec.dim / 2)
      in.refuse_key(name, str("has ", out.size(), " numbers; half of the rotated dimensions is ", spec.dim / 2));
    return out;
  };

  if (type == "proportional") {
    spec.type = ops::RopeType::proportional;
    spec.angles = int64_t(partial * double(head_dim)) / 2;
  } else if (type == "linear") {
    need_factor();
    spec.type = ops::RopeType::linear;
  } else if (type == "dynamic") {
    need_factor();
    spec.type = ops::RopeType::dynamic;
  } else if (type == "yarn") {
    spec.type = ops::RopeType::yarn;
    if (!has_factor) spec.factor = double(max_positions) / double(spec.original_max_positions);
    spec.beta_fast = or_default("beta_fast", 32);
    spec.beta_slow = or_default("beta_slow", 1);
    spec.mscale = number_if("mscale");
    spec.mscale_all_dim = number_if("mscale_all_dim");
    spec.truncate = in.boolean("truncate", true);
  } else if (type == "llama3") {
    need_factor();
    spec.type = ops::RopeType::llama3;
    for (const char* name : {"low_freq_factor", "high_freq_factor"})
      if (!in.find(name)) in.refuse_key(name, "is missing", "rope type 'llama3' needs it");
    spec.low_freq_factor = in.number("low_freq_factor", 1);
    spec.high_freq_factor = in.number("high_freq_factor", 4);
  } else if (type == "longrope" || type == "su") {
    spec.type = ops::RopeType::longrope;
    if (!has_factor) spec.factor = double(max_positions) / double(spec.original_max_positions);
    spec.short_factor = numbers("short_factor");
    spec.long_factor = numbers("long_factor");
  } else {
    in.refuse_key("rope_type", str("'", type, "' is not built for this family"),
                  "known: default, linear, dynamic, yarn, llama3, longrope, proportional");
  }
  return spec;
}

}  // namespace easydel::models
