#include "easydel/data/remote_requests.h"

#include "easydel/base/error.h"

namespace easydel::data {

RemoteVersion version_of(const hub::Response& response) {
  RemoteVersion out{response.header("etag"), response.header("last-modified"), response.header("content-length")};
  // Of a part: "bytes 5-9/10".
  const std::string range = response.header("content-range");
  if (const size_t slash = range.rfind('/'); slash != std::string::npos) out.size = range.substr(slash + 1);
  return out;
}

void check_answer(const std::string& where, const std::string& url, const hub::Response& answer) {
  if (answer.status / 100 == 2) return;
  if (answer.status >= 500 || answer.status == 429 || answer.status == 408)
    throw hub::NetworkError(str("the server answers ", answer.status));
  if (answer.status == 401 || answer.status == 403)
    refuse(where, str("'", url, "' needs a permission: the server answers ", answer.status),
           "give mixture.dask_storage_options: {token: ...}, or fetch the file yourself");
  refuse(where, str("'", url, "' is not there: the server answers ", answer.status), "check the address");
}

}  // namespace easydel::data
