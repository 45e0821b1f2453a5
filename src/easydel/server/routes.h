// Which routes there are: the one table that routing, permissions and the OpenAPI document come from.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/config/choice.h"

namespace easydel::server {

// What a key must allow for a route. none: the route needs no key.
enum class Scope : uint8_t { none, generate, embed, tokenize, models, responses, metrics, adapters, admin };
constexpr auto choices(Scope) {
  using config::Choice;
  return std::array{Choice{Scope::generate, "generate"},   Choice{Scope::embed, "embed"},
                    Choice{Scope::tokenize, "tokenize"},   Choice{Scope::models, "models"},
                    Choice{Scope::responses, "responses"}, Choice{Scope::metrics, "metrics"},
                    Choice{Scope::adapters, "adapters"},   Choice{Scope::admin, "admin"}};
}

struct Route {
  std::string_view method;
  std::string_view path;  // "/v1/models/{id}": a name in braces matches one segment that is not empty
  Scope scope;
  bool json_body;  // application/json is needed
  std::string_view summary;
};

std::span<const Route> routes();

struct RouteMatch {
  const Route* route = nullptr;  // null: nothing serves this method on this path
  std::vector<std::pair<std::string_view, std::string>> parameters = {};  // percent-decoded
  std::vector<std::string_view> allowed = {};  // the methods of this path; empty: there is no such path

  std::string parameter(std::string_view name) const;  // empty: there is none
  std::string allow() const;                           // "GET, HEAD, OPTIONS"
};

// The paths below /v1 also match without it, as some clients send them. HEAD is served where GET is.
RouteMatch match_route(std::string_view method, std::string_view path);

}  // namespace easydel::server
