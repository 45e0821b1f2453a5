// config.json's keys as a family reads them: typed, with the spelling of older files, and errors that name the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/ops/rope.h"

namespace easydel::models {

class ConfigReader {
 public:
  ConfigReader(const Value& config, std::string where) : config_(config), where_(std::move(where)) {}

  // A key that is absent or null has its default; a value of another type is a UserError.
  int64_t integer(std::string_view key, int64_t otherwise) const;
  std::optional<int64_t> integer(std::string_view key) const;
  double number(std::string_view key, double otherwise) const;
  bool boolean(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<std::string> texts(std::string_view key) const;
  const Value* find(std::string_view key) const;  // nullptr: absent or null
  bool has(std::string_view key) const;            // there, though it may be null

  // UserError "where: key: what", for a value that is not supported.
  [[noreturn]] void refuse_key(std::string_view key, const std::string& what, const std::string& remedy = "") const;
  void positive(std::string_view key, int64_t value) const;
  const std::string& where() const { return where_; }
  const Value& document() const { return config_; }

  // Both spellings: rope_parameters {rope_theta, rope_type, ...}, or rope_theta beside rope_scaling {type, ...}.
  ops::RopeSpec rope(int64_t head_dim, int64_t max_positions) const;

 private:
  const Value& config_;
  std::string where_;
};

}  // namespace easydel::models
