// What asking a server or a cloud's storage for a file has in common, whether it is copied or read by ranges.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/columnar/columnar.h"
#include "easydel/data/remote_files.h"
#include "easydel/hub/http.h"

namespace easydel::data {

// What tells two versions of a file apart, as the server says it.
struct RemoteVersion {
  std::string etag, modified, size;

  bool is_known() const { return !etag.empty() || (!modified.empty() && !size.empty()); }
  bool operator==(const RemoteVersion&) const = default;
};

// `size`: of the whole file, also in an answer that has a part.
RemoteVersion version_of(const hub::Response& response);

// UserError: the file is not there or not allowed; NetworkError: another try may help. Returns for a success (2xx).
void check_answer(const std::string& where, const std::string& url, const hub::Response& answer);

// Turns what goes wrong with a cloud's storage into UserError, or NetworkError if another try may help.
template <class Action>
void asking_cloud(const std::string& where, const std::string& url, const Action& action) {
  try {
    action();
  } catch (const columnar::CloudError& error) {
    if (!error.denied) throw hub::NetworkError(error.what);
    refuse(where, str("'", url, "' needs a permission: ", error.what),
           "give mixture.dask_storage_options: {key: ..., secret: ...}, or {anon: true} for what is public");
  }
}

// Tries again after a NetworkError as often as the options say, and throws the last one.
template <class Action>
auto trying(const RemoteOptions& options, const std::string& where, const Action& action) {
  constexpr double longest_wait_seconds = 30;
  for (int64_t attempt = 0;; ++attempt) {
    try {
      return action();
    } catch (const hub::NetworkError& error) {
      if (attempt >= options.retries) throw;
      log::warning(where, ": ", error.what(), "; trying again");
      const double wait = options.retry_seconds * std::pow(2.0, double(attempt));
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(wait, longest_wait_seconds)));
    }
  }
}

}  // namespace easydel::data
