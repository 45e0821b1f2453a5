// libcurl, loaded when the first address is asked for: it brings some thirty libraries, and most runs read local files.
#pragma once

#include <curl/curl.h>

namespace easydel::hub {

// The functions of libcurl by their names, without its prefix.
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

// Loaded and set up once for the process; thread-safe. UserError as load_curl().
const Curl& curl();

// UserError where there is no such library or it lacks a function.
Curl load_curl(const char* library);

}  // namespace easydel::hub
