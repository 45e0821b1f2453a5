// What was done with keys: the entries of the audit log, and how they are stored beside the keys.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "easydel/config/fields.h"

namespace easydel::server {

struct AuditEntry {
  int64_t timestamp = 0;  // seconds since 1970
  std::string action = {}, key_id = {}, actor = {}, address = {}, detail = {};

  static constexpr auto doc = "Something that was done with a key.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::timestamp>("When, in seconds since 1970."),
        field<&C::action>("What."),
        field<&C::key_id>("With which key."),
        field<&C::actor>("The key of whoever did it."),
        field<&C::address>("Their address."),
        field<&C::detail>("More about it."),
    };
  }
};

Value audit_document(const std::deque<AuditEntry>& entries);
// The entries of a file of keys, which may have none. UserError: they are not what audit_document writes.
std::deque<AuditEntry> read_audit(const Value& document, const std::string& file);

}  // namespace easydel::server
