#include "easydel/hub/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"

namespace easydel::hub {
namespace fs = std::filesystem;
namespace {

std::string text_of(const char* value) { return value ? value : ""; }

std::string trimmed(std::string text) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!text.empty() && blank(static_cast<unsigned char>(text.back()))) text.pop_back();
  text.erase(text.begin(), std::ranges::find_if_not(text, blank));
  return text;
}

bool truth(const std::string& name, const std::string& value) {
  const std::string word = canonical(value);
  if (word.empty() || word == "0" || word == "off" || word == "no" || word == "false") return false;
  if (word == "1" || word == "on" || word == "yes" || word == "true") return true;
  refuse(name, "'" + value + "' is neither yes nor no", "give 1 or 0");
}

double seconds(const std::string& name, const std::string& value, double fallback) {
  if (value.empty()) return fallback;
  double out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc{} || end != value.data() + value.size() || !(out > 0))
    refuse(name, "'" + value + "' is not a number of seconds", "give a number above 0, such as 10");
  return out;
}

fs::path home_folder() {
  if (const std::string home = text_of(std::getenv("HF_HOME")); !home.empty()) return expand_home(home);
  const std::string cache = text_of(std::getenv("XDG_CACHE_HOME"));
  return (cache.empty() ? expand_home("~/.cache") : fs::path(cache)) / "huggingface";
}

std::string token_of_user() {
  for (const char* value : {std::getenv("HF_TOKEN"), std::getenv("HUGGING_FACE_HUB_TOKEN")})
    if (const std::string token = trimmed(text_of(value)); !token.empty()) return token;
  const std::string path = text_of(std::getenv("HF_TOKEN_PATH"));
  const fs::path file = path.empty() ? home_folder() / "token" : expand_home(path);
  return files::is_file(file) ? trimmed(files::read(file)) : "";
}

}  // namespace

fs::path expand_home(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const std::string home = text_of(std::getenv("HOME"));
  if (home.empty()) return path;
  return path.size() > 2 ? fs::path(home) / path.substr(2) : fs::path(home);
}

fs::path cache_folder() {
  for (const char* value : {std::getenv("HF_HUB_CACHE"), std::getenv("HUGGINGFACE_HUB_CACHE")})
    if (const std::string folder = text_of(value); !folder.empty()) return expand_home(folder);
  return home_folder() / "hub";
}

Settings settings() {
  Settings out;
  out.endpoint = text_of(std::getenv("HF_ENDPOINT"));
  if (out.endpoint.empty()) out.endpoint = "https://huggingface.co";
  while (out.endpoint.ends_with('/')) out.endpoint.pop_back();
  out.cache = cache_folder();
  if (!truth("HF_HUB_DISABLE_IMPLICIT_TOKEN", text_of(std::getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN"))))
    out.token = token_of_user();
  out.offline = truth("HF_HUB_OFFLINE", text_of(std::getenv("HF_HUB_OFFLINE"))) ||
                truth("TRANSFORMERS_OFFLINE", text_of(std::getenv("TRANSFORMERS_OFFLINE"))) ||
                truth("HF_DATASETS_OFFLINE", text_of(std::getenv("HF_DATASETS_OFFLINE")));
  out.progress = !truth("HF_HUB_DISABLE_PROGRESS_BARS", text_of(std::getenv("HF_HUB_DISABLE_PROGRESS_BARS")));
  out.etag_seconds = seconds("HF_HUB_ETAG_TIMEOUT", text_of(std::getenv("HF_HUB_ETAG_TIMEOUT")), out.etag_seconds);
  out.download_seconds =
      seconds("HF_HUB_DOWNLOAD_TIMEOUT", text_of(std::getenv("HF_HUB_DOWNLOAD_TIMEOUT")), out.download_seconds);
  return out;
}

}  // namespace easydel::hub
