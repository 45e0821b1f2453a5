#include "easydel/server/routes.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"

namespace easydel::server {
namespace {

// "GET /v1/models/{id} id=x", or the methods that the path has.
std::string matched(std::string_view method, std::string_view path) {
  const RouteMatch match = match_route(method, path);
  if (!match.route) return match.allowed.empty() ? "none" : match.allow();
  std::string out = str(match.route->method, " ", match.route->path);
  for (const auto& [name, value] : match.parameters) out += str(" ", name, "=", value);
  return out;
}

TEST(Routes, AreFoundByMethodAndPath) {
  EXPECT_EQ(matched("GET", "/"), "GET /");
  EXPECT_EQ(matched("HEAD", "/health"), "GET /health");
  EXPECT_EQ(matched("GET", "/v1/models"), "GET /v1/models");
  EXPECT_EQ(matched("GET", "/v1/models/a%2Fb"), "GET /v1/models/{id} id=a/b");
  EXPECT_EQ(matched("GET", "/models/%252e"), "GET /v1/models/{id} id=%2e");
  EXPECT_EQ(matched("POST", "/chat/completions"), "POST /v1/chat/completions");
  EXPECT_EQ(matched("DELETE", "/v1/admin/keys/k/revoke"), "DELETE /v1/admin/keys/{id}/revoke id=k");
  EXPECT_EQ(matched("GET", "/v1/admin/keys/stats"), "GET /v1/admin/keys/stats");
}

TEST(Routes, NameTheMethodsThatAPathHas) {
  EXPECT_EQ(matched("POST", "/v1/models"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(matched("PUT", "/v1/responses/x"), "GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(matched("DELETE", "/v1/admin/keys/stats"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(matched("get", "/health"), "GET, HEAD, OPTIONS");
}

TEST(Routes, DoNotMatchOtherPaths) {
  for (const char* path :
       {"/v1", "/v1/", "//", "/v1//models", "/v1/models/", "/v1/models/a/b", "/v1/./models", "/Health", "/health/",
        "/v1/../health", "/%68ealth", "/v1/models/%00", "/v1/models/%ff", "/v1/v1/models", "*", "/v1\\models", "/chat"})
    EXPECT_EQ(matched("GET", path), "none") << path;
}

}  // namespace
}  // namespace easydel::server
