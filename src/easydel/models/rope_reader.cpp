// Reads rotary positions from config.json: ConfigReader::rope and rope_of.
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/config/codec.h"
#include "easydel/models/config_reader.h"
#include "easydel/models/rotated_pairs.h"

namespace easydel::models {
namespace {

using config::shown;
using ops::RopeSpec, ops::RopeType;

constexpr const char* known =
    "known: default, linear, dynamic, yarn, deepseek_yarn, llama3, longrope, mrope, proportional";

// Reads the keys of one mapping for a type.
struct Reader {
  const ConfigReader& in;
  RopeSpec& spec;
  const std::string& type;

  bool has(const char* name) const { return in.find(name) != nullptr; }
  std::optional<double> number_if(const char* name) const {
    return has(name) ? std::optional(in.number(name, 0.0)) : std::nullopt;
  }
  double or_default(const char* name, double otherwise) const {
    const double value = in.number(name, otherwise);
    return value == 0.0 ? otherwise : value;
  }
  void need(const char* name) const {
    if (!has(name)) in.refuse_key(name, "is missing", str("rope type '", type, "' needs it"));
  }
  std::vector<double> numbers(const char* name) const {
    const Value* const list = in.find(name);
    if (!list || !list->is_list()) in.refuse_key(name, "is missing", "longrope needs a list of numbers");
    std::vector<double> out;
    for (const Value& item : list->items) {
      if (!item.as_double()) in.refuse_key(name, shown(item) + " is not a number");
      out.push_back(*item.as_double());
    }
    if (int64_t(out.size()) != spec.dim / 2)
      in.refuse_key(name, str("has ", out.size(), " numbers; half of the rotated dimensions is ", spec.dim / 2));
    return out;
  }

