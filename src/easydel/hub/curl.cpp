#include "easydel/hub/curl.h"

#include <dlfcn.h>

#include "easydel/base/error.h"

namespace easydel::hub {

Curl load_curl(const char* name_of_library) {
  void* const library = ::dlopen(name_of_library, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const why = ::dlerror();
    refuse(name_of_library, str("cannot be loaded: ", why ? why : "unknown reason"),
           "addresses are read by it; install libcurl (Debian: libcurl4), or give a local folder");
  }
  const auto find = [&]<class Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (!function) refuse(name_of_library, str("has no ", name), "install libcurl 7.85 or newer");
  };
  Curl out = {};
  find(out.global_init, "curl_global_init");
  find(out.free, "curl_free");
  find(out.url, "curl_url");
  find(out.url_cleanup, "curl_url_cleanup");
  find(out.url_set, "curl_url_set");
  find(out.url_get, "curl_url_get");
  find(out.slist_append, "curl_slist_append");
  find(out.slist_free_all, "curl_slist_free_all");
  find(out.easy_init, "curl_easy_init");
  find(out.easy_cleanup, "curl_easy_cleanup");
  find(out.easy_setopt, "curl_easy_setopt");
  find(out.easy_getinfo, "curl_easy_getinfo");
  find(out.easy_perform, "curl_easy_perform");
  find(out.easy_strerror, "curl_easy_strerror");
  return out;
}

const Curl& curl() {
  static const Curl one = [] {
    const Curl loaded = load_curl("libcurl.so.4");
    loaded.global_init(CURL_GLOBAL_DEFAULT);
    return loaded;
  }();
  return one;
}

}  // namespace easydel::hub
