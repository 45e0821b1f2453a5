// The page at "/": a chat with the models that are served. It is one file (page/chat.html) without anything from
// outside, and its Content-Security-Policy allows the very script and style that it has.
#pragma once

#include <string>
#include <string_view>

#include "easydel/server/http_message.h"

namespace easydel::server {

std::string_view chat_page_source();
HttpResponse chat_page();
// The page at "/docs": a table of the routes.
HttpResponse docs_page();

}  // namespace easydel::server
