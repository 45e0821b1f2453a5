// What the two files of filters share: reading arguments by position or name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "easydel/text/jinja_interpreter.h"

namespace easydel::text::jinja {

const Var* given(const Arguments& arguments, size_t position, std::string_view name);
bool flag(const Arguments& arguments, size_t position, std::string_view name, bool fallback);
int64_t number(const Arguments& arguments, size_t position, std::string_view name, int64_t fallback);
std::string text(const Arguments& arguments, size_t position, std::string_view name, std::string fallback);

std::span<const NamedFilter> list_filters();

}  // namespace easydel::text::jinja