  void scaled(RopeType by) const {
    if (!has("scaling_factor")) need("factor");
    spec.type = by;
  }
  void yarn() const {
    spec.type = RopeType::yarn;
    if (!has("factor")) spec.factor = double(spec.max_positions) / double(spec.original_max_positions);
    spec.beta_fast = or_default("beta_fast", 32);
    spec.beta_slow = or_default("beta_slow", 1);
    spec.mscale = number_if("mscale");
    spec.mscale_all_dim = number_if("mscale_all_dim");
    spec.truncate = in.boolean("truncate", true);
    spec.extrapolation_factor = in.number("extrapolation_factor", 1);
    spec.attn_factor = in.number("attn_factor", 1);
  }
  // DeepSeek's formula for the scale of cos and sin; 0 means no scaling.
  void deepseek_yarn() const {
    yarn();
    const auto scale = [&](double mscale) {
      return spec.factor <= 1 ? 1.0 : 0.1 * mscale * std::log(spec.factor) + 1.0;
    };
    if (!spec.attention_factor)
      spec.attention_factor =
          scale(spec.mscale.value_or(1.0)) / scale(spec.mscale_all_dim.value_or(0.0)) * spec.attn_factor;
  }
  void llama3() const {
    need("factor");
    spec.type = RopeType::llama3;
    need("low_freq_factor");
    need("high_freq_factor");
    spec.low_freq_factor = in.number("low_freq_factor", 1);
    spec.high_freq_factor = in.number("high_freq_factor", 4);
  }
  void longrope() const {
    spec.type = RopeType::longrope;
    if (!has("factor")) spec.factor = double(spec.max_positions) / double(spec.original_max_positions);
    spec.short_factor = numbers("short_factor");
    spec.long_factor = numbers("long_factor");
  }
  void proportional(double partial) const {
    spec.type = RopeType::proportional;
    spec.angles = int64_t(std::floor(partial * double(spec.dim) / 2));
  }
  void sections() const {
    const Value* const list = in.find("mrope_section");
    if (!list) return;
    const auto sizes = list->is_list() ? list->items : std::vector<Value>{};
    int64_t sum = 0;
    for (const Value& item : sizes) {
      if (item.as_int().value_or(-1) < 0) in.refuse_key("mrope_section", shown(item) + " is not a number of pairs");
      spec.mrope_section.push_back(*item.as_int());
      sum += *item.as_int();
    }
    if (sizes.size() != 3)
      in.refuse_key("mrope_section", str("has ", sizes.size(), " sections"),
                    "give three: of time, of height and of width");
    if (sum != spec.dim / 2)
      in.refuse_key("mrope_section",
                    str("mrope_section is incompatible with rotary_dim. Expected sum(mrope_section)=", spec.dim / 2,
                        ", got ", sum, " for rotary_dim=", spec.dim),
                    "the three sections are all pairs of rotated dimensions");
    spec.mrope_interleaved = in.boolean("mrope_interleaved", false);
  }
};

}  // namespace

ConfigReader ConfigReader::rope_parameters(const Value* otherwise) const {
  static const Value none = Value::map();
  const Value* scaling = find("rope_scaling");
  if (scaling && scaling->is_map() && scaling->entries.empty()) scaling = nullptr;
  const std::string_view key = scaling ? "rope_scaling" : "rope_parameters";
  if (!scaling) scaling = find("rope_parameters");
  if (!scaling) scaling = otherwise ? otherwise : &none;
  if (!scaling->is_map()) refuse_key(key, shown(*scaling) + " is not a mapping");
  return ConfigReader(*scaling, where_.below(key));
}

RopeSpec ConfigReader::rope(int64_t head_dim, int64_t max_positions, const RopeDefaults& defaults) const {
  const ConfigReader in = rope_parameters(defaults.parameters);
  for (const char* layer_type : {"full_attention", "sliding_attention"})
    if (in.find(layer_type))
      in.refuse_key(layer_type, "rope parameters for each layer type are not built for this family");
  const bool null = has(defaults.partial_key) && !find(defaults.partial_key);  // the whole head
  RopeSpec spec = rope_from(in, head_dim, max_positions, number(defaults.theta_key, defaults.theta),
                            null ? 1.0 : number(defaults.partial_key, defaults.partial), defaults);
  if (spec.dim == head_dim) settle_odd_rotation(*this, spec);
  return spec;
}

RopeSpec ConfigReader::rope_of(const std::string& layer_type, int64_t head_dim, int64_t max_positions, double theta,
                               std::string_view scaling) const {
  const Value* all = find("rope_parameters");
  if (all && !all->is_map()) refuse_key("rope_parameters", shown(*all) + " is not a mapping");
  const Value* own = all ? all->find(layer_type) : nullptr;
  Value merged = own && !own->is_null() ? *own : Value::map();
  if (!merged.is_map()) refuse_key("rope_parameters." + layer_type, shown(merged) + " is not a mapping");
  if (const Value* over = scaling.empty() ? nullptr : find(scaling)) {
    if (!over->is_map()) refuse_key(scaling, shown(*over) + " is not a mapping");
    for (const auto& [key, value] : over->entries) merged.set(key, value);
  }
  const ConfigReader in(merged, where_.below("rope_parameters").below(layer_type));
  RopeSpec spec = rope_from(in, head_dim, max_positions, theta, 1.0, {});
  if (spec.dim == head_dim) settle_odd_rotation(*this, spec);
  // transformers looks for this key next to the layer types, not inside them.
  const Value* const truncate = all ? all->find("truncate") : nullptr;
  spec.truncate = !truncate || truncate->as_bool().value_or(true);
  return spec;
}

RopeSpec ConfigReader::rope_from(const ConfigReader& in, int64_t head_dim, int64_t max_positions, double theta,
                                 double partial_otherwise, const RopeDefaults& defaults) const {
  RopeSpec spec;
  spec.theta = in.number("rope_theta", theta);
  const auto above_zero = [&](const char* key, double value) {
    if (!(value > 0.0) || !std::isfinite(value)) in.refuse_key(key, str(value, " is not a number above 0"));
  };
  above_zero("rope_theta", spec.theta);
  const double partial = in.number("partial_rotary_factor", partial_otherwise);
  if (partial <= 0.0 || partial > 1.0) in.refuse_key("partial_rotary_factor", str(partial, " is out of range"));
  std::string type = in.text("rope_type", in.text("type", "default"));
  if (type == "mrope") type = "default";  // its frequencies are the usual ones
  if (type == "su" || (defaults.only_longrope && type == "yarn")) type = "longrope";  // Phi-3's first files
  // Without scaling only some families rotate a part of a head. With scaling all types do, which the other families
  // cannot use.
  const bool whole = type == "default" && !defaults.reads_partial;
  spec.dim = whole || type == "proportional" ? head_dim : int64_t(double(head_dim) * partial);
  if (spec.dim < head_dim && !defaults.reads_partial)
    in.refuse_key("partial_rotary_factor", str(partial, " is not built for this family"));
  spec.max_positions = max_positions;
  const Reader read{in, spec, type};
  if (defaults.reads_sections) read.sections();
  if (const double alpha = defaults.ntk_alpha ? in.number("alpha", 0.0) : 0.0; type == "dynamic" && alpha != 0.0) {
    spec.theta *= std::pow(alpha, double(spec.dim) / double(spec.dim - 2));
    return spec;
  }
  if (type == "default") return spec;
  if (defaults.only_longrope && type != "longrope")
    in.refuse_key("rope_type", str("'", type, "' is not known to this family"), "known: default, longrope");
  const bool says_original = in.find("original_max_position_embeddings") || find("original_max_position_embeddings") ||
                             defaults.original_max_positions > 0;
  if (!says_original && (type == "yarn" || type == "deepseek_yarn" || type == "llama3" || type == "longrope"))
    read.need("original_max_position_embeddings");
  spec.factor = in.number("factor", in.number("scaling_factor", 1.0));
  spec.original_max_positions = integer("original_max_position_embeddings")
                                    .value_or(defaults.original_max_positions > 0
                                                  ? defaults.original_max_positions
                                                  : in.integer("original_max_position_embeddings", max_positions));
  above_zero("factor", spec.factor);
  above_zero("original_max_position_embeddings", double(spec.original_max_positions));
  spec.attention_factor = read.number_if("attention_factor");
  if (type == "linear")
    read.scaled(RopeType::linear);
  else if (type == "dynamic")
    read.scaled(RopeType::dynamic);
  else if (type == "yarn")
    read.yarn();
  else if (type == "deepseek_yarn")
    read.deepseek_yarn();
  else if (type == "llama3")
    read.llama3();
  else if (type == "longrope")
    read.longrope();
  else if (type == "proportional")
    read.proportional(partial);
  else
    in.refuse_key("rope_type", str("unknown rope type '", type, "'"), known);
  return spec;
}

}  // namespace easydel::models
