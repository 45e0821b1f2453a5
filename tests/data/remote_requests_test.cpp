#include "easydel/data/remote_requests.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::data {
namespace {

hub::Response answer(int status, std::map<std::string, std::string> headers = {}) {
  return {.status = status, .headers = std::move(headers), .body = {}, .url = {}};
}

TEST(RemoteRequests, TellVersionsApart) {
  const RemoteVersion whole = version_of(answer(200, {{"last-modified", "Monday"}, {"content-length", "10"}}));
  EXPECT_TRUE(whole.is_known());
  // The size of a part's file, not the part's.
  EXPECT_EQ(version_of(
                answer(206, {{"last-modified", "Monday"}, {"content-length", "5"}, {"content-range", "bytes 5-9/10"}})),
            whole);
  EXPECT_NE(version_of(answer(200, {{"last-modified", "Monday"}, {"content-length", "11"}})), whole);
  EXPECT_FALSE(version_of(answer(200, {{"content-length", "10"}})).is_known());
  EXPECT_TRUE(version_of(answer(200, {{"etag", "\"a\""}})).is_known());
}

TEST(RemoteRequests, AreTriedAgainWhereThatMayHelp) {
  check_answer("data_files", "https://a/b", answer(206));
  for (const int status : {408, 429, 500, 503})
    EXPECT_THROW(check_answer("data_files", "https://a/b", answer(status)), hub::NetworkError) << status;
  const auto refused = [](int status) {
    return test::refusal([&] { check_answer("data_files", "https://a/b", answer(status)); });
  };
  EXPECT_EQ(refused(403),
            "data_files: 'https://a/b' needs a permission: the server answers 403\n    give "
            "mixture.dask_storage_options: {token: ...}, or fetch the file yourself");
  EXPECT_EQ(refused(404), "data_files: 'https://a/b' is not there: the server answers 404\n    check the address");
}

TEST(RemoteRequests, EndWithTheLastError) {
  RemoteOptions options;
  options.retries = 2, options.retry_seconds = 0;
  int tries = 0;
  EXPECT_EQ(trying(options, "data_files", [&] { return ++tries < 3 ? throw hub::NetworkError("gone") : 7; }), 7);
  EXPECT_EQ(tries, 3);
  tries = 0;
  EXPECT_THROW(trying(options, "data_files", [&]() -> int { throw hub::NetworkError(str("gone ", ++tries)); }),
               hub::NetworkError);
  EXPECT_EQ(tries, 3);
}

}  // namespace
}  // namespace easydel::data
