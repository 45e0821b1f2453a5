#include "easydel/server/key_store.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/sha256.h"
#include "easydel/server/private_files.h"

namespace easydel::server {
namespace {

constexpr size_t secret_bytes = 48, prefix_characters = 12, max_addresses = 100000;
constexpr std::string_view admin_id = "admin";

std::string url_base64(std::string_view bytes) {
  static constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  check(bytes.size() % 3 == 0, "base64: padding is not needed here");
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t three =
        uint32_t(uint8_t(bytes[i])) << 16 | uint32_t(uint8_t(bytes[i + 1])) << 8 | uint8_t(bytes[i + 2]);
    for (int shift = 18; shift >= 0; shift -= 6) out += letters[three >> shift & 63];
  }
  return out;
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += "0123456789abcdef"[uint8_t(c) >> 4];
    out += "0123456789abcdef"[uint8_t(c) & 15];
  }
  return out;
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

// A time in which uses are limited.
struct Period {
  KeyUsage::Window KeyUsage::*window;
  int64_t seconds;
  std::string_view name;
};
constexpr std::array periods = {Period{&KeyUsage::minute, 60, "minute"}, Period{&KeyUsage::hour, 3600, "hour"},
                                Period{&KeyUsage::day, 86400, "day"}, Period{&KeyUsage::month, 30 * 86400, "30 days"}};

// The limits of requests and tokens in periods[i].
std::pair<std::optional<int64_t>, std::optional<int64_t>> limits_of(const KeySettings& settings, size_t period) {
  const RateLimits& rates = settings.rate_limits;
  switch (period) {
    case 0:
      return {rates.requests_per_minute, rates.tokens_per_minute};
    case 1:
      return {rates.requests_per_hour, rates.tokens_per_hour};
    case 2:
      return {rates.requests_per_day, rates.tokens_per_day};
    default:
      return {settings.quota.monthly_request_limit, settings.quota.monthly_token_limit};
  }
}

void begin_windows(KeyUsage& usage, int64_t now) {
  for (const Period& period : periods) {
    KeyUsage::Window& window = usage.*period.window;
    if (window.began_at == 0 || now - window.began_at >= period.seconds || now < window.began_at)
      window = {.began_at = now};
  }
}

// `changes` laid over `whole`, section by section.
Value overlaid(Value whole, const Value& changes) {
  for (const auto& [name, value] : changes.entries) {
    const Value* const old = whole.find(name);
    whole.set(name, old && old->is_map() && value.is_map() ? overlaid(*old, value) : value);
  }
  return whole;
}

}  // namespace

KeyStore::KeyStore(KeyStoreOptions options) : options_(std::move(options)) {
  if (options_.admin_key) admin_hash_ = files::sha256(*options_.admin_key);
  if (options_.file.empty() || !files::exists(options_.file)) return;
  check_private(options_.file);
  keys_ = read_file();
  audit_ = read_audit(parse_json(files::read(options_.file), options_.file.string()), options_.file.string());
}

std::map<std::string, ApiKey> KeyStore::read_file() const {
  const Value document = parse_json(files::read(options_.file), options_.file.string());
  config::Problems problems(options_.file.string());
  std::map<std::string, ApiKey> keys;
  if (!document.is_map() || !document.find("keys") || !document.find("keys")->is_list())
    refuse(FilePlace{options_.file.string()}, "is not a file of keys", "it has an object with a list 'keys'");
  std::set<std::string> secrets;
  for (size_t i = 0; i < document.find("keys")->items.size(); ++i) {
    const Value& item = document.find("keys")->items[i];
    ApiKey key;
    config::read_section(config::section_of<ApiKey>(), item, &key, str("keys[", i, "]"), problems);
    if (!key.hashed_key.empty() &&
        (key.hashed_key.size() != 64 || key.hashed_key.find_first_not_of("0123456789abcdef") != std::string::npos))
      problems.add(str("keys[", i, "].hashed_key"), item.place, "is not a SHA-256 of 64 hex digits");
    if (keys.contains(key.key_id) || (!key.hashed_key.empty() && !secrets.insert(key.hashed_key).second))
      problems.add(str("keys[", i, "].key_id"), item.place, "is there twice", "keep one of them");
    keys.emplace(key.key_id, std::move(key));
  }
  problems.throw_if_any();
  return keys;
}

