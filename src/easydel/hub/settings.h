// Where the hub is and what of it is kept: the environment of Hugging Face's own tools, read anew at each call.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace easydel::hub {

struct Settings {
  std::string endpoint;         // HF_ENDPOINT, else https://huggingface.co; without a slash at the end
  std::filesystem::path cache;  // HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, ...
  std::string token;            // HF_TOKEN, else the file HF_TOKEN_PATH or HF_HOME/token; may be empty
  bool offline = false;         // HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE or HF_DATASETS_OFFLINE: nothing is asked
  bool progress = true;         // HF_HUB_DISABLE_PROGRESS_BARS
  double etag_seconds = 10, download_seconds = 10;  // HF_HUB_ETAG_TIMEOUT, HF_HUB_DOWNLOAD_TIMEOUT
};

// UserError for a value that cannot be understood.
Settings settings();

// "~/x" with the home folder put in; other paths as they are.
std::filesystem::path expand_home(std::string_view path);

// HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
std::filesystem::path cache_folder();

}  // namespace easydel::hub
