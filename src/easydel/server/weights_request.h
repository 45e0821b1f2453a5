// The body of the route that changes a model's weights.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "easydel/server/request_fields.h"

namespace easydel::server {

struct UpdateWeightsRequest {
  std::optional<std::string> model = {};
  std::string path = {};
  bool abort_requests = false;

  static constexpr auto doc = "New weights of a model.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::model>("The model that gets them; null: the first one."),
        field<&C::path>("A folder with config.json and weights, below the server's folder of weights.", required()),
        field<&C::abort_requests>("End the requests that run, instead of finishing them with the present weights."),
    };
  }
  void settle(config::Keys& keys) {
    if (path.empty() || path.find('\0') != std::string::npos) keys.refuse("path", "is not a folder");
  }
};

}  // namespace easydel::server
