// config.json's keys as a family reads them: typed, with the spelling of older files, and errors that name the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/ops/rope.h"

namespace easydel::models {

// A family's defaults and spelling of rotary positions.
struct RopeDefaults {
  double theta = 10000.0, partial = 1.0;
  bool reads_partial = false;  // the family reads partial_rotary_factor without scaling as well
  std::string_view theta_key = "rope_theta", partial_key = "partial_rotary_factor";
  int64_t original_max_positions = 0;  // 0: as the parameters say
  const Value* parameters = nullptr;   // instead of rope_parameters, if config.json has none
  bool only_longrope = false;          // accepts longrope (under any of its older names) and no other scaling
  bool none = false;                   // no rotary positions
  bool by_layer_type = false;          // each type of layer has its own parameters: rope_of
  bool ntk_alpha = false;              // "dynamic" with alpha is a fixed, larger base
  bool reads_sections = false;         // reads mrope_section: a token may have three positions
};

class ConfigReader {
 public:
  ConfigReader(const Value& config, Where where) : config_(config), where_(std::move(where)) {}

  // A key that is absent or null has its default, except that a null flag is false, as in transformers. UserError: a
  // value of another type, an integer of more than 31 bits.
  int64_t integer(std::string_view key, int64_t otherwise) const;
  std::optional<int64_t> integer(std::string_view key) const;
  double number(std::string_view key, double otherwise) const;
  bool boolean(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<std::string> texts(std::string_view key) const;
  const Value* find(std::string_view key) const;  // nullptr: absent or null
  bool has(std::string_view key) const;           // present, possibly null

  // UserError at the key, "dir/config.json: rope_scaling.factor: what", for a value that is not supported.
  [[noreturn]] void refuse_key(std::string_view key, const std::string& what, const std::string& remedy = "") const;
  void positive(std::string_view key, int64_t value) const;
  const Where& where() const { return where_; }  // the file, and in it the section that is read
  const Value& document() const { return config_; }

  std::vector<int64_t> integers(std::string_view key) const;  // a list; empty if the key is absent

  // Both spellings: rope_parameters {rope_theta, rope_type, ...}, or rope_theta and rope_scaling {type, ...}.
  ops::RopeSpec rope(int64_t head_dim, int64_t max_positions, const RopeDefaults& defaults = {}) const;
  // The parameters of rotary positions in either spelling; `otherwise` if config.json has none.
  ConfigReader rope_parameters(const Value* otherwise = nullptr) const;
  // For families with parameters per layer type: rope_parameters {full_attention: {...}, sliding_attention: {...}}.
  // `theta`: the default base; `scaling`: an older key whose parameters override the others ("": none).
  ops::RopeSpec rope_of(const std::string& layer_type, int64_t head_dim, int64_t max_positions, double theta,
                        std::string_view scaling = "") const;

 private:
  ops::RopeSpec rope_from(const ConfigReader& parameters, int64_t head_dim, int64_t max_positions, double theta,
                          double partial, const RopeDefaults& defaults) const;

  const Value& config_;
  Where where_;
};

}  // namespace easydel::models
