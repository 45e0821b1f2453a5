// A key of the server's interface: who has it, what it allows, how much of it is used. Names are upstream's.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/server/routes.h"

namespace easydel::server {

enum class Role : uint8_t { admin, user, readonly, service };
constexpr auto choices(Role) {
  using config::Choice;
  return std::array{Choice{Role::admin, "admin"}, Choice{Role::user, "user"}, Choice{Role::readonly, "readonly"},
                    Choice{Role::service, "service"}};
}
// admin: everything. service: everything but admin. user: generate, embed, tokenize, models, responses. readonly:
// models, metrics.
bool allows(Role role, Scope scope);

enum class KeyStatus : uint8_t { active, suspended, revoked };
constexpr auto choices(KeyStatus) {
  using config::Choice;
  return std::array{Choice{KeyStatus::active, "active"}, Choice{KeyStatus::suspended, "suspended"},
                    Choice{KeyStatus::revoked, "revoked"}};
}

struct KeyPermissions {
  std::optional<std::vector<std::string>> allowed_models = {}, allowed_endpoints = {}, allowed_ip_addresses = {};
  std::vector<std::string> blocked_ip_addresses = {};
  bool enable_streaming = true, enable_function_calling = true;
  std::optional<int64_t> max_tokens_per_request = {};

  static constexpr auto doc = "What a key may be used for.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::allowed_models>("Names of models; null: all."),
        field<&C::allowed_endpoints>("Paths of routes, as the OpenAPI document writes them; null: all of the role."),
        field<&C::allowed_ip_addresses>("Addresses of clients; null: all."),
        field<&C::blocked_ip_addresses>("Addresses of clients that are refused."),
        field<&C::enable_streaming>("Answers may be streamed."),
        field<&C::enable_function_calling>("Requests may have tools."),
        field<&C::max_tokens_per_request>("Largest number of tokens that a request may generate; null: no limit.",
                                          at_least(1)),
    };
  }
};

struct RateLimits {
  std::optional<int64_t> requests_per_minute = {}, requests_per_hour = {}, requests_per_day = {};
  std::optional<int64_t> tokens_per_minute = {}, tokens_per_hour = {}, tokens_per_day = {};

  static constexpr auto doc = "How much of a key may be used in a time; null: no limit.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::requests_per_minute>("Requests in a minute.", at_least(1)),
        field<&C::requests_per_hour>("Requests in an hour.", at_least(1)),
        field<&C::requests_per_day>("Requests in a day.", at_least(1)),
        field<&C::tokens_per_minute>("Tokens of prompts and answers in a minute.", at_least(1)),
        field<&C::tokens_per_hour>("Tokens of prompts and answers in an hour.", at_least(1)),
        field<&C::tokens_per_day>("Tokens of prompts and answers in a day.", at_least(1)),
    };
  }
};

struct Quota {
  std::optional<int64_t> max_total_tokens = {}, max_total_requests = {};
  std::optional<int64_t> monthly_token_limit = {}, monthly_request_limit = {};

  static constexpr auto doc = "How much of a key may be used in all; null: no limit.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_total_tokens>("Tokens of prompts and answers.", at_least(1)),
        field<&C::max_total_requests>("Requests.", at_least(1)),
        field<&C::monthly_token_limit>("Tokens of prompts and answers in 30 days.", at_least(1)),
        field<&C::monthly_request_limit>("Requests in 30 days.", at_least(1)),
    };
  }
};

// What an administrator says of a key. The body of POST /v1/admin/keys, and with PATCH the part that changes.
struct KeySettings {
  std::string name = {};
  Role role = Role::user;
  std::optional<std::string> description = {};
  std::vector<std::string> tags = {};
  std::optional<int64_t> expires_at = {};
  KeyPermissions permissions = {};
  RateLimits rate_limits = {};
  Quota quota = {};

  static constexpr auto doc = "A key of the server's interface.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::name>("What the key is called.", required()),
        field<&C::role>("What it allows: admin, user, readonly or service."),
        field<&C::description>("What it is for."),
        field<&C::tags>("Words to find it by."),
        field<&C::expires_at>("Seconds since 1970 from which it is refused; null: never.", at_least(0)),
        field<&C::permissions>("What it may be used for."),
        field<&C::rate_limits>("How much of it may be used in a time."),
        field<&C::quota>("How much of it may be used in all."),
    };
  }
  void settle(config::Keys& keys);
};

// What is counted of a key. A window begins with the first use after the last one ended.
struct KeyUsage {
  struct Window {
    int64_t began_at = 0, requests = 0, tokens = 0;

    static constexpr auto doc = "Uses since a moment.";
    template <class C>
    static constexpr auto fields() {
      using namespace config;
      return std::array{field<&C::began_at>("Seconds since 1970."), field<&C::requests>("Requests."),
                        field<&C::tokens>("Tokens.")};
    }
  };
  int64_t total_requests = 0, total_tokens = 0;
  std::optional<int64_t> last_used_at = {};
  Window minute = {}, hour = {}, day = {}, month = {};

  static constexpr auto doc = "How much of a key is used.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::total_requests>("Requests."),
        field<&C::total_tokens>("Tokens of prompts and answers."),
        field<&C::last_used_at>("Seconds since 1970; null: never."),
        field<&C::minute>("The current minute."),
        field<&C::hour>("The current hour."),
        field<&C::day>("The current day."),
        field<&C::month>("The current 30 days."),
    };
  }
};

struct ApiKey {
  std::string key_id = {}, key_prefix = {};
  std::string hashed_key = {};  // SHA-256 of the secret as 64 hex digits; empty: revoked
  KeyStatus status = KeyStatus::active;
  int64_t created_at = 0;
  KeySettings settings = {};
  KeyUsage usage = {};

  static constexpr auto doc = "A key as it is stored.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::key_id>("Its name in routes and logs.", required()),
        field<&C::key_prefix>("The first 12 characters of the secret."),
        field<&C::hashed_key>("SHA-256 of the secret."),
        field<&C::status>("Whether it is accepted."),
        field<&C::created_at>("Seconds since 1970."),
        field<&C::settings>("What an administrator said of it."),
        field<&C::usage>("How much of it is used."),
    };
  }
};

// Keys as the admin routes show them: without the hash.
Value shown(const ApiKey& key);

}  // namespace easydel::server
