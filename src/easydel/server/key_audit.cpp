#include "easydel/server/key_audit.h"

#include "easydel/base/error.h"

namespace easydel::server {

Value audit_document(const std::deque<AuditEntry>& entries) {
  Value out = Value::list();
  for (const AuditEntry& entry : entries) out.items.push_back(config::write(entry));
  return out;
}

std::deque<AuditEntry> read_audit(const Value& document, const std::string& file) {
  std::deque<AuditEntry> out;
  const Value* const list = document.find("audit_log");
  if (!list) return out;
  config::Problems problems(file);
  if (!list->is_list()) problems.add("audit_log", list->place, "is not a list");
  for (size_t i = 0; i < list->items.size(); ++i)
    config::read_section(config::section_of<AuditEntry>(), list->items[i], &out.emplace_back(),
                         str("audit_log[", i, "]"), problems);
  problems.throw_if_any();
  return out;
}

}  // namespace easydel::server
