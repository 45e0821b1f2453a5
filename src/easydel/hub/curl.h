// libcurl, loaded on the first request: it pulls in some thirty libraries, and most runs read only local files.
#pragma once

#include <curl/curl.h>

namespace easydel::hub {

// The functions of libcurl, named without the prefix curl_.
struct Curl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_free) free;
  decltype(&::curl_url) url;
  decltype(&::curl_url_cleanup) url_cleanup;
  decltype(&::curl_url_set) url_set;
  decltype(&::curl_url_get) url_get;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_strerror) easy_strerror;
};

// Loaded and initialized once per process; thread-safe. UserError as load_curl().
const Curl& curl();

// UserError if there is no such library or it lacks a function.
Curl load_curl(const char* library);

}  // namespace easydel::hub
