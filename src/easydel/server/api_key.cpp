#include "easydel/server/api_key.h"

#include <algorithm>

namespace easydel::server {

bool allows(Role role, Scope scope) {
  switch (role) {
    case Role::admin:
      return true;
    case Role::service:
      return scope != Scope::admin;
    case Role::user:
      return scope <= Scope::responses;
    case Role::readonly:
      return scope == Scope::none || scope == Scope::models || scope == Scope::metrics;
  }
  return false;
}

void KeySettings::settle(config::Keys& keys) {
  if (name.empty()) keys.refuse("name", "is empty", "give the key a name");
  if (!permissions.allowed_endpoints) return;
  for (const std::string& path : *permissions.allowed_endpoints)
    if (std::ranges::none_of(routes(), [&](const Route& route) { return route.path == path; }))
      keys.refuse("permissions", "'" + path + "' in allowed_endpoints is not a route of this server");
}

Value shown(const ApiKey& key) {
  Value out = config::write(key);
  std::erase_if(out.entries, [](const auto& entry) { return entry.first == "hashed_key"; });
  return out;
}

}  // namespace easydel::server
