// The hub's address and cache, from the environment variables of Hugging Face's own tools; read on every call.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace easydel::hub {

struct Settings {
  std::string endpoint;         // HF_ENDPOINT, else https://huggingface.co; no trailing slash
  std::filesystem::path cache;  // HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, ...
  std::string token;            // HF_TOKEN, else the file HF_TOKEN_PATH or HF_HOME/token; may be empty
  bool offline = false;         // HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE or HF_DATASETS_OFFLINE: no requests
  bool progress = true;         // HF_HUB_DISABLE_PROGRESS_BARS
  double etag_seconds = 10, download_seconds = 10;  // HF_HUB_ETAG_TIMEOUT, HF_HUB_DOWNLOAD_TIMEOUT
};

// UserError: a value is not valid.
Settings settings();

// Replaces a leading "~" by the home folder.
std::filesystem::path expand_home(std::string_view path);

// HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
std::filesystem::path cache_folder();

}  // namespace easydel::hub
