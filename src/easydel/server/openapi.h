// The interface as an OpenAPI 3.1 document, from the table of routes and the tables of request fields.
#pragma once

#include <string>

namespace easydel::server {

std::string openapi_document();  // JSON; always the same

}  // namespace easydel::server