void KeyStore::reload() {
  if (options_.file.empty()) return;
  std::map<std::string, ApiKey> keys = read_file();
  std::lock_guard lock(mutex_);
  // What was used meanwhile is not lost.
  for (auto& [id, key] : keys)
    if (const auto old = keys_.find(id); old != keys_.end()) key.usage = old->second.usage;
  keys_ = std::move(keys);
  changed_ = true;
}

void KeyStore::save_anyway() {
  {
    const std::lock_guard lock(mutex_);
    changed_ = true;
  }
  save();
}

void KeyStore::save() {
  std::string text;
  {
    std::lock_guard lock(mutex_);
    if (!changed_ || options_.file.empty()) return;
    Value list = Value::list();
    for (const auto& [id, key] : keys_) list.items.push_back(config::write(key));
    Value document = Value::map();
    document.set("keys", std::move(list));
    document.set("audit_log", audit_document(audit_));
    text = to_json(document, 2) + "\n";
    changed_ = false;
  }
  try {
    const PrivateFiles private_files;
    files::write(options_.file, text);
  } catch (const UserError&) {
    std::lock_guard lock(mutex_);
    changed_ = true;
    throw;
  }
}

int64_t KeyStore::now() const {
  if (options_.seconds_since_1970) return options_.seconds_since_1970();
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

bool KeyStore::has_admin() const {
  std::lock_guard lock(mutex_);
  return !admin_hash_.empty() ||
         std::ranges::any_of(keys_, [](const auto& entry) { return entry.second.settings.role == Role::admin; });
}

// Compares with every key, so that the time does not tell which one was nearly right.
const ApiKey* KeyStore::find(std::string_view secret) const {
  const std::string hash = files::sha256(secret);
  const ApiKey* found = nullptr;
  for (const auto& [id, key] : keys_)
    if (files::equal_secrets(hash, key.hashed_key)) found = &key;
  return found;
}

ApiError KeyStore::wrong_key(const std::string& address) {
  const int64_t time = now();
  if (wrong_.size() > max_addresses) wrong_.clear();  // an attack from everywhere must not fill the memory
  Wrong& wrong = wrong_[address];
  if (time - wrong.began_at >= 60) wrong = {.began_at = time};
  ++wrong.count;
  if (wrong.count <= options_.wrong_keys_per_minute)
    return {.status = 401, .message = "Missing or invalid API key", .code = "invalid_api_key"};
  return {.status = 429,
          .message = "Too many wrong API keys from this address.",
          .code = "too_many_wrong_keys",
          .retry_after_seconds = wrong.began_at + 60 - time};
}

std::optional<ApiError> KeyStore::over_limit(ApiKey& key) const {
  const KeySettings& settings = key.settings;
  const auto quota = [](std::string_view what) {
    return ApiError{.status = 429,
                    .message = str("The key's quota of ", what, " is used up."),
                    .code = "insufficient_quota",
                    .type = "insufficient_quota"};
  };
  if (settings.quota.max_total_requests && key.usage.total_requests >= *settings.quota.max_total_requests)
    return quota("requests");
  if (settings.quota.max_total_tokens && key.usage.total_tokens >= *settings.quota.max_total_tokens)
    return quota("tokens");
  for (size_t i = 0; i < periods.size(); ++i) {
    const KeyUsage::Window& window = key.usage.*periods[i].window;
    const auto [requests, tokens] = limits_of(settings, i);
    const bool by_requests = requests && window.requests >= *requests;
    if (!by_requests && !(tokens && window.tokens >= *tokens)) continue;
    return ApiError{.status = 429,
                    .message = str("The key's limit of ", by_requests ? *requests : *tokens,
                                   by_requests ? " requests" : " tokens", " in a ", periods[i].name, " is reached."),
                    .code = "rate_limit_exceeded",
                    .retry_after_seconds = std::max<int64_t>(1, window.began_at + periods[i].seconds - now())};
  }
  return std::nullopt;
}

RateState KeyStore::rates_of(const ApiKey& key) const {
  RateState out;
  const auto tighten = [](std::optional<int64_t> limit, int64_t used, int64_t reset, std::optional<int64_t>& limits,
                          std::optional<int64_t>& remaining, std::optional<int64_t>& resets) {
    if (!limit) return;
    const int64_t left = std::max<int64_t>(0, *limit - used);
    if (remaining && *remaining <= left) return;
    limits = limit;
    remaining = left;
    resets = reset;
  };
  for (size_t i = 0; i < periods.size(); ++i) {
    const KeyUsage::Window& window = key.usage.*periods[i].window;
    const int64_t reset = std::max<int64_t>(0, window.began_at + periods[i].seconds - now());
    const auto [requests, tokens] = limits_of(key.settings, i);
    tighten(requests, window.requests, reset, out.limit_requests, out.remaining_requests, out.reset_requests_seconds);
    tighten(tokens, window.tokens, reset, out.limit_tokens, out.remaining_tokens, out.reset_tokens_seconds);
  }
  return out;
}

std::optional<ApiError> KeyStore::refusal(ApiKey& key, const std::string& address, const Route& route) {
  const auto forbidden = [](std::string message, std::string code) {
    return ApiError{.status = 403, .message = std::move(message), .code = std::move(code)};
  };
  const KeySettings& settings = key.settings;
  if (key.status == KeyStatus::suspended) return forbidden("The API key is suspended.", "key_suspended");
  if (settings.expires_at && now() >= *settings.expires_at)
    return ApiError{.status = 401, .message = "The API key has expired.", .code = "invalid_api_key"};
  const KeyPermissions& permissions = settings.permissions;
  const bool blocked = contains(permissions.blocked_ip_addresses, address) ||
                       (permissions.allowed_ip_addresses && !contains(*permissions.allowed_ip_addresses, address));
  if (blocked) return forbidden("The API key is not valid for this address.", "address_not_allowed");
  if (!allows(settings.role, route.scope))
    return forbidden(str("The API key's role '", config::word_of(settings.role), "' does not allow '",
                         config::word_of(route.scope), "'."),
                     "insufficient_permissions");
  if (permissions.allowed_endpoints && !contains(*permissions.allowed_endpoints, route.path))
    return forbidden(str("The API key does not allow ", route.path, "."), "endpoint_not_allowed");
  begin_windows(key.usage, now());
  return over_limit(key);
}

Admission KeyStore::admit(const std::string* secret, const std::string& address, const Route& route, bool count) {
  std::lock_guard lock(mutex_);
  if (!secret) {
    // Guessing needs a key; a client without one is only told so.
    return {.error = ApiError{.status = 401, .message = "Missing or invalid API key", .code = "invalid_api_key"}};
  }
  if (!admin_hash_.empty() && files::equal_secrets(files::sha256(*secret), admin_hash_))
    return {.key_id = std::string(admin_id)};
  const ApiKey* const found = find(*secret);
  if (!found || found->status == KeyStatus::revoked) return {.error = wrong_key(address)};
  ApiKey& key = keys_.at(found->key_id);
  Admission out{.key_id = key.key_id, .role = key.settings.role, .permissions = key.settings.permissions};
  out.error = refusal(key, address, route);
  if (!out.error && count) {
    for (const Period& period : periods) ++(key.usage.*period.window).requests;
    ++key.usage.total_requests;
    key.usage.last_used_at = now();
    changed_ = true;
  } else if (out.error && out.error->status == 403) {
    note("refused", key.key_id, key.key_id, address, out.error->code);
  }
  out.rates = rates_of(key);
  return out;
}

bool KeyStore::add_tokens(const std::string& key_id, int64_t tokens) {
  std::lock_guard lock(mutex_);
  const auto entry = keys_.find(key_id);
  if (entry == keys_.end()) return key_id == admin_id;
  ApiKey& key = entry->second;
  if (key.status != KeyStatus::active) return false;
  begin_windows(key.usage, now());
  int64_t left = std::numeric_limits<int64_t>::max();
  if (const auto limit = key.settings.quota.max_total_tokens) left = std::min(left, *limit - key.usage.total_tokens);
  for (size_t i = 0; i < periods.size(); ++i)
    if (const auto limit = limits_of(key.settings, i).second)
      left = std::min(left, *limit - (key.usage.*periods[i].window).tokens);
  if (tokens > left) return false;
  for (const Period& period : periods) (key.usage.*period.window).tokens += tokens;
  key.usage.total_tokens += tokens;
  changed_ = true;
  return true;
}

void KeyStore::note(std::string action, std::string key_id, std::string actor, std::string address,
                    std::string detail) {
  if (options_.max_audit_entries == 0) return;
  if (audit_.size() >= options_.max_audit_entries) audit_.pop_front();
  audit_.push_back(
      {now(), std::move(action), std::move(key_id), std::move(actor), std::move(address), std::move(detail)});
  changed_ = true;
}

ApiKey& KeyStore::at(const std::string& key_id) {
  const auto found = keys_.find(key_id);
  if (found == keys_.end()) refuse("key_id", "there is no key '" + key_id + "'");
  return found->second;
}

std::string KeyStore::new_secret(ApiKey& key) {
  const std::string secret = "sk-" + url_base64(files::random_bytes(secret_bytes));
  key.key_prefix = secret.substr(0, prefix_characters);
  key.hashed_key = files::sha256(secret);
  changed_ = true;
  return secret;
}

KeyStore::Created KeyStore::create(const KeySettings& settings, const std::string& actor) {
  std::lock_guard lock(mutex_);
  ApiKey key{.created_at = now(), .settings = settings};
  key.key_id = "key_" + hex(files::random_bytes(12));
  const std::string secret = new_secret(key);
  note("create", key.key_id, actor, "", settings.name);
  keys_.emplace(key.key_id, key);
  return {key, secret};
}

std::vector<ApiKey> KeyStore::list() const {
  std::lock_guard lock(mutex_);
  std::vector<ApiKey> out;
  for (const auto& [id, key] : keys_) out.push_back(key);
  std::ranges::stable_sort(out, {}, &ApiKey::created_at);
  return out;
}

ApiKey KeyStore::get(const std::string& key_id) const {
  std::lock_guard lock(mutex_);
  return const_cast<KeyStore*>(this)->at(key_id);
}

ApiKey KeyStore::change(const std::string& key_id, const Value& changes, const std::string& actor) {
  std::lock_guard lock(mutex_);
  ApiKey& key = at(key_id);
  KeySettings settings;
  config::read(overlaid(config::write(key.settings), changes), settings, "body").throw_if_any();
  key.settings = std::move(settings);
  changed_ = true;
  note("update", key_id, actor);
  return key;
}

void KeyStore::remove(const std::string& key_id, const std::string& actor) {
  std::lock_guard lock(mutex_);
  at(key_id);
  keys_.erase(key_id);
  changed_ = true;
  note("delete", key_id, actor);
}

ApiKey KeyStore::revoke(const std::string& key_id, const std::string& actor) {
  std::lock_guard lock(mutex_);
  ApiKey& key = at(key_id);
  key.status = KeyStatus::revoked;
  key.hashed_key.clear();
  changed_ = true;
  note("revoke", key_id, actor);
  return key;
}

ApiKey KeyStore::set_suspended(const std::string& key_id, bool suspended, const std::string& actor) {
  std::lock_guard lock(mutex_);
  ApiKey& key = at(key_id);
  if (key.status == KeyStatus::revoked) refuse("key_id", "the key is revoked", "create a new one");
  key.status = suspended ? KeyStatus::suspended : KeyStatus::active;
  changed_ = true;
  note(suspended ? "suspend" : "reactivate", key_id, actor);
  return key;
}

KeyStore::Created KeyStore::rotate(const std::string& key_id, const std::string& actor) {
  std::lock_guard lock(mutex_);
  ApiKey& key = at(key_id);
  if (key.status == KeyStatus::revoked) refuse("key_id", "the key is revoked", "create a new one");
  const std::string secret = new_secret(key);
  note("rotate", key_id, actor);
  return {key, secret};
}

Value KeyStore::stats() const {
  std::lock_guard lock(mutex_);
  int64_t active = 0, suspended = 0, revoked = 0, expired = 0, requests = 0, tokens = 0;
  for (const auto& [id, key] : keys_) {
    const bool over = key.settings.expires_at && now() >= *key.settings.expires_at;
    ++(key.status == KeyStatus::revoked     ? revoked
       : key.status == KeyStatus::suspended ? suspended
       : over                               ? expired
                                            : active);
    requests += key.usage.total_requests;
    tokens += key.usage.total_tokens;
  }
  Value out = Value::map();
  const auto set = [&out](std::string_view name, int64_t count) { out.set(name, Value::integer(count)); };
  set("total_keys", int64_t(keys_.size()));
  set("active_keys", active);
  set("suspended_keys", suspended);
  set("revoked_keys", revoked);
  set("expired_keys", expired);
  set("total_requests", requests);
  set("total_tokens", tokens);
  return out;
}

std::vector<AuditEntry> KeyStore::audit(size_t limit) const {
  std::lock_guard lock(mutex_);
  const size_t count = std::min(limit, audit_.size());
  return {audit_.rbegin(), audit_.rbegin() + std::ptrdiff_t(count)};
}

}  // namespace easydel::server
