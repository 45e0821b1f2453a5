#include "easydel/hub/curl.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"

namespace easydel::hub {
namespace {

std::string refusal_of(const char* library) {
  try {
    load_curl(library);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(LoadCurl, RefusesAMissingLibrary) {
  EXPECT_EQ(
      refusal_of("libcurl_of_nobody.so.4"),
      "libcurl_of_nobody.so.4: cannot be loaded: libcurl_of_nobody.so.4: cannot open shared object file: No such file "
      "or directory\n    addresses are read by it; install libcurl (Debian: libcurl4), or give a local folder");
}

TEST(LoadCurl, RefusesALibraryWithoutItsFunctions) {
  EXPECT_EQ(refusal_of("libm.so.6"), "libm.so.6: has no curl_global_init\n    install libcurl 7.85 or newer");
}

TEST(LoadCurl, FindsEveryFunction) { EXPECT_STREQ(curl().easy_strerror(CURLE_OK), "No error"); }

}  // namespace
}  // namespace easydel::hub
