// The bodies of the routes that load and unload adapters.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "easydel/server/request_fields.h"

namespace easydel::server {

// vLLM's names of the fields.
struct LoadAdapterRequest {
  std::optional<std::string> base_model_name = {};
  std::string lora_name = {}, lora_path = {};
  bool load_inplace = false;

  static constexpr auto doc = "An adapter to load.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::base_model_name>("The model that it belongs to; null: the first one."),
        field<&C::lora_name>("The name by which requests ask for it.", required()),
        field<&C::lora_path>("PEFT's folder, below the server's folder of adapters.", required()),
        field<&C::load_inplace>("Replace an adapter of this name; requests that run finish with the old one."),
    };
  }
  void settle(config::Keys& keys);
};

struct UnloadAdapterRequest {
  std::string lora_name = {};

  static constexpr auto doc = "An adapter to unload.";
  template <class C>
  static constexpr auto fields() {
    return std::array{config::field<&C::lora_name>("Its name.", config::required())};
  }
};

}  // namespace easydel::server
