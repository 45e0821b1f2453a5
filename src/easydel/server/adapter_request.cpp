#include "easydel/server/adapter_request.h"

#include <algorithm>
#include <cctype>

namespace easydel::server {

void LoadAdapterRequest::settle(config::Keys& keys) {
  constexpr size_t max_name_bytes = 128;
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == ':'; };
  if (lora_name.empty() || lora_name.size() > max_name_bytes || !std::ranges::all_of(lora_name, allowed))
    keys.refuse("lora_name", "is not a name of 1 to 128 letters, digits, '_', '-', '.' and ':'");
  if (lora_path.empty() || lora_path.find('\0') != std::string::npos) keys.refuse("lora_path", "is not a folder");
}

}  // namespace easydel::server
