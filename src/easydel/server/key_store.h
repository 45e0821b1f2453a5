// The keys of the server: making and changing them, checking what a client sends, counting what is used, and the file
// they are kept in. Thread-safe. The clock is given, so that limits can be tested at their edges.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/server/api_error.h"
#include "easydel/server/api_key.h"
#include "easydel/server/key_audit.h"

namespace easydel::server {

struct KeyStoreOptions {
  std::filesystem::path file = {};            // empty: keys are kept in memory alone
  std::optional<std::string> admin_key = {};  // a secret that has every scope; it is stored nowhere
  size_t max_audit_entries = 10000;
  int64_t wrong_keys_per_minute = 10;                // from one address, before further wrong ones are refused at once
  std::function<int64_t()> seconds_since_1970 = {};  // empty: the system's
};

// What is left of the tightest limits, for x-ratelimit-* headers.
struct RateState {
  std::optional<int64_t> limit_requests = {}, remaining_requests = {}, reset_requests_seconds = {};
  std::optional<int64_t> limit_tokens = {}, remaining_tokens = {}, reset_tokens_seconds = {};
};

// The result of checking a client. `error` set: it is refused.
struct Admission {
  std::string key_id = {};  // "admin" for admin_key
  Role role = Role::admin;
  KeyPermissions permissions = {};
  RateState rates = {};
  std::optional<ApiError> error = {};
};

class KeyStore {
 public:
  explicit KeyStore(KeyStoreOptions options);  // UserError: the file is broken

  bool has_admin() const;  // an admin key was ever set; otherwise admin routes do not exist

  // `secret`: from the headers, nullptr: there is none. `count`: a request of an accepted key is counted. Wrong keys
  // always are.
  Admission admit(const std::string* secret, const std::string& address, const Route& route, bool count = true);
  // Counts tokens as they are computed. False: the key's limit is reached, and the request has to end.
  bool add_tokens(const std::string& key_id, int64_t tokens);

  struct Created {
    ApiKey key;
    std::string secret;  // only now; it is not stored
  };
  // `actor`: the id of the key that asks, for the audit log. Functions of a key that is not there throw
  // UserError("key_id", ...).
  Created create(const KeySettings& settings, const std::string& actor);
  std::vector<ApiKey> list() const;
  ApiKey get(const std::string& key_id) const;
  ApiKey change(const std::string& key_id, const Value& changes, const std::string& actor);
  void remove(const std::string& key_id, const std::string& actor);
  ApiKey revoke(const std::string& key_id, const std::string& actor);
  ApiKey set_suspended(const std::string& key_id, bool suspended, const std::string& actor);
  Created rotate(const std::string& key_id, const std::string& actor);
  Value stats() const;
  std::vector<AuditEntry> audit(size_t limit) const;  // the newest first

  void save();         // if something has changed; UserError: the file cannot be written
  void save_anyway();  // UserError: the file cannot be written
  void reload();       // reads the file anew; UserError: it is broken, and nothing has changed

 private:
  struct Wrong {
    int64_t began_at = 0, count = 0;
  };

  int64_t now() const;
  ApiKey& at(const std::string& key_id);
  const ApiKey* find(std::string_view secret) const;
  ApiError wrong_key(const std::string& address);
  std::optional<ApiError> refusal(ApiKey& key, const std::string& address, const Route& route);
  std::optional<ApiError> over_limit(ApiKey& key) const;
  RateState rates_of(const ApiKey& key) const;
  void note(std::string action, std::string key_id, std::string actor, std::string address = "",
            std::string detail = "");
  std::string new_secret(ApiKey& key);
  std::map<std::string, ApiKey> read_file() const;

  KeyStoreOptions options_;
  std::string admin_hash_;
  mutable std::mutex mutex_;
  std::map<std::string, ApiKey> keys_;
  std::map<std::string, Wrong> wrong_;  // by address
  std::deque<AuditEntry> audit_;
  bool changed_ = false;
};

}  // namespace easydel::server
